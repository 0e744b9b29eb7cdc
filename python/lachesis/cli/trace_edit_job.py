"""Carries out ``lachesis trace filter`` and ``merge``."""

from __future__ import annotations

from collections.abc import Sequence

from lachesis.characterise.selection import Conditions, select_sessions
from lachesis.cli.json_output import check_json
from lachesis.cli.reading import read_traces
from lachesis.cli.trace_job import check_trace_output, report_trace
from lachesis.cli.waiting import waiting
from lachesis.errors import InputError
from lachesis.traces.batches import TraceSummary
from lachesis.traces.trace import session_digests


def filter_sessions(
    traces: Sequence[str],
    conditions: Conditions,
    *,
    output: str,
    format: str | None,
    map: Sequence[str],
    json: str | None,
    quiet: bool,
) -> None:
    """Read, keep what meets the conditions, save, report.

    Raises:
        InputError: what cannot be read or written, no condition, or no session left.
    """
    check_json(json, traces)
    check_trace_output(output)
    bounds = {
        "--min-requests": conditions.requests_min,
        "--max-requests": conditions.requests_max,
        "--min-turns": conditions.turns_min,
        "--min-agents": conditions.agents_min,
    }
    for option, bound in bounds.items():
        if bound is not None and bound < 1:
            raise InputError("must be at least 1", field=option, value=bound)
    trace = read_traces(traces, format, map, quiet=quiet)
    with waiting("writing the trace", quiet=quiet):
        selection = select_sessions(trace, conditions)
        kept = trace.select(selection.kept)
        kept.source = f"{trace.source} ({conditions.describe()})"
        kept.save(output)
    done = f"Kept {len(kept):,} of {len(trace):,} sessions"
    if selection.left_out:
        reasons = [f"{count:,} × {reason}" for reason, count in selection.left_out.items()]
        done += f"; left out: {', '.join(reasons)}"
    report_trace(
        TraceSummary.of(kept),
        json=json,
        quiet=quiet,
        done=f"{done}. Wrote {output}.",
        output=output,
    )


def merge(
    traces: Sequence[str],
    *,
    output: str,
    format: str | None,
    map: Sequence[str],
    json: str | None,
    quiet: bool,
) -> None:
    """Read several traces as one, save, report; sessions of equal content are kept and counted.

    Raises:
        InputError: fewer than two traces, or what cannot be read or written.
    """
    check_json(json, traces)
    check_trace_output(output)
    if len(traces) < 2:
        raise InputError("name at least two traces", field="TRACE")
    trace = read_traces(traces, format, map, quiet=quiet)
    with waiting("writing the trace", quiet=quiet):
        trace.save(output)
        repeated = len(trace) - len(set(session_digests(trace).values()))
    done = f"Wrote {output}."
    if repeated:
        noun = "session has" if repeated == 1 else "sessions have"
        done = f"{repeated:,} {noun} the content of another. {done}"
    report_trace(TraceSummary.of(trace), json=json, quiet=quiet, done=done, output=output)

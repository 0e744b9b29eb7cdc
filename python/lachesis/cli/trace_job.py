"""Carries out the ``lachesis trace`` commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from lachesis import __version__
from lachesis.cli.json_output import check_json, table_console, write_json
from lachesis.cli.reading import read_traces
from lachesis.cli.waiting import waiting
from lachesis.errors import InputError
from lachesis.report.run_summary import quality_sentences
from lachesis.results import to_json
from lachesis.results.provenance import trace_summary
from lachesis.traces import Trace
from lachesis.traces.generator import corpora, generate
from lachesis.traces.redact import redact


def import_sources(
    sources: Sequence[str],
    *,
    output: str,
    format: str | None,
    map: Sequence[str],
    tokenizer: str | None,
    redacted: bool,
    strict: bool,
    json: str | None,
    quiet: bool,
) -> None:
    """Read, refuse repairs if strict, redact if asked, save, report.

    Raises:
        InputError: whatever cannot be read or written, or was repaired under `strict`.
    """
    check_json(json, sources)
    check_trace_output(output)
    trace = read_traces(sources, format, map, tokenizer=tokenizer, strict=strict, quiet=quiet)
    with waiting("writing the trace", quiet=quiet):
        if redacted:
            trace = redact(trace)
        trace.save(output)
    report_trace(trace, json=json, quiet=quiet, done=f"Wrote {output}.", output=output)


def check_traces(
    traces: Sequence[str],
    *,
    format: str | None,
    map: Sequence[str],
    json: str | None,
    quiet: bool,
) -> None:
    """Read, which checks every rule, and report.

    Raises:
        InputError: the first rule that is broken.
    """
    check_json(json, traces)
    trace = read_traces(traces, format, map, quiet=quiet)
    report_trace(trace, json=json, quiet=quiet, done="Every rule holds.", output=None)


def generate_corpus(
    corpus: str, *, output: str, seed: int | None, scale: float, json: str | None, quiet: bool
) -> None:
    """Generate, save, report.

    Raises:
        InputError: an unknown corpus, a seed or scale out of range, or no place to write.
    """
    check_json(json)
    check_trace_output(output)
    if corpus not in corpora.names():
        raise InputError(
            f"must be one of {', '.join(corpora.names())}", field="CORPUS", value=corpus
        )
    trace = generate(corpus, seed, scale)
    trace.save(output)
    report_trace(trace, json=json, quiet=quiet, done=f"Wrote {output}.", output=output)


def check_trace_output(output: str) -> None:
    """What `Trace.save` would refuse, before the work."""
    place = Path(output)
    if place.suffix != ".trace":
        raise InputError("a trace's name ends in .trace", path=output)
    if not place.parent.is_dir():
        raise InputError(f"cannot be written: no folder {place.parent}", path=output)


def report_trace(
    trace: Trace, *, json: str | None, quiet: bool, done: str, output: str | None
) -> None:
    """Write what a trace holds as JSON where it was asked for, and print it, ending with `done`."""
    document = {"schema": 1, "version": __version__, "output": output, **trace_summary(trace)}
    write_json(json, to_json(document))
    if quiet:
        return
    screen = table_console(json)
    screen.print(Text(trace.source))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    for name, count in _counts(trace).items():
        table.add_row(name, f"{count:,}")
    screen.print(table)
    screen.print(
        Text(
            "Input tokens written: what the session's own contexts did not hold, its prompt "
            "included (trace stats: a prompt that sessions share once, and output too).",
            style="dim",
        )
    )
    for sentence in quality_sentences(document["quality"]):
        screen.print(Text(sentence))
    screen.print(Text(done))


def _counts(trace: Trace) -> dict[str, int]:
    import pyarrow.compute as pc

    written = trace.spans.filter(trace.spans["written"])
    return {
        "sessions": len(trace),
        "requests": trace.requests.num_rows,
        "segments": trace.segments.num_rows,
        "spawned agents": trace.spawns.num_rows,
        "input tokens": int(pc.sum(trace.spans["tokens"]).as_py() or 0),
        "input tokens written": int(pc.sum(written["tokens"]).as_py() or 0),
        "output tokens": int(pc.sum(trace.requests["output_tokens"]).as_py() or 0),
    }

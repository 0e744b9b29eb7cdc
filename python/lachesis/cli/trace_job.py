"""Carries out the ``lachesis trace`` commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from lachesis import __version__
from lachesis.cli.json_output import check_json, table_console, write_json
from lachesis.cli.reading import read_batches
from lachesis.cli.waiting import waiting
from lachesis.errors import InputError
from lachesis.report.run_summary import quality_sentences
from lachesis.results import to_json
from lachesis.results.provenance import trace_summary
from lachesis.traces.batches import TraceSummary
from lachesis.traces.generator import corpora, generate
from lachesis.traces.redact import REDACTED, Redaction
from lachesis.traces.totals import TraceTotals


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
    batches = read_batches(
        sources, format, map, tokenizer=tokenizer, strict=strict, quiet=quiet,
        scratch=Path(output).parent,
    )  # fmt: skip
    with waiting("writing the trace", quiet=quiet):
        if redacted:
            redaction = Redaction(batches.quality, batches.totals.earliest_s)
            batches.source, batches.quality = REDACTED, redaction.quality
            summary = batches.save(output, redaction.tables)
        else:
            summary = batches.save(output)
    report_trace(summary, json=json, quiet=quiet, done=f"Wrote {output}.", output=output)


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
    summary = read_batches(traces, format, map, quiet=quiet).summary()
    report_trace(summary, json=json, quiet=quiet, done="Every rule holds.", output=None)


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
    summary = TraceSummary.of(trace)
    report_trace(summary, json=json, quiet=quiet, done=f"Wrote {output}.", output=output)


def check_trace_output(output: str) -> None:
    """What `Trace.save` would refuse, before the work."""
    place = Path(output)
    if place.suffix != ".trace":
        raise InputError("a trace's name ends in .trace", path=output)
    if not place.parent.is_dir():
        raise InputError(f"cannot be written: no folder {place.parent}", path=output)


def report_trace(
    summary: TraceSummary, *, json: str | None, quiet: bool, done: str, output: str | None
) -> None:
    """Write what a trace holds as JSON where it was asked for, and print it, ending with `done`."""
    document = {"schema": 1, "version": __version__, "output": output, **trace_summary(summary)}
    write_json(json, to_json(document))
    if quiet:
        return
    screen = table_console(json)
    screen.print(Text(summary.source))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    for name, count in _counts(summary.totals).items():
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


def _counts(totals: TraceTotals) -> dict[str, int]:
    return {
        "sessions": totals.rows["sessions"],
        "requests": totals.rows["requests"],
        "segments": totals.rows["segments"],
        "spawned agents": totals.rows["spawns"],
        "input tokens": totals.input_tokens,
        "input tokens written": totals.written_tokens,
        "output tokens": totals.output_tokens,
    }

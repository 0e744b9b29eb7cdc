"""Carries out ``lachesis trace stats``."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from lachesis.characterise.segments import segment_columns
from lachesis.characterise.workload import workload_stats
from lachesis.cli.json_output import check_json, table_console, write_json
from lachesis.cli.reading import read_traces
from lachesis.cli.waiting import waiting
from lachesis.errors import InputError
from lachesis.presets import load_latency
from lachesis.report.characterisation_plot import draw_figures
from lachesis.report.stats_table import print_stats
from lachesis.results import to_json
from lachesis.results.folders import check_folder
from lachesis.results.stats_document import stats_document
from lachesis.traces.opening import is_path


def execute_stats(
    traces: Sequence[str],
    *,
    format: str | None,
    map: Sequence[str],
    seed: int,
    latency: str,
    json: str | None,
    plots: str | None,
    quiet: bool,
) -> None:
    """Read, characterise, write and print.

    Raises:
        InputError: anything in the arguments or the traces that breaks a rule.
    """
    check_json(json, traces)
    if plots is not None:
        check_folder(plots)
    if not traces:
        raise InputError("name at least one trace: a file, a folder or a corpus", field="TRACE")
    if seed < 0:
        raise InputError("must be 0 or more", field="--seed", value=seed)
    clock = load_latency(latency)

    trace = read_traces(traces, format, map, quiet=quiet)
    with waiting("measuring lifetimes", quiet=quiet) as say:
        segments = segment_columns(trace, clock, seed)
        say("comparing classes")
        stats = workload_stats(trace, segments, seed)
        document = stats_document(
            trace, stats, latency=clock, seed=seed,
            command=_command(traces, format, map, seed, latency),
            corpora=[name for name in dict.fromkeys(traces) if not is_path(name)],
        )  # fmt: skip
        write_json(json, to_json(document))
        drawn: list[str] = []
        if plots is not None:
            say("drawing figures")
            drawn = draw_figures(segments, stats, plots).sentences
    if quiet:
        return
    screen = table_console(json)
    print_stats(screen, document)
    for line in drawn:
        screen.print(Text(line))


def _command(
    traces: Sequence[str], format: str | None, map: Sequence[str], seed: int, latency: str
) -> list[str]:
    """The arguments that decide the result."""
    words = ["lachesis", "trace", "stats", *traces]
    if format is not None:
        words += ["--format", format]
    for pair in map:
        words += ["--map", pair]
    if latency != "paper":
        words += ["--latency", latency]
    return [*words, "--seed", str(seed)]

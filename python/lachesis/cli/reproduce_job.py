"""Carries out ``lachesis reproduce``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from rich.text import Text

from lachesis.cli.sweep_progress import sweep_progress
from lachesis.cli.terminal import console
from lachesis.cli.waiting import waiting
from lachesis.errors import InputError
from lachesis.presets import load_latency
from lachesis.report.comparison_table import comparison_page, print_comparison
from lachesis.reproduce import (
    FULL,
    QUICK,
    Background,
    Evidence,
    Published,
    Row,
    cells_of,
    choose,
    compare,
    simulated,
)
from lachesis.reproduce.comparison import write_json_rows, write_parquet_rows
from lachesis.results.files import write_text
from lachesis.results.folders import check_folder, replaced_folder

_TURN_S = 0.0005


def execute_reproduce(
    *,
    figures: Sequence[str],
    tables: Sequence[str],
    seed: int,
    quick: bool,
    jobs: int | None,
    output: str | None,
    quiet: bool,
) -> None:
    """Measure, simulate, compare, write and print.

    Raises:
        InputError: an unknown figure, an option without effect, or no place to write.
    """
    chosen = choose(_numbers(figures), _numbers(tables), quick=quick)
    if seed < 0:
        raise InputError("must be 0 or more", field="--seed", value=seed)
    if jobs is not None and jobs < 1:
        raise InputError("must be at least 1", field="--jobs", value=jobs)
    if output is not None:
        check_folder(output)
    evidence = Evidence(load_latency(), seed, quick=quick)
    with nullcontext() if output is None else replaced_folder(output) as folder:
        _gather(chosen, evidence, folder, jobs=jobs, quiet=quiet)
        rows = compare(chosen, evidence)
        if folder is not None:
            with waiting("writing the comparison", quiet=quiet):
                _write(rows, chosen, evidence, folder)
    if quiet:
        return
    screen = console()
    print_comparison(screen, rows, quick=quick)
    if output is not None:
        screen.print(Text(f"Wrote {output}/comparison.json, .parquet and .md, and the figures."))


def _gather(
    chosen: Sequence[Published],
    evidence: Evidence,
    folder: Path | None,
    *,
    jobs: int | None,
    quiet: bool,
) -> None:
    """Measure the corpora, and run what the figures need beside that."""
    with _short_turns():
        measuring = Background(chosen, evidence)
        if cells := cells_of(chosen):
            with sweep_progress(quiet=quiet) as watcher:
                evidence.runs = simulated(
                    cells, QUICK if evidence.quick else FULL, seed=evidence.seed + 1,
                    folder=folder, jobs=jobs, watcher=watcher, corpora=evidence.corpora,
                )  # fmt: skip
        with waiting("measuring the corpora", quiet=quiet):
            measuring.finish()


@contextmanager
def _short_turns() -> Iterator[None]:
    """Let Python's threads take turns of half a millisecond instead of five.

    The engine's threads want the interpreter for moments only, to look for Ctrl-C, and would wait
    for a turn's end each time beside the thread that measures.
    """
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before_s)


def _write(
    rows: Sequence[Row], chosen: Sequence[Published], evidence: Evidence, folder: Path
) -> None:
    # Only who asks for files needs matplotlib.
    from lachesis.report.paper_figures import draw_paper_figures

    numbers = [published.number for published in chosen if published.kind == "figure"]
    drawn = draw_paper_figures(numbers, evidence, folder)
    write_json_rows(rows, folder / "comparison.json")
    write_parquet_rows(rows, evidence, folder / "comparison.parquet")
    page = comparison_page(rows, seed=evidence.seed, figures=drawn, quick=evidence.quick)
    write_text(folder / "comparison.md", page)


def _numbers(given: Sequence[str]) -> list[str]:
    """Numbers of figures, from words that may hold several with commas between."""
    return [number.strip() for words in given for number in words.split(",")]

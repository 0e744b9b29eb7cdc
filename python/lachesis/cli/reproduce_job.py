"""Carries out ``lachesis reproduce``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from lachesis.characterise.segments import SegmentColumns
from lachesis.cli.terminal import console
from lachesis.cli.waiting import waiting
from lachesis.errors import InputError
from lachesis.presets import load_latency
from lachesis.report.characterisation_plot import draw_figures
from lachesis.report.comparison_table import comparison_page, print_comparison
from lachesis.reproduce import Evidence, Row, choose, compare
from lachesis.reproduce.comparison import write_json_rows, write_parquet_rows
from lachesis.results.files import write_text
from lachesis.results.folders import check_folder, make_folder


def execute_reproduce(
    *,
    figures: Sequence[str],
    tables: Sequence[str],
    seed: int,
    quick: bool,
    output: str | None,
    quiet: bool,
) -> None:
    """Measure, compare, write and print.

    Raises:
        InputError: an unknown figure, an option without effect, or no place to write.
    """
    chosen = choose(_numbers(figures), _numbers(tables), quick=quick)
    if seed < 0:
        raise InputError("must be 0 or more", field="--seed", value=seed)
    if output is not None:
        check_folder(output)
    with waiting("measuring the corpora", quiet=quiet) as say:
        evidence = Evidence(load_latency(), seed, say)
        rows = compare(chosen, evidence)
        if output is not None:
            say("writing the comparison")
            draws = any(published.kind == "figure" for published in chosen)
            _write(rows, evidence, output, draws=draws)
    if quiet:
        return
    screen = console()
    print_comparison(screen, rows)
    if output is not None:
        screen.print(Text(f"Wrote {output}/comparison.json, .parquet and .md."))


def _write(rows: Sequence[Row], evidence: Evidence, output: str, *, draws: bool) -> None:
    folder = make_folder(output)
    drawn: list[str] = []
    if draws:
        names = evidence.measured()
        columns = SegmentColumns.concatenated([evidence.columns(name) for name in names])
        drawn = draw_figures(columns, [evidence.stats(name) for name in names], folder).files
    write_json_rows(rows, folder / "comparison.json")
    write_parquet_rows(rows, evidence, folder / "comparison.parquet")
    page = comparison_page(rows, seed=evidence.seed, figures=[Path(path).name for path in drawn])
    write_text(folder / "comparison.md", page)


def _numbers(given: Sequence[str]) -> list[str]:
    """Numbers of figures, from words that may hold several with commas between."""
    return [number.strip() for words in given for number in words.split(",")]

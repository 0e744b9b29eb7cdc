"""Carries out ``lachesis report``: reads, words, draws, writes."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from lachesis.cli.terminal import console
from lachesis.cli.waiting import waiting
from lachesis.errors import InputError
from lachesis.report.evaluation_figures import draw_evaluation
from lachesis.report.html.page import write_report
from lachesis.report.html.words import answer
from lachesis.results.files import check_apart, check_output
from lachesis.results.folders import check_folder
from lachesis.results.results_directory import StoredResults, read_stored_results


def execute_report(place: str, *, output: str, figures: str | None, quiet: bool) -> None:
    """Write the page, and the figures if they are asked for.

    Raises:
        InputError: the place holds no results, or an output cannot be written.
    """
    check_apart([place], {"--output": output, "--figures": figures})
    if Path(output).suffix.lower() not in (".html", ".htm"):
        raise InputError("a report's name ends in .html", field="--output", value=output)
    check_output(output)
    if figures is not None:
        check_folder(figures)
    drawn: list[str] = []
    with waiting("reading the results", quiet=quiet) as say:
        results = read_stored_results(place)
        if not (results.runs.num_rows or results.comparison):
            raise InputError("no run is finished yet", path=place)
        say("writing the page")
        write_report(results, output, title=_title(place, results))
        if figures is not None:
            drawn = draw_evaluation(results, figures, say)
    if not quiet:
        _print_end(results, output, figures, drawn)


def _title(place: str, results: StoredResults) -> str:
    """What the sweep calls itself, or the name of the folder or file."""
    if given := results.origin.get("title"):
        return str(given)
    return Path(place).resolve().name.removesuffix(".json") or "results"


def _print_end(results: StoredResults, output: str, figures: str | None, drawn: list[str]) -> None:
    screen = console()
    runs = results.measured.to_pylist()
    told = answer(
        runs, unfinished=results.unfinished, cells=results.cells, failures=results.failures,
        infeasible=results.infeasible.to_pylist(),
    )  # fmt: skip
    for sentence in told.overview:
        screen.print(Text(sentence))
    size = Path(output).stat().st_size / 1e6
    screen.print(Text(f"Wrote {output} ({size:.1f} MB; needs no network)."))
    if figures is not None:
        screen.print(Text(f"Drew {len(drawn):,} files in {figures}."))

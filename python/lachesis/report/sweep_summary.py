"""What a sweep found, in a few lines: the same words as at the top of its page.

Which runs compete, tie, or miss their SLO is decided in `lachesis.report.longest_life`, for the
terminal and the page alike.
"""

from __future__ import annotations

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lachesis.report.html.phrases import count, interval_text, places_text
from lachesis.report.html.words import answer, heading
from lachesis.report.longest_life import Ranking, rank
from lachesis.report.questions import Question, dimensions_that_vary, questions
from lachesis.report.run_summary import years_text
from lachesis.results.directory import Manifest
from lachesis.results.rows import infeasible_runs, measured_runs

_ROWS_MAX = 20


def print_sweep(console: Console, manifest: Manifest, runs: pa.Table, cells_run: int) -> None:
    """Print the summary of a sweep.

    Args:
        console: where to.
        manifest: of the directory.
        runs: every run of it.
        cells_run: how many cells were run now; the others were there already.
    """
    for sentence in summary(manifest, runs, cells_run):
        console.print(Text(sentence))
    table = longest_lives(runs)
    if table is not None:
        console.print()
        console.print(table)


def summary(manifest: Manifest, runs: pa.Table, cells_run: int | None = None) -> list[str]:
    """The summary as sentences.

    Where the runs answer one question, it is what the page says of it; where they answer several,
    how often each policy and split lives longest.

    Args:
        manifest: of the directory.
        runs: every run of it, with the columns of `lachesis.results.rows.run_columns`.
        cells_run: how many cells were run now; left out where nothing was.
    """
    counts = manifest.counts()
    ended = len(manifest.cells) - counts["pending"]
    measured = measured_runs(runs)
    infeasible = infeasible_runs(runs).to_pylist()
    told = f"{count(measured.num_rows, 'run')} in {count(ended, 'cell')}"
    if cells_run is not None:
        wall_s = manifest.sessions[-1].wall_s
        ran = f"{count(cells_run, 'cell')} run now in {_duration(wall_s)}"
        told += f"; {ran if cells_run else 'none run now'}"
        told += f", {ended - cells_run:,} were there" if ended > cells_run else ""
    failures = [reason for entry in manifest.cells for reason in entry.failures.values()]
    words = answer(
        measured.to_pylist(),
        unfinished=counts["pending"], cells=len(manifest.cells), failures=failures,
        infeasible=infeasible,
    )  # fmt: skip
    # The first sentence of the page's overview counts the runs; here the one above does.
    said = [f"{told}.", *words.overview[1 if measured.num_rows else 0 :]]
    if failures:
        said.append("The manifest says why.")
    if len(words.by_question) == 1:
        said += words.by_question[0].sentences
    return [*said, *words.cautions]


def longest_lives(runs: pa.Table) -> Table | None:
    """For each question the runs that no other is known to outlive; None where there is but one."""
    found = questions(measured_runs(runs).to_pylist())
    if len(found) < 2:
        return None
    vary = dimensions_that_vary(found)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for header in ("question", "longest-lived"):
        table.add_column(header, overflow="fold")
    table.add_column("years", justify="right", no_wrap=True)
    table.add_column("95 % interval")
    for question in found[:_ROWS_MAX]:
        table.add_row(heading(question, vary), *_longest(question, rank(question)))
    if len(found) > _ROWS_MAX:
        table.add_row(f"… and {len(found) - _ROWS_MAX:,} more", "", "", "")
    return table


def _longest(question: Question, ranking: Ranking) -> tuple[str, str, str]:
    """Who lives longest, how many years, and between which."""
    if not ranking.best:
        why = "none meets the SLO" if ranking.missed else "none with device-years"
        return (why, "–", "–")
    best = ranking.best[0]
    who = places_text(ranking.best, question)
    if len(ranking.best) > 1:
        who = f"not told apart: {who}"
    elif len(question.memories) > 1:
        who = f"{best['policy']} at {best['memory']}"
    interval = interval_text(best).removeprefix("95 % interval ")
    return who, years_text(best["hbf_lifetime_years"]), interval


def _duration(seconds: float) -> str:
    if seconds < 100.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"

"""The figures of ``report --figures``, for papers: the page's plots, drawn by matplotlib.

Every figure is written as PNG and as SVG; equal results give equal files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lachesis.report.evaluation_axes import (
    comparison_figure,
    lifetime_figure,
    load_curve_figure,
    load_figure,
    segment_figure,
    timeline_figure,
    writes_figure,
)
from lachesis.report.html.words import heading
from lachesis.report.load_curves import load_curves
from lachesis.report.over_time import cell_text, runs_over_time
from lachesis.report.policy_style import policy_styles
from lachesis.report.questions import Run, dimensions_that_vary, families, questions
from lachesis.results.files import replaced
from lachesis.results.folders import make_folder
from lachesis.results.results_directory import StoredResults

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = {"font.size": 10, "svg.hashsalt": "lachesis", "hatch.linewidth": 0.6}
_NO_DATES: dict[str, dict[str, None]] = {"png": {}, "svg": {"Date": None}}
_NAME_CHARACTERS = 80


def draw_evaluation(
    results: StoredResults, folder: str | Path, say: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Draw every figure for which there is something to draw.

    Args:
        results: from `lachesis.results.results_directory.read_stored_results`.
        folder: where to; made if it is not there.
        say: hears which figure is drawn.

    Returns:
        The names of the files.

    Raises:
        InputError: the folder or a file cannot be written.
    """
    import matplotlib as mpl

    place = make_folder(folder)
    files: list[str] = []
    taken: set[str] = set()
    with mpl.rc_context(_STYLE):
        for wanted, figure in _figures(results):
            name = _free(wanted, taken)
            say(f"drawing {name}")
            for ending, metadata in _NO_DATES.items():
                path = place / f"{name}.{ending}"
                with replaced(path) as scratch:
                    figure.savefig(scratch, format=ending, dpi=150, metadata=metadata)
                files.append(path.name)
    return files


def _figures(results: StoredResults) -> Iterator[tuple[str, Figure]]:
    runs: list[Run] = results.measured.to_pylist()
    found = questions(runs)
    styles = policy_styles(run["policy"] for run in runs)
    vary = [name for name in dimensions_that_vary(found) if name != "slo"]
    for family in families(found):
        told = heading(family[0], vary)
        for name, figure in (
            ("device_years", lifetime_figure(family, styles, told)),
            ("write_composition", writes_figure(family, told)),
            ("load_admitted", load_figure(family, styles, told)),
        ):
            if figure is not None:
                yield _joined(name, told), figure
    for curve in load_curves(found):
        yield _joined("device_years_by_load", curve.told), load_curve_figure(curve, styles)
    if results.timelines is not None:
        for cell in runs_over_time(results.timelines, runs):
            told = cell_text(cell[0].run)
            yield _joined("over_time", told), timeline_figure(cell, styles, told)
    if results.lifetimes is not None:
        rows = results.lifetimes.to_pylist()
        for trace in dict.fromkeys(row["trace"] for row in rows):
            of_trace = [row for row in rows if row["trace"] == trace]
            yield _joined("segments", trace), segment_figure(of_trace, trace)
    if (figure := comparison_figure(results.comparison)) is not None:
        yield "published_against_ours", figure


def _joined(*words: str) -> str:
    """A name of a file from words that may hold anything."""
    parts = (re.sub(r"[^A-Za-z0-9._]+", "-", word).strip("-.") for word in words)
    return "_".join(part for part in parts if part)[:_NAME_CHARACTERS].rstrip("-._")


def _free(wanted: str, taken: set[str]) -> str:
    names: Sequence[str] = [wanted, *(f"{wanted}-{number}" for number in range(2, len(taken) + 3))]
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return name

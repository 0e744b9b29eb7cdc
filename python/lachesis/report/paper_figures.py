"""The paper's figures from our measurements, as PNG and SVG, to be laid beside the published ones.

``figure_4a``, ``4b``, ``5a``, ``5b``, ``6``, ``7a``, ``7b``, and ``figure_9`` to ``12``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lachesis.characterise.segments import SegmentColumns
from lachesis.report import evaluation_plot
from lachesis.report.characterisation_plot import (
    STYLE,
    lifetimes_figure,
    ratios_figure,
    tokens_per_turn_figure,
    workers_figure,
)
from lachesis.reproduce.evidence import Evidence, RankedWorkers
from lachesis.reproduce.published import characterisation
from lachesis.results.files import replaced

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_QUARTERS = (("Q1", "#56B4E9", "-"), ("Q2", "#0072B2", "--"), ("Q3", "#E69F00", "-."),
             ("Q4", "#D55E00", ":"))  # fmt: skip
_SHARES = (
    ("shortest_k", "shortest k", "#D55E00", "o"),
    ("shortest_2k", "shortest 2k", "#0072B2", "s"),
    ("avoids_longest_k", "avoided longest k", "#009E73", "^"),
)
_SUFFIXES = ("png", "svg")

_Draw = Callable[[Evidence], "Figure | None"]


def draw_paper_figures(numbers: Collection[str], evidence: Evidence, folder: Path) -> list[str]:
    """Draw figures by number; equal measurements, equal files.

    Args:
        numbers: which of the paper's figures.
        evidence: what they show, measured already.
        folder: where to.

    Returns:
        Names of the PNG files, in order; an SVG of the same name lies beside each.

    Raises:
        InputError: a file cannot be written.
    """
    import matplotlib as mpl

    drawn = []
    with mpl.rc_context(STYLE):
        for number, name, draw in _figures():
            if number not in numbers or (figure := draw(evidence)) is None:
                continue
            for suffix in _SUFFIXES:
                # A date in the file would make equal figures differ.
                metadata = {"Date": None} if suffix == "svg" else {}
                with replaced(folder / f"{name}.{suffix}") as scratch:
                    figure.savefig(scratch, format=suffix, dpi=150, metadata=metadata)
            drawn.append(f"{name}.png")
    return drawn


def _figures() -> list[tuple[str, str, _Draw]]:
    temporal = tuple(characterisation().figure_4b.workloads)
    structural = tuple(set(characterisation().table_3.workloads) - set(temporal))

    def of(workloads: Collection[str], draw: Callable[..., Figure | None]) -> _Draw:
        def drawn(evidence: Evidence) -> Figure | None:
            names = sorted(workloads)
            columns = SegmentColumns.concatenated([evidence.columns(name) for name in names])
            return draw(columns, [evidence.stats(name) for name in names])

        return drawn

    return [
        ("4", "figure_4a", of(temporal, lifetimes_figure)),
        ("4", "figure_4b", of(temporal, tokens_per_turn_figure)),
        ("5", "figure_5a", of(structural, lifetimes_figure)),
        ("5", "figure_5b", of(structural, ratios_figure)),
        ("6", "figure_6", of(structural, workers_figure)),
        ("7", "figure_7a", lambda evidence: _quarters(evidence.predictor())),
        ("7", "figure_7b", lambda evidence: _selection(evidence.predictor())),
        ("9", "figure_9", lambda evidence: evaluation_plot.figure_9(evidence.runs)),
        ("10", "figure_10", lambda evidence: evaluation_plot.figure_10(evidence.runs)),
        ("11", "figure_11", lambda evidence: evaluation_plot.figure_11(evidence.runs)),
        ("12", "figure_12", lambda evidence: evaluation_plot.figure_12(evidence.runs)),
    ]


def _quarters(ranked: RankedWorkers) -> Figure:
    """Distributions of true lifetimes by quarter of the predicted rank."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2, 3.4), layout="constrained")
    axes = figure.subplots()
    order = np.argsort(ranked.scores, kind="stable")
    for (label, colour, style), rows in zip(_QUARTERS, np.array_split(order, 4), strict=True):
        lives = np.sort(ranked.lifetime_s[rows])
        share = np.arange(1, len(lives) + 1) / len(lives)
        axes.step(lives, share, where="post", color=colour, linestyle=style, label=label)
    axes.set_xscale("log")
    axes.set_ylim(0.0, 1.02)
    axes.set_xlabel("T_norm, s (log)")
    axes.set_ylabel("CDF")
    axes.set_title("Workers by predicted quartile")
    axes.grid(visible=True, color="#DDDDDD", linewidth=0.6)
    axes.legend(frameon=False)
    return figure


def _selection(ranked: RankedWorkers) -> Figure:
    """What the k shortest-predicted workers are, beside a random selection of as many."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2, 3.4), layout="constrained")
    axes = figure.subplots()
    found = ranked.evaluation.top_k
    k = [100.0 * fraction for fraction in found]
    for name, label, colour, marker in _SHARES:
        chosen = [100.0 * getattr(ours, name) for ours, _ in found.values()]
        by_chance = [100.0 * getattr(chance, name) for _, chance in found.values()]
        axes.plot(k, chosen, color=colour, marker=marker, markersize=4, label=label)
        axes.plot(k, by_chance, color=colour, linestyle=":", linewidth=1.1)
    axes.set_xlim(0, 62)
    axes.set_ylim(0, 104)
    axes.set_xlabel("k, % of workers")
    axes.set_ylabel("% of selected k (dotted: at random)")
    axes.set_title("What k selects")
    axes.grid(visible=True, color="#DDDDDD", linewidth=0.6)
    axes.legend(frameon=False, fontsize=8)
    return figure

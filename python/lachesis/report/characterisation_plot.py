"""Figures of ``trace stats --plots``: lifetimes, reuse, tokens a turn, and how workers differ.

They show what the paper's Figures 4 to 6 show, for any trace: distributions of T_norm by class
(4(a), 5(a)), of reads per token written (5(b)), tokens that a turn writes (4(b)), and the workers'
lifetimes alone and against their writes (6). A figure for which a trace has no segments is not
drawn, and the caller is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lachesis.characterise.segments import SegmentColumns
from lachesis.characterise.statistics import percentiles
from lachesis.characterise.workload import TURN_CLASSES, WorkloadStats
from lachesis.results.files import replaced
from lachesis.results.folders import make_folder
from lachesis.traces.schema import SegmentClass

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

#: Workloads that a figure shows; the largest by requests, in the order of their names.
WORKLOADS_MAX = 12
_COLUMNS_MAX = 4
# Okabe and Ito's palette; the line styles and markers tell the classes apart in grey too.
_CLASS_STYLES: dict[SegmentClass, tuple[str, Any]] = {
    SegmentClass.LADEN: ("#D55E00", "-"),
    SegmentClass.STRIPPED: ("#0072B2", (0, (5, 2))),
    SegmentClass.LEAD: ("#0072B2", "-"),
    SegmentClass.WORKER: ("#D55E00", (0, (5, 2))),
    SegmentClass.REVIEWER: ("#CC79A7", (0, (1, 1.2))),
    SegmentClass.SUMMARY: ("#009E73", (0, (5, 1.5, 1, 1.5))),
}
_WORKLOAD_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222")
_MARKERS = "os^DvPX"
_INK = "#222222"
STYLE = {"font.size": 10, "axes.titlesize": 10, "axes.titleweight": "bold", "svg.hashsalt": "l"}

_Draw = Callable[[SegmentColumns, Sequence[WorkloadStats]], "Figure | None"]


class Drawn(NamedTuple):
    """What was drawn: the files, and a sentence a figure: where it lies, or why there is none."""

    files: list[str]
    sentences: list[str]


def draw_figures(
    columns: SegmentColumns, stats: Sequence[WorkloadStats], folder: str | Path
) -> Drawn:
    """Draw all figures for which there is something to draw, as PNG; equal inputs, equal files.

    Args:
        columns: the segments of a trace.
        stats: of the same trace.
        folder: where to; made if it is not there.

    Raises:
        InputError: the folder or a file cannot be written.
    """
    import matplotlib as mpl

    place = make_folder(folder)
    shown = sorted(stats, key=lambda each: (-each.requests, each.workload))[:WORKLOADS_MAX]
    shown.sort(key=lambda each: each.workload)
    figures: list[tuple[str, _Draw, str]] = [
        ("lifetimes", lifetimes_figure, "there is no segment but prompts"),
        ("read_write_ratios", ratios_figure, "there is no segment but prompts"),
        ("tokens_per_turn", tokens_per_turn_figure, "no reasoning is stripped at a turn's end"),
        ("workers", workers_figure, "there are no workers"),
    ]
    drawn = Drawn([], [])
    with mpl.rc_context(STYLE):
        for name, draw, lacking in figures:
            figure = draw(columns, shown)
            if figure is None:
                drawn.sentences.append(f"No figure {name}: {lacking}.")
                continue
            path = place / f"{name}.png"
            with replaced(path) as scratch:
                figure.savefig(scratch, format="png", dpi=150, metadata={})
            drawn.files.append(str(path))
            drawn.sentences.append(f"Drew {path}.")
    if len(shown) < len(stats):
        drawn.sentences.append(f"Figures show the {len(shown)} largest of {len(stats)} workloads.")
    return drawn


def lifetimes_figure(columns: SegmentColumns, stats: Sequence[WorkloadStats]) -> Figure | None:
    """Distributions of T_norm by class, a panel a workload."""
    return _distributions(
        columns,
        stats,
        lambda rows: rows.t_norm_s,
        "Normalised context lifetime, by class of segment",
        "T_norm, seconds on the reference clock (log)",
    )


def ratios_figure(columns: SegmentColumns, stats: Sequence[WorkloadStats]) -> Figure | None:
    """Distributions of reads per token written by class, a panel a workload."""
    return _distributions(
        columns,
        stats,
        lambda rows: rows.rho[~np.isnan(rows.rho)],
        "Read-to-write ratio, by class of segment",
        "rho, tokens read per token written (log)",
    )


def _distributions(
    columns: SegmentColumns,
    stats: Sequence[WorkloadStats],
    values_of: Callable[[SegmentColumns], Floats],
    title: str,
    label: str,
) -> Figure | None:
    """Cumulative distributions on a logarithmic axis: a panel a workload, a line a class."""
    present = {kind for kind in columns.classes() if kind in _CLASS_STYLES}
    shown = [each for each in stats if present & set(map(SegmentClass, each.classes))]
    if not shown:
        return None
    figure, panels = _panels(len(shown), height=2.2)
    used: set[SegmentClass] = set()
    for axes, each in zip(panels, shown, strict=True):
        rows = columns.of_workload(each.workload)
        for kind, (colour, style) in _CLASS_STYLES.items():
            values = values_of(rows.of_class(kind))
            if not len(values):
                continue
            used.add(kind)
            x, share = _steps(values)
            axes.step(x, share, where="post", color=colour, linestyle=style, linewidth=1.8)
        _logarithmic(axes, "x")
        axes.set_ylim(0, 1.02)
        axes.set_title(_shortened(each.workload), color=_INK)
        axes.grid(visible=True, which="major", color="#DDDDDD", linewidth=0.6)
    figure.supxlabel(label, fontsize=10)
    figure.supylabel("share of segments", fontsize=10)
    kinds = [kind for kind in _CLASS_STYLES if kind in used]
    _legend(figure, kinds, f"{title} (every segment counted once)")
    return figure


def tokens_per_turn_figure(
    columns: SegmentColumns, stats: Sequence[WorkloadStats]
) -> Figure | None:
    """Boxes of the tokens that a turn writes, with median and mean written out."""
    shown = [
        each for each in stats if all(str(kind) in each.tokens_per_turn for kind in TURN_CLASSES)
    ]
    if not shown:
        return None
    figure, panels = _panels(len(shown), height=3.0, share_y=True)
    for axes, each in zip(panels, shown, strict=True):
        rows = columns.of_workload(each.workload)
        for place, kind in enumerate(TURN_CLASSES):
            values = np.maximum(rows.of_class(kind).tokens_per_turn(), 1)
            colour = _CLASS_STYLES[kind][0]
            _box(axes, place, values, colour)
            axes.plot(
                place, values.mean(), marker="D", markersize=5.5, color="white",
                markeredgecolor=_INK, zorder=5,
            )  # fmt: skip
            found = each.tokens_per_turn[str(kind)]
            axes.text(
                place, 0.985, f"median {found.p50:,.0f}\nmean {found.mean:,.0f}", fontsize=8,
                ha="center", va="top", transform=axes.get_xaxis_transform(), color=_INK,
            )  # fmt: skip
        _logarithmic(axes, "y")
        axes.set_xlim(-0.6, 1.6)
        axes.set_xticks([0, 1], ["laden", "stripped"])
        share = f"{each.laden_share:.0%} laden" if each.laden_share is not None else ""
        axes.set_title(f"{_shortened(each.workload)}\n{share}", color=_INK)
        axes.grid(visible=True, axis="y", which="major", color="#DDDDDD", linewidth=0.6)
    low, high = panels[0].get_ylim()
    panels[0].set_ylim(low, high * (high / low) ** 0.22)  # room for the numbers
    figure.suptitle(
        "Tokens that a turn writes\n"
        "(box: quartiles; whiskers: 10th and 90th percentile; diamond: mean)",
        fontsize=11,
    )
    figure.supylabel("tokens (log)", fontsize=10)
    return figure


def workers_figure(columns: SegmentColumns, stats: Sequence[WorkloadStats]) -> Figure | None:
    """On the left the spread of worker lifetimes, on the right lifetime against writes."""
    from matplotlib.figure import Figure

    shown = [each for each in stats if SegmentClass.WORKER in each.classes]
    if not shown:
        return None
    figure = Figure(figsize=(11.0, 2.6 + 0.42 * len(shown)), layout="constrained")
    spreads, scatter = figure.subplots(1, 2, width_ratios=(1.1, 1.0))
    for place, each in enumerate(shown):
        rows = columns.of_workload(each.workload).of_class(SegmentClass.WORKER)
        colour = _WORKLOAD_COLOURS[place % len(_WORKLOAD_COLOURS)]
        lives = np.maximum(rows.t_norm_s, _floor(rows.t_norm_s))
        _box(spreads, place, lives, colour, horizontal=True)
        times = each.worker_spread.t_norm_s if each.worker_spread is not None else None
        if times is not None:
            spreads.annotate(
                f"{times:.1f}×", (percentiles(lives, 90)[0], place), (6, 0), fontsize=9,
                textcoords="offset points", va="center", weight="bold",
            )  # fmt: skip
        label = _shortened(each.workload)
        if each.worker_tau is not None:
            label += f"  τ = {each.worker_tau:.2f}"
        scatter.scatter(
            lives, np.maximum(rows.tokens, 1), s=12 if len(rows) > 50 else 36, alpha=0.45,
            color=colour, linewidths=0, marker=_MARKERS[place % len(_MARKERS)], label=label,
            rasterized=True,
        )  # fmt: skip
    _logarithmic(spreads, "x")
    low, high = spreads.get_xlim()
    spreads.set_xlim(low, high * (high / low) ** 0.12)
    spreads.set_yticks(range(len(shown)), [_shortened(each.workload) for each in shown])
    spreads.set_ylim(len(shown) - 0.4, -0.6)
    spreads.set_xlabel("T_norm, s (log); bold: 90th over 10th percentile")
    spreads.set_title("Worker lifetime")
    spreads.grid(visible=True, axis="x", color="#DDDDDD", linewidth=0.6)
    _logarithmic(scatter, "x")
    _logarithmic(scatter, "y")
    scatter.set_axisbelow(True)
    scatter.set_xlabel("T_norm, s (log)")
    scatter.set_ylabel("tokens written (log)")
    scatter.set_title("Lifetime against writes (τ: Kendall's)")
    scatter.grid(visible=True, color="#DDDDDD", linewidth=0.6)
    legend = scatter.legend(
        loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9
    )
    for handle in legend.legend_handles:
        handle.set_alpha(1.0)
        handle.set_sizes([36])
    return figure


def _box(
    axes: Axes, place: int, values: NDArray[Any], colour: str, *, horizontal: bool = False
) -> None:
    """Quartiles as a box with the median, whiskers to the 10th and 90th percentile."""
    p10, q1, middle, q3, p90 = percentiles(values, 10, 25, 50, 75, 90)
    axes.bxp(
        [{"med": middle, "q1": q1, "q3": q3, "whislo": p10, "whishi": p90}],
        positions=[place],
        widths=0.55,
        showfliers=False,
        orientation="horizontal" if horizontal else "vertical",
        patch_artist=True,
        boxprops={"facecolor": colour, "alpha": 0.55, "edgecolor": _INK},
        medianprops={"color": _INK, "linewidth": 1.8},
        whiskerprops={"color": _INK},
        capprops={"color": _INK},
        manage_ticks=False,
    )


def _panels(count: int, *, height: float, share_y: bool = False) -> tuple[Figure, list[Axes]]:
    """A figure of `count` panels, at most four in a row."""
    from matplotlib.figure import Figure

    across = min(count, _COLUMNS_MAX) if count != _COLUMNS_MAX + 1 else 3
    down = -(-count // across)
    figure = Figure(figsize=(max(2.75 * across, 7.0), 1.2 + height * down), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False, sharey=share_y)
    panels = list(grid.flat)
    for unused in panels[count:]:
        unused.set_axis_off()
    return figure, panels[:count]


def _legend(figure: Figure, kinds: Sequence[SegmentClass], title: str) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [], [], color=_CLASS_STYLES[kind][0], linestyle=_CLASS_STYLES[kind][1], linewidth=1.8,
            label=str(kind),
        )
        for kind in kinds
    ]  # fmt: skip
    figure.legend(
        handles=handles, loc="outside upper center", ncols=len(handles), frameon=False,
        handlelength=2.6, title=title, title_fontsize=11,
    )  # fmt: skip


def _steps(values: Floats) -> tuple[Floats, Floats]:
    """Points of the cumulative distribution; values of 0 stand at the left edge of a log axis."""
    ordered = np.sort(np.maximum(values, _floor(values)))
    share = np.arange(1, len(ordered) + 1) / len(ordered)
    return np.concatenate((ordered[:1], ordered)), np.concatenate(([0.0], share))


def _floor(values: Floats) -> float:
    """The smallest positive value, which stands in for 0 where an axis is logarithmic."""
    positive = values[values > 0]
    return float(positive.min()) if len(positive) else 1.0


def _logarithmic(axes: Axes, side: Literal["x", "y"]) -> None:
    """A logarithmic axis with plain numbers; between the decades too where it spans few."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = axes.xaxis if side == "x" else axes.yaxis
    low, high = axis.get_data_interval()
    between = (1.0, 2.0, 5.0) if high < 100.0 * low else (1.0,)
    if side == "x":
        axes.set_xscale("log")
    else:
        axes.set_yscale("log")
    axis.set_major_locator(LogLocator(subs=between))
    axis.set_major_formatter(FuncFormatter(lambda value, place: _plain(value)))
    axis.set_minor_formatter(NullFormatter())


def _plain(value: float) -> str:
    """A tick of a logarithmic axis, as people write it.

    Example:
        >>> [_plain(value) for value in (0.1, 20.0, 1e4, 2e6)]
        ['0.1', '20', '10k', '2M']
    """
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def _shortened(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"

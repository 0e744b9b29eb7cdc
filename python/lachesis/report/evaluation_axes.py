"""How each figure of an evaluation is drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lachesis.report.html.plots.comparison import MISSED_COLOUR
from lachesis.report.html.plots.load import is_common
from lachesis.report.html.plots.years import axis_title, years_axis
from lachesis.report.load_curves import LoadCurve
from lachesis.report.over_time import OverTime
from lachesis.report.panel_axes import (
    Styles,
    class_patch,
    draw_loads,
    draw_writes,
    draw_years_by_load,
    draw_years_by_memory,
    legend,
    policy_line,
    years_legend,
)
from lachesis.report.questions import Question, in_memory_order, in_policy_order
from lachesis.report.run_plot import BAR_COLOUR, CLASS_COLOURS, INK
from lachesis.report.write_shares import write_shares
from lachesis.results.measures import TIERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE_CHARACTERS = 110
_LINES = {
    "prompt": "-.",
    "reasoning-laden": "-",
    "reasoning-stripped": "--",
    "lead": "-",
    "worker": "--",
    "reviewer": ":",
    "summary": "-.",
}


def lifetime_figure(family: Sequence[Question], styles: Styles, told: str) -> Figure | None:
    """Device-years against the memory split, a panel an SLO; None without device-years."""
    runs = [run for question in family for run in question.runs]
    rated = [run for run in runs if run["hbf_lifetime_years"] is not None]
    if not rated:
        return None
    memories = in_memory_order(run["memory"] for run in runs)
    policies = in_policy_order(run["policy"] for run in rated)
    axis = years_axis(runs)
    figure, panels = _figure(len(family), 3.6, told)
    for axes, question in zip(panels, family, strict=True):
        draw_years_by_memory(axes, question.runs, memories, policies, styles, axis)
        axes.set_title(f"SLO {question.asked['slo']}", fontsize=10)
    panels[0].set_ylabel(axis_title(axis))
    years_legend(figure, policies, styles, runs)
    return figure


def load_curve_figure(curve: LoadCurve, styles: Styles) -> Figure:
    """Device-years over given loads."""
    figure, (axes,) = _figure(1, 3.6, curve.told)
    axis = years_axis(curve.runs)
    policies = in_policy_order(run["policy"] for run in curve.runs)
    draw_years_by_load(axes, curve.runs, policies, styles, axis)
    axes.set_ylabel(axis_title(axis))
    years_legend(figure, policies, styles, curve.runs)
    return figure


def writes_figure(family: Sequence[Question], told: str) -> Figure | None:
    """Shares of the written bytes by class, to HBM leftwards and to flash rightwards (hatched)."""
    shares = [
        [(run, found) for run in question.runs if (found := write_shares(run))]
        for question in family
    ]
    if not any(shares):
        return None
    figure, panels = _figure(len(family), 1.6 + 0.24 * max(map(len, shares)), told)
    used: set[str] = set()
    for axes, question, rows in zip(panels, family, shares, strict=True):
        used |= draw_writes(axes, rows)
        axes.set_title(f"SLO {question.asked['slo']}", fontsize=10)
    legend(figure, [class_patch(name) for name in CLASS_COLOURS if name in used])
    return figure


def load_figure(family: Sequence[Question], styles: Styles, told: str) -> Figure | None:
    """The load that each SLO admits; None where it was given."""
    if all(run["admitted_sessions"] is None for question in family for run in question.runs):
        return None
    memories = in_memory_order(run["memory"] for question in family for run in question.runs)
    if not all(map(is_common, family)):
        return _load_by_policy(family, memories, styles, told)
    figure, (axes,) = _figure(1, 3.4, told)
    colours = list(CLASS_COLOURS.values())[3:] + list(CLASS_COLOURS.values())[:3]
    hatches = (None, "////", "xxx", "...", "---")
    width = 0.8 / len(family)
    for place, question in enumerate(family):
        admitted = {run["memory"]: run["admitted_sessions"] for run in question.runs}
        bars = axes.bar(
            [memories.index(name) + (place + 0.5) * width - 0.4 for name in admitted],
            [load or 0 for load in admitted.values()],
            width, color=colours[place % len(colours)], hatch=hatches[place % len(hatches)],
            edgecolor=INK, linewidth=0.6, label=f"SLO {question.asked['slo']}",
        )  # fmt: skip
        axes.bar_label(bars, fmt="{:,.0f}", fontsize=8, padding=2)
    axes.set_xticks(range(len(memories)), memories)
    axes.set_xlabel("memory split, HBM / HBF stacks")
    axes.set_ylabel("live sessions of the node")
    axes.margins(y=0.12)
    figure.legend(loc="outside lower center", ncols=1, frameon=False, fontsize=9)
    return figure


def _load_by_policy(
    family: Sequence[Question], memories: Sequence[str], styles: Styles, told: str
) -> Figure:
    figure, panels = _figure(len(family), 3.6, told)
    used = in_policy_order(run["policy"] for question in family for run in question.runs)
    for axes, question in zip(panels, family, strict=True):
        draw_loads(axes, question.runs, memories, styles, "admitted_sessions")
        axes.set_title(f"SLO {question.asked['slo']}", fontsize=10)
    panels[0].set_ylabel("live sessions of the node")
    legend(figure, [policy_line(policy, styles[policy]) for policy in used])
    return figure


def timeline_figure(cell: Sequence[OverTime], styles: Styles, told: str) -> Figure:
    """Occupancy and KV writes over time; HBM solid, flash dotted."""
    figure, (held, written) = _figure(2, 3.2, told, share_y=False)
    for each in cell:
        style = styles[each.run["policy"]]
        for tier, line in zip(TIERS, ("-", ":"), strict=True):
            look: dict[str, Any] = {"color": style.colour, "linestyle": line, "linewidth": 1.6}
            held.plot(each.time_h, each.occupancy_percent[tier], **look)
            written.plot(each.time_h, each.writes_gb_per_s[tier], **look)
    held.set_ylabel("blocks that are not free, %")
    held.set_ylim(0, 104)
    written.set_ylabel("KV writes of the node, GB/s")
    written.set_ylim(bottom=0)
    for axes in (held, written):
        axes.set_xlabel("simulated time, hours")
    from matplotlib.lines import Line2D

    legend(
        figure,
        [
            Line2D([], [], color=styles[each.run["policy"]].colour, label=each.run["policy"])
            for each in cell
        ]
        + [
            Line2D([], [], color=INK, linestyle=line, label=name)
            for line, name in (("-", "HBM"), (":", "flash"))
        ],
    )
    return figure


def segment_figure(rows: Sequence[Mapping[str, Any]], trace: str) -> Figure:
    """Distributions of T_norm and of tokens a segment, a line a class."""
    figure, panels = _figure(2, 3.2, trace)
    names = list(dict.fromkeys(row["class"] for row in rows))
    for axes, key, label in (
        (panels[0], "t_norm_s", "T_norm, seconds (log)"),
        (panels[1], "tokens_per_segment", "tokens a segment (log)"),
    ):
        for name in names:
            points = [(r[key], r["quantile"]) for r in rows if r["class"] == name and r[key] > 0]
            axes.plot(
                [value for value, _ in points], [share for _, share in points], linewidth=1.8,
                color=CLASS_COLOURS.get(name, INK), linestyle=_LINES.get(name, "-"),
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(label)
    panels[0].set_ylabel("share of segments")
    from matplotlib.lines import Line2D

    legend(
        figure,
        [
            Line2D([], [], color=CLASS_COLOURS.get(name, INK), linestyle=_LINES.get(name, "-"),
                   label=name)
            for name in names
        ],
    )  # fmt: skip
    return figure


def comparison_figure(comparison: Sequence[Mapping[str, Any]]) -> Figure | None:
    """How far ours lie from what is published, a row a figure of the paper."""
    rated = [row for row in comparison if isinstance(row["deviation"], (int, float))]
    if not rated:
        return None
    names = list(dict.fromkeys(str(row["figure"]) for row in rated))
    figure, (axes,) = _figure(1, 1.6 + 0.3 * len(names), "")
    for within, marker, colour in ((True, "o", BAR_COLOUR), (False, "X", MISSED_COLOUR)):
        rows = [row for row in rated if bool(row["within"]) == within]
        axes.plot(
            [100.0 * row["deviation"] for row in rows],
            [names.index(str(row["figure"])) for row in rows],
            marker, color=colour, markeredgecolor=INK, markersize=7,
            label=f"{'met' if within else 'missed'} ({len(rows):,})",
        )  # fmt: skip
    axes.axvline(0, color=INK, linewidth=1.0)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("ours against published, %")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _figure(
    panels: int, height: float, told: str, *, share_y: bool = True
) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(5.2, 4.6 * panels), height), layout="constrained")
    grid = figure.subplots(1, panels, sharey=share_y, squeeze=False)[0]
    for axes in grid:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(visible=True, color="#DDDDDD", linewidth=0.6)
        axes.set_axisbelow(True)
    if told:
        short = told if len(told) <= _TITLE_CHARACTERS else told[: _TITLE_CHARACTERS - 1] + "…"
        # Matplotlib reads what stands between dollars as mathematics.
        figure.suptitle(short.replace("$", r"\$"), fontsize=10.5, color=INK)
    return figure, list(grid)

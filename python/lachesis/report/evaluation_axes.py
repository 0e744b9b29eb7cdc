"""How each figure of an evaluation is drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lachesis.report.html.plots.comparison import MISSED_COLOUR
from lachesis.report.html.plots.load import is_common
from lachesis.report.html.plots.years import axis_title, years_axis
from lachesis.report.load_curves import LoadCurve
from lachesis.report.over_time import OverTime
from lachesis.report.policy_style import PolicyStyle
from lachesis.report.questions import Question, Run, in_memory_order, in_policy_order
from lachesis.report.run_plot import BAR_COLOUR, CLASS_COLOURS, INK, WARRANTY_COLOUR
from lachesis.report.write_shares import tier_share, write_shares
from lachesis.results.measures import TIERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

Styles = Mapping[str, PolicyStyle]
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
        for place, policy in enumerate(policies):
            shift = 0.0 if len(policies) == 1 else 0.5 * (place / (len(policies) - 1) - 0.5)
            shown = [
                run
                for run in question.runs
                if run["policy"] == policy and run["hbf_lifetime_years"] is not None
            ]
            x = [memories.index(run["memory"]) + shift for run in shown]
            _draw_policy(axes, x, shown, styles[policy])
        _finish_years(axes, question.runs, axis)
        axes.set_xticks(range(len(memories)), memories)
        axes.set_xlim(-0.5, len(memories) - 0.5)
        axes.set_title(f"SLO {question.asked['slo']}", fontsize=10)
        axes.set_xlabel("memory split, HBM / HBF stacks")
    panels[0].set_ylabel(axis_title(axis))
    _years_legend(figure, policies, styles, runs)
    return figure


def load_curve_figure(curve: LoadCurve, styles: Styles) -> Figure:
    """Device-years over given loads."""
    figure, (axes,) = _figure(1, 3.6, curve.told)
    axis = years_axis(curve.runs)
    policies = in_policy_order(run["policy"] for run in curve.runs)
    for policy in policies:
        shown = [run for run in curve.runs if run["policy"] == policy]
        _draw_policy(axes, [run["load_sessions"] for run in shown], shown, styles[policy])
    _finish_years(axes, curve.runs, axis)
    axes.set_xlabel("live sessions of the node")
    axes.set_ylabel(axis_title(axis))
    _years_legend(figure, policies, styles, curve.runs)
    return figure


def _draw_policy(axes: Axes, x: Sequence[float], runs: Sequence[Run], style: PolicyStyle) -> None:
    """A policy's line, intervals and symbols; hollow where a run misses the SLO."""
    years = [run["hbf_lifetime_years"] for run in runs]
    axes.plot(x, years, style.line, color=style.colour, linewidth=1.2, zorder=2)
    for at, run in zip(x, runs, strict=True):
        y = run["hbf_lifetime_years"]
        low, high = run["hbf_lifetime_years_low"], run["hbf_lifetime_years_high"]
        if low is not None and high is not None:
            axes.errorbar(
                at, y, yerr=[[y - low], [high - y]], color=INK, capsize=2.5, linewidth=1.0,
                zorder=3,
            )  # fmt: skip
        axes.plot(
            at, y, style.marker, markersize=7, markeredgecolor=INK, zorder=4,
            color=style.colour if run["meets_slo"] else "white",
        )  # fmt: skip


def _finish_years(axes: Axes, runs: Sequence[Run], axis: Mapping[str, Any]) -> None:
    """The warranty's line, and the axis of device-years."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for term in sorted({run["warranty_years"] for run in runs}):
        axes.axhline(term, color=WARRANTY_COLOUR, linestyle=(0, (5, 3)), linewidth=1.5)
    axes.set_yscale(axis["type"])
    if axis["type"] == "log":
        axes.set_ylim(*(10.0**end for end in axis["range"]))
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(*axis["range"])


def _years_legend(
    figure: Figure, policies: Sequence[str], styles: Styles, runs: Sequence[Run]
) -> None:
    terms = sorted({run["warranty_years"] for run in runs})
    _legend(
        figure,
        [_line(policy, styles[policy]) for policy in policies]
        + [_warranty_line(term) for term in terms],
    )


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
        for row, (_, found) in enumerate(rows):
            ends = {"hbm": 0.0, "hbf": 0.0}
            for (name, tier), share in found.items():
                sign = -1.0 if tier == "hbm" else 1.0
                used.add(name)
                axes.barh(
                    row, sign * share, left=sign * ends[tier], height=0.72, edgecolor=INK,
                    color=CLASS_COLOURS[name], linewidth=0.5,
                    hatch="////" if tier == "hbf" else None,
                )  # fmt: skip
                ends[tier] += share
        axes.axvline(0, color=INK, linewidth=1.0)
        names = [f"{run['memory']}  {run['policy']}" for run, _ in rows]
        axes.set_yticks(range(len(rows)), names, fontsize=8)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        reach = max((tier_share(found, tier) for _, found in rows for tier in TIERS), default=1.0)
        axes.set_xlim(-reach * 1.05, reach * 1.05)
        axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        axes.set_xlabel("← to HBM, %   of written bytes   to flash, % →")
        axes.set_title(f"SLO {question.asked['slo']}", fontsize=10)
    _legend(figure, [_patch(name) for name in CLASS_COLOURS if name in used])
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
        for policy in question.policies:
            shown = [
                run
                for run in question.runs
                if run["policy"] == policy and run["admitted_sessions"] is not None
            ]
            axes.plot(
                [memories.index(run["memory"]) for run in shown],
                [run["admitted_sessions"] for run in shown],
                color=styles[policy].colour, marker=styles[policy].marker,
                linestyle=styles[policy].line, markeredgecolor=INK, markersize=7,
            )  # fmt: skip
        axes.set_xticks(range(len(memories)), memories)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("memory split, HBM / HBF stacks")
        axes.set_title(f"SLO {question.asked['slo']}", fontsize=10)
    panels[0].set_ylabel("live sessions of the node")
    _legend(figure, [_line(policy, styles[policy]) for policy in used])
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

    _legend(
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

    _legend(
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


def _line(policy: str, style: PolicyStyle) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D(
        [], [], color=style.colour, marker=style.marker, linestyle=style.line, markersize=7,
        markeredgecolor=INK, label=policy.replace("$", r"\$"),
    )  # fmt: skip


def _warranty_line(term: float) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D(
        [], [], color=WARRANTY_COLOUR, linestyle=(0, (5, 3)), label=f"{term:g}-year warranty"
    )


def _patch(name: str) -> Patch:
    from matplotlib.patches import Patch

    return Patch(facecolor=CLASS_COLOURS[name], edgecolor=INK, linewidth=0.5, label=name)


def _legend(figure: Figure, handles: Sequence[Any]) -> None:
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(4, len(handles)), frameon=False,
        fontsize=9,
    )  # fmt: skip

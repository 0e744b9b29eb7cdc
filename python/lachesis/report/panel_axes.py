"""What one panel of a figure of many runs shows, drawn by matplotlib as on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lachesis.report.policy_style import PolicyStyle
from lachesis.report.questions import Run, in_policy_order
from lachesis.report.run_plot import CLASS_COLOURS, INK, WARRANTY_COLOUR
from lachesis.report.write_shares import tier_share
from lachesis.results.measures import TIERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

Styles = Mapping[str, PolicyStyle]


def draw_years_by_memory(
    axes: Axes,
    runs: Sequence[Run],
    memories: Sequence[str],
    policies: Sequence[str],
    styles: Styles,
    axis: Mapping[str, Any],
) -> None:
    """Device-years against the memory split, a line a policy, with intervals and the warranty.

    Args:
        axes: where.
        runs: of one question.
        memories: the splits in order.
        policies: in order; each has its place beside a split.
        styles: of the policies.
        axis: from `lachesis.report.html.plots.years.years_axis`.
    """
    for place, policy in enumerate(policies):
        shift = 0.0 if len(policies) == 1 else 0.5 * (place / (len(policies) - 1) - 0.5)
        shown = [
            run for run in runs if run["policy"] == policy and run["hbf_lifetime_years"] is not None
        ]
        x = [memories.index(run["memory"]) + shift for run in shown]
        _draw_policy(axes, x, shown, styles[policy])
    _finish_years(axes, runs, axis)
    axes.set_xticks(range(len(memories)), memories)
    axes.set_xlim(-0.5, len(memories) - 0.5)
    axes.set_xlabel("memory split, HBM / HBF stacks")


def draw_years_by_load(
    axes: Axes,
    runs: Sequence[Run],
    policies: Sequence[str],
    styles: Styles,
    axis: Mapping[str, Any],
) -> None:
    """Device-years over given loads, a line a policy; arguments as for `draw_years_by_memory`."""
    for policy in policies:
        shown = [run for run in runs if run["policy"] == policy]
        _draw_policy(axes, [run["load_sessions"] for run in shown], shown, styles[policy])
    _finish_years(axes, runs, axis)
    axes.set_xlabel("live sessions of the node")


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


def draw_writes(axes: Axes, rows: Sequence[tuple[Run, dict[tuple[str, str], float]]]) -> set[str]:
    """Shares of the written bytes, a bar a run; to flash rightwards and hatched.

    Args:
        axes: where.
        rows: runs with their shares from `lachesis.report.write_shares.write_shares`.

    Returns:
        The classes that were written.
    """
    used: set[str] = set()
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
    return used


def draw_loads(
    axes: Axes, runs: Sequence[Run], memories: Sequence[str], styles: Styles, column: str
) -> None:
    """Live sessions against the memory split, a line a policy.

    Args:
        axes: where.
        runs: of one question.
        memories: the splits in order.
        styles: of the policies.
        column: ``admitted_sessions`` or ``load_sessions``; runs without are left out.
    """
    for policy in in_policy_order(run["policy"] for run in runs):
        shown = [run for run in runs if run["policy"] == policy and run[column] is not None]
        axes.plot(
            [memories.index(run["memory"]) for run in shown],
            [run[column] for run in shown],
            color=styles[policy].colour, marker=styles[policy].marker,
            linestyle=styles[policy].line, markeredgecolor=INK, markersize=7,
        )  # fmt: skip
    axes.set_xticks(range(len(memories)), memories)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("memory split, HBM / HBF stacks")


def years_legend(
    figure: Figure, policies: Sequence[str], styles: Styles, runs: Sequence[Run]
) -> None:
    """The policies and the warranties below a figure of device-years."""
    terms = sorted({run["warranty_years"] for run in runs})
    legend(
        figure,
        [policy_line(policy, styles[policy]) for policy in policies]
        + [_warranty_line(term) for term in terms],
    )


def policy_line(policy: str, style: PolicyStyle) -> Line2D:
    """A policy's entry in a legend."""
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


def class_patch(name: str) -> Patch:
    """A segment class's entry in a legend."""
    from matplotlib.patches import Patch

    return Patch(facecolor=CLASS_COLOURS[name], edgecolor=INK, linewidth=0.5, label=name)


def legend(figure: Figure, handles: Sequence[Any]) -> None:
    """The legend of a figure, below it."""
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(4, len(handles)), frameon=False,
        fontsize=9,
    )  # fmt: skip

"""Plots of many runs, from their table: by memory split and policy, a panel a scenario.

A scenario is a trace, a model and an SLO. Whatever else varies in it (seeds, loads, overrides) is
averaged, and the spread of what was averaged drawn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lachesis.errors import InputError
from lachesis.report.policy_style import policy_styles
from lachesis.report.questions import in_memory_order, in_policy_order
from lachesis.report.run_plot import CLASS_COLOURS, INK, LINEAR_SPAN, WARRANTY_COLOUR
from lachesis.results.rows import measured_runs, write_column

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = dict[str, Any]

_SCENARIO = ("trace", "model", "slo")
_PANELS_MAX = 12
_COLUMNS_MAX = 3
#: Beside the colour, so that no policy is told apart by it alone.
_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "----", "++++", "oooo")


def device_years_figure(runs: pa.Table) -> Figure:
    """Device-years by memory split, a bar a policy, with the warranty.

    Args:
        runs: columns as in `lachesis.results.rows.run_columns`.

    Raises:
        InputError: no run has device-years.
    """
    rows = _rows(runs, "hbf_lifetime_years", "warranty_years")
    rated = [row for row in rows if row["hbf_lifetime_years"] is not None]
    if not rated:
        raise InputError("no run has device-years; the column notes says why")
    looks = _looks(rated)

    def draw(axes: Axes, members: Sequence[Row]) -> None:
        warranty = members[0]["warranty_years"]
        values = [row["hbf_lifetime_years"] for row in members] + [warranty]
        if max(values) > LINEAR_SPAN * min(values):
            axes.set_yscale("log")
        _draw_bars(axes, members, "hbf_lifetime_years", looks)
        axes.axhline(warranty, color=WARRANTY_COLOUR, linestyle=(0, (5, 3)), linewidth=1.4)
        axes.set_ylabel("device-years")

    return _panels(rated, draw)


def load_figure(runs: pa.Table) -> Figure:
    """Live sessions of the node by memory split, a bar a policy.

    Raises:
        InputError: no run has a closed load.
    """
    rows = [row for row in _rows(runs, "load_sessions") if row["load_sessions"] is not None]
    if not rows:
        raise InputError("no run has a closed load")
    looks = _looks(rows)

    def draw(axes: Axes, members: Sequence[Row]) -> None:
        _draw_bars(axes, members, "load_sessions", looks)
        axes.set_ylabel("live sessions")

    return _panels(rows, draw)


def writes_figure(runs: pa.Table) -> Figure:
    """What is written, by class: to HBM and to flash, as shares of all bytes, a bar a policy.

    Raises:
        InputError: nothing was written.
    """
    columns = {
        (name, tier): write_column(name, tier) for tier in ("hbm", "hbf") for name in CLASS_COLOURS
    }
    rows = _rows(runs, "hbm_write_bytes", "hbf_write_bytes", *columns.values())
    written = [row for row in rows if row["hbm_write_bytes"] + row["hbf_write_bytes"] > 0]
    if not written:
        raise InputError("nothing was written")
    shown = [
        name
        for name in CLASS_COLOURS
        if any(row[columns[(name, tier)]] for row in written for tier in ("hbm", "hbf"))
    ]

    def draw(axes: Axes, members: Sequence[Row]) -> None:
        groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in members:
            groups[(row["memory"], row["policy"])].append(row)
        for place, group in enumerate(groups.values()):
            below = 0.0
            total = sum(row["hbm_write_bytes"] + row["hbf_write_bytes"] for row in group)
            for (name, tier), column in columns.items():
                share = 100.0 * sum(row[column] for row in group) / total
                axes.bar(
                    place, share, bottom=below, width=0.7, color=CLASS_COLOURS[name], edgecolor=INK,
                    linewidth=0.4, hatch="////" if tier == "hbf" else None,
                )  # fmt: skip
                below += share
        axes.set_xticks(
            range(len(groups)), [f"{policy}\n{memory}" for memory, policy in groups],
            rotation=90 if len(groups) > 3 else 0, fontsize=7.5,
        )  # fmt: skip
        axes.set_ylim(0, 100)
        axes.set_ylabel("share of written bytes, %")

    figure = _panels(written, draw, policies=False)
    _legend(
        figure,
        [(name, CLASS_COLOURS[name], "") for name in shown] + [("to flash", "white", "////")],
    )
    return figure


def _rows(runs: pa.Table, *columns: str) -> list[Row]:
    found: list[Row] = (
        measured_runs(runs).select([*_SCENARIO, "memory", "policy", *columns]).to_pylist()
    )
    return found


def _panels(
    rows: Sequence[Row], draw: Callable[[Axes, Sequence[Row]], None], *, policies: bool = True
) -> Figure:
    """A figure with a panel a scenario, and a legend of the policies."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    scenarios: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        scenarios[tuple(row[name] for name in _SCENARIO)].append(row)
    shown = list(scenarios.items())[:_PANELS_MAX]
    across = min(_COLUMNS_MAX, len(shown))
    down = -(-len(shown) // across)
    with mpl.rc_context({"font.size": 9, "hatch.linewidth": 0.6}):
        figure = Figure(figsize=(1.2 + 3.9 * across, 0.8 + 3.2 * down), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False)
        for axes in grid.flat[len(shown) :]:
            axes.set_visible(False)
        for axes, (scenario, members) in zip(grid.flat, shown, strict=False):
            draw(axes, members)
            axes.set_title(" · ".join(scenario), fontsize=8.5, color=INK)
            axes.spines[["top", "right"]].set_visible(False)
        if len(scenarios) > len(shown):
            figure.supxlabel(f"{len(scenarios) - len(shown):,} more scenarios are not drawn")
        if policies:
            _legend(figure, [(name, *look) for name, look in _looks(rows).items()])
    return figure


def _draw_bars(
    axes: Axes, rows: Sequence[Row], column: str, looks: Mapping[str, tuple[str, str]]
) -> None:
    """Means by split and policy, with the span of what was averaged."""
    memories = in_memory_order(row["memory"] for row in rows)
    policies = _policies(rows)
    width = 0.8 / len(policies)
    for position, policy in enumerate(policies):
        fill, hatch = looks[policy]
        for place, memory in enumerate(memories):
            values = [
                row[column] for row in rows if row["memory"] == memory and row["policy"] == policy
            ]
            if not values:
                continue
            mean = sum(values) / len(values)
            axes.bar(
                place + (position - (len(policies) - 1) / 2) * width, mean, width=width, color=fill,
                edgecolor=INK, linewidth=0.5, hatch=hatch,
                yerr=[[mean - min(values)], [max(values) - mean]] if len(values) > 1 else None,
                capsize=2,
            )  # fmt: skip
    axes.set_xticks(range(len(memories)), memories)
    axes.set_xlabel("memory split, HBM/HBF stacks")


def _policies(rows: Sequence[Row]) -> list[str]:
    return in_policy_order(row["policy"] for row in rows)


def _looks(rows: Sequence[Row]) -> dict[str, tuple[str, str]]:
    """Colour and hatch of each policy, the same in every panel."""
    return {
        policy: (style.colour, _HATCHES[position % len(_HATCHES)])
        for position, (policy, style) in enumerate(
            policy_styles(row["policy"] for row in rows).items()
        )
    }


def _legend(figure: Figure, entries: Sequence[tuple[str, str, str]]) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=fill, edgecolor=INK, linewidth=0.5, hatch=hatch, label=name)
        for name, fill, hatch in entries
    ]
    figure.legend(handles=handles, loc="outside right upper", frameon=False)

"""Occupancy and KV writes over simulated time, a line a policy and tier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lachesis.report.html.plots.panel import Panel, Plot, drawn_text, rounded
from lachesis.report.over_time import POINTS_MAX, Floats, OverTime, cell_text
from lachesis.report.policy_style import PolicyStyle
from lachesis.results.measures import TIERS

#: Cells whose runs are shown over time; a page must stay small enough to open.
CELLS_MAX = 60


def timeline_plot(
    cells: Sequence[Sequence[OverTime]], styles: Mapping[str, PolicyStyle]
) -> Plot | None:
    """The plot, with a selector of its own over cells; None where no run has a timeline."""
    if not cells:
        return None
    shown = cells[:CELLS_MAX]
    caption = (
        "Solid lines are HBM, dotted ones flash. Each point is a mean over the time before it "
        f"(at most {POINTS_MAX} points a line)."
    )
    if len(shown) < len(cells):
        caption += f" The first {len(shown):,} of {len(cells):,} cells are shown."
    return Plot(
        "timeline",
        "Over time",
        caption,
        [_panels(cell, styles) for cell in shown],
        follows=False,
        labels=[cell_text(cell[0].run) for cell in shown],
        label="Cell",
    )


def _panels(cell: Sequence[OverTime], styles: Mapping[str, PolicyStyle]) -> list[Panel]:
    occupancy, rates = [], []
    for each in cell:
        for tier in TIERS:
            line = _line(each, tier, styles[each.run["policy"]])
            occupancy.append(line | _values(each.occupancy_percent[tier], "%{x:.2f} h: %{y:.1f} %"))
            rates.append(line | _values(each.writes_gb_per_s[tier], "%{x:.2f} h: %{y:.3g} GB/s"))
    hours = {"title": {"text": "simulated time, hours"}}
    held = {"title": {"text": "blocks that are not free, %"}, "range": [0, 104]}
    written = {"title": {"text": "GB/s, without amplification"}, "rangemode": "tozero"}
    return [
        Panel("Occupancy", occupancy, {"xaxis": hours, "yaxis": held}),
        Panel("KV writes of the node", rates, {"xaxis": hours, "yaxis": written}),
    ]


def _line(each: OverTime, tier: str, style: PolicyStyle) -> dict[str, Any]:
    policy = each.run["policy"]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{drawn_text(policy)}, {'HBM' if tier == 'hbm' else 'flash'}",
        "meta": {"policy": policy},
        "x": [rounded(value) for value in each.time_h.tolist()],
        "line": {
            "color": style.colour,
            "width": 2,
            "dash": "solid" if tier == "hbm" else "dot",
        },
    }


def _values(values: Floats, hover: str) -> dict[str, Any]:
    return {"y": [rounded(value) for value in values.tolist()], "hovertemplate": hover}

"""Device-years against the load, where several loads were given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lachesis.report.html.plots.panel import Panel, Plot
from lachesis.report.html.plots.years import (
    axis_title,
    policy_traces,
    warranty_trace,
    years_axis,
)
from lachesis.report.load_curves import LoadCurve
from lachesis.report.policy_style import PolicyStyle
from lachesis.report.questions import in_policy_order

_CAPTION = (
    "Device-years over the live sessions of the node, at loads that were given. Where a line falls "
    "below the dashed one, the load is more than the flash stands for its warranty. Hollow symbols "
    "miss the SLO; symbols with a dot are not known to have settled."
)


def load_curve_plot(curves: Sequence[LoadCurve], styles: Mapping[str, PolicyStyle]) -> Plot | None:
    """The plot, with a selector of its own; None where no split was run at two given loads."""
    if not curves:
        return None
    return Plot(
        "load-curve",
        "Device-years by load",
        _CAPTION,
        [[_panel(curve, styles)] for curve in curves],
        follows=False,
        labels=[curve.told for curve in curves] if len(curves) > 1 else [],
        label="Split",
    )


def _panel(curve: LoadCurve, styles: Mapping[str, PolicyStyle]) -> Panel:
    axis = years_axis(curve.runs)
    loads = [run["load_sessions"] for run in curve.runs]
    ends = (min(loads), max(loads))
    data = [
        warranty_trace(term, ends) for term in sorted({run["warranty_years"] for run in curve.runs})
    ]
    for policy in in_policy_order(run["policy"] for run in curve.runs):
        runs = [run for run in curve.runs if run["policy"] == policy]
        data += policy_traces(
            policy, runs, [float(run["load_sessions"]) for run in runs], styles[policy]
        )
    return Panel(
        "",
        data,
        {
            "xaxis": {"title": {"text": "live sessions of the node"}, "zeroline": False},
            "yaxis": {"title": {"text": axis_title(axis)}, **axis},
        },
        wide=True,
    )

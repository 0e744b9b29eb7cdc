"""What plots of device-years share: the axis, the warranty, a policy's line and symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

from lachesis.report.fixed_length import is_fixed_length, is_known_settled
from lachesis.report.html.plots.panel import INK, WARRANTY, drawn_text, rounded
from lachesis.report.policy_style import PolicyStyle
from lachesis.report.questions import Run, load_text
from lachesis.report.run_plot import LINEAR_SPAN

_CROWDED_SPAN = 1e3


def years_axis(runs: Sequence[Run]) -> dict[str, Any]:
    """Type and range of an axis of device-years that holds all runs, intervals and warranties."""
    ends = [
        value
        for run in runs
        for value in (
            run["hbf_lifetime_years"], run["hbf_lifetime_years_low"],
            run["hbf_lifetime_years_high"], run["warranty_years"],
        )
        if value is not None and value > 0.0
    ]  # fmt: skip
    low, high = min(ends), max(ends)
    if high > LINEAR_SPAN * low:
        # Ticks at 1, 2 and 5, or at powers of ten where those would crowd.
        steps = (1, 2, 5) if high < _CROWDED_SPAN * low else (1,)
        ticks = [
            step * 10.0**power
            for power in range(floor(log10(low)) - 1, ceil(log10(high)) + 1)
            for step in steps
        ]
        return {
            "type": "log",
            "range": [log10(low / 1.6), log10(high * 1.6)],
            "tickvals": ticks,
            "ticktext": [f"{tick:,.12g}" for tick in ticks],
        }
    return {"type": "linear", "range": [0.0, 1.08 * high]}


def axis_title(axis: Mapping[str, Any]) -> str:
    """The title of an axis of device-years, which says where it is no linear one."""
    return "device-years (logarithmic)" if axis["type"] == "log" else "device-years"


def warranty_trace(term: float, ends: tuple[float, float]) -> dict[str, Any]:
    """A warranty of so many years as a line between two ends of the other axis."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{term:g}-year warranty",
        "x": list(ends),
        "y": [term, term],
        "line": {"color": WARRANTY, "dash": "dash", "width": 2},
        "hoverinfo": "skip",
    }


def policy_traces(
    policy: str, runs: Sequence[Run], x: Sequence[float], style: PolicyStyle
) -> list[dict[str, Any]]:
    """A policy's runs with their intervals, and its entry in the legend.

    The entry stands apart, as Plotly would show the first run's symbol, which may be hollow.

    Args:
        policy: its name.
        runs: with device-years.
        x: where each stands.
        style: of the policy.
    """
    above, below = [], []
    for run in runs:
        years = run["hbf_lifetime_years"]
        low, high = run["hbf_lifetime_years_low"], run["hbf_lifetime_years_high"]
        known = low is not None and high is not None
        above.append(rounded(high - years) if known else 0.0)
        below.append(rounded(years - low) if known else 0.0)
    line = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": drawn_text(policy),
        "meta": {"policy": policy},
        "line": {"color": style.colour, "width": 1.4, "dash": style.dash},
    }
    marker = {"color": style.colour, "size": 11, "line": {"color": INK, "width": 1.2}}
    return [
        {**line, "x": [None], "y": [None], "marker": {**marker, "symbol": style.symbol}},
        {
            **line,
            "showlegend": False,
            "x": [round(value, 3) for value in x],
            "y": [rounded(run["hbf_lifetime_years"], 5) for run in runs],
            "error_y": {
                "type": "data", "symmetric": False, "array": above, "arrayminus": below,
                "color": INK, "thickness": 1.4, "width": 4,
            },
            "marker": {**marker, "symbol": [_symbol(style, run) for run in runs]},
            "customdata": [_hover(run) for run in runs],
            "hovertemplate": "%{customdata}<extra></extra>",
        },
    ]  # fmt: skip


def _symbol(style: PolicyStyle, run: Run) -> str:
    hollow = "" if run["meets_slo"] else "-open"
    return f"{style.symbol}{hollow}{'' if is_known_settled(run) else '-dot'}"


def _hover(run: Run) -> str:
    low, high = run["hbf_lifetime_years_low"], run["hbf_lifetime_years_high"]
    lines = [
        f"<b>{drawn_text(run['policy'])}</b>, memory {drawn_text(run['memory'])}",
        f"{run['hbf_lifetime_years']:.4g} device-years",
        "no interval" if low is None or high is None else f"95 %: {low:.4g} to {high:.4g}",
        f"load {load_text(run)}",
    ]
    if run["gain_over_hbm_first"] is not None and run["policy"] != "hbm-first":
        lines.append(f"{run['gain_over_hbm_first']:.3g} times hbm-first")
    if not run["meets_slo"]:
        lines.append("misses the SLO")
    if not run["settled"]:
        lines.append("not settled")
    elif is_fixed_length(run):
        lines.append("of a fixed length")
    return "<br>".join(lines)

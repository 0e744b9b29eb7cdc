"""Device-years against the memory split, a line a policy, with intervals and the warranty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

from lachesis.report.html.plots.panel import INK, WARRANTY, Panel, Plot, drawn_text, rounded
from lachesis.report.policy_style import PolicyStyle
from lachesis.report.questions import Question, Run, in_memory_order, in_policy_order, load_text

_CAPTION = (
    "Each symbol is a run, each whisker its 95 % interval. Hollow symbols miss the SLO; symbols "
    "with a dot have not settled. Higher is better; the dashed line is the warranty."
)
# Beyond this span a linear axis hides how the shorter lives compare with the warranty.
_LINEAR_SPAN = 8.0
_CROWDED_SPAN = 1e3
# How far apart policies stand at one split, of the distance between splits.
_SPREAD = 0.5


def lifetime_plot(
    families: Sequence[Sequence[Question]], styles: Mapping[str, PolicyStyle]
) -> Plot:
    """The plot, a choice a family of questions, a panel an SLO."""
    return Plot(
        "lifetime",
        "Device-years by memory split",
        _CAPTION,
        [_panels(family, styles) for family in families],
    )


def _panels(family: Sequence[Question], styles: Mapping[str, PolicyStyle]) -> list[Panel]:
    runs = [run for question in family for run in question.runs]
    memories = in_memory_order(run["memory"] for run in runs)
    policies = in_policy_order(
        run["policy"] for run in runs if run["hbf_lifetime_years"] is not None
    )
    if not policies:
        return []
    axis = years_axis(runs)
    return [
        Panel(
            title=f"SLO {question.asked['slo']}",
            data=[
                *_warranty(question, len(memories)),
                *(
                    trace
                    for place, policy in enumerate(policies)
                    for trace in (
                        _legend(policy, styles[policy]),
                        _line(question, policy, place, len(policies), memories, styles[policy]),
                    )
                ),
            ],
            layout={
                "xaxis": {
                    "title": {"text": "memory split, HBM / HBF stacks"},
                    "tickvals": list(range(len(memories))),
                    "ticktext": [drawn_text(name) for name in memories],
                    "range": [-0.5, len(memories) - 0.5],
                    "showgrid": False,
                    "zeroline": False,
                },
                "yaxis": {"title": {"text": axis_title(axis)}, **axis},
            },
        )
        for question in family
    ]


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
    if high > _LINEAR_SPAN * low:
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


def _warranty(question: Question, memories: int) -> list[dict[str, Any]]:
    terms = sorted({run["warranty_years"] for run in question.runs})
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"{term:g}-year warranty",
            "x": [-0.5, memories - 0.5],
            "y": [term, term],
            "line": {"color": WARRANTY, "dash": "dash", "width": 2},
            "hoverinfo": "skip",
        }
        for term in terms
    ]


def _legend(policy: str, style: PolicyStyle) -> dict[str, Any]:
    """A policy's entry: Plotly would show the first run's symbol, which may be hollow."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": drawn_text(policy),
        "meta": {"policy": policy},
        "x": [None],
        "y": [None],
        "line": {"color": style.colour, "width": 1.4, "dash": style.dash},
        "marker": {
            "color": style.colour,
            "symbol": style.symbol,
            "size": 11,
            "line": {"color": INK, "width": 1.2},
        },
    }


def _line(
    question: Question,
    policy: str,
    place: int,
    places: int,
    memories: Sequence[str],
    style: PolicyStyle,
) -> dict[str, Any]:
    runs = [
        run
        for run in question.runs
        if run["policy"] == policy and run["hbf_lifetime_years"] is not None
    ]
    shift = 0.0 if places == 1 else _SPREAD * (place / (places - 1) - 0.5)
    above, below = [], []
    for run in runs:
        years = run["hbf_lifetime_years"]
        low, high = run["hbf_lifetime_years_low"], run["hbf_lifetime_years_high"]
        known = low is not None and high is not None
        above.append(rounded(high - years) if known else 0.0)
        below.append(rounded(years - low) if known else 0.0)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": drawn_text(policy),
        "showlegend": False,
        "meta": {"policy": policy},
        "x": [round(memories.index(run["memory"]) + shift, 3) for run in runs],
        "y": [rounded(run["hbf_lifetime_years"], 5) for run in runs],
        "error_y": {
            "type": "data", "symmetric": False, "array": above, "arrayminus": below,
            "color": INK, "thickness": 1.4, "width": 4,
        },
        "line": {"color": style.colour, "width": 1.4, "dash": style.dash},
        "marker": {
            "color": style.colour,
            "symbol": [_symbol(style, run) for run in runs],
            "size": 11,
            "line": {"color": INK, "width": 1.2},
        },
        "customdata": [_hover(run) for run in runs],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip


def _symbol(style: PolicyStyle, run: Run) -> str:
    hollow = "" if run["meets_slo"] else "-open"
    return f"{style.symbol}{hollow}{'' if run['settled'] else '-dot'}"


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
    return "<br>".join(lines)

"""Device-years against the memory split, a line a policy, with intervals and the warranty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lachesis.report.html.plots.panel import Panel, Plot, drawn_text
from lachesis.report.html.plots.years import (
    axis_title,
    policy_traces,
    warranty_trace,
    years_axis,
)
from lachesis.report.policy_style import PolicyStyle
from lachesis.report.questions import Question, in_memory_order, in_policy_order

_CAPTION = (
    "Each symbol is a run, each whisker its 95 % interval. Hollow symbols miss the SLO; symbols "
    "with a dot are not known to have settled. Higher is better; the dashed line is the warranty."
)
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
                *(
                    warranty_trace(term, (-0.5, len(memories) - 0.5))
                    for term in sorted({run["warranty_years"] for run in question.runs})
                ),
                *(
                    trace
                    for place, policy in enumerate(policies)
                    for trace in _policy(
                        question, policy, memories, _shift(place, len(policies)), styles[policy]
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


def _shift(place: int, places: int) -> float:
    """How far beside its split a policy stands, so that intervals do not cover one another."""
    return 0.0 if places == 1 else _SPREAD * (place / (places - 1) - 0.5)


def _policy(
    question: Question, policy: str, memories: Sequence[str], shift: float, style: PolicyStyle
) -> list[dict[str, Any]]:
    runs = [
        run
        for run in question.runs
        if run["policy"] == policy and run["hbf_lifetime_years"] is not None
    ]
    return policy_traces(
        policy, runs, [memories.index(run["memory"]) + shift for run in runs], style
    )

"""The load that each SLO admits, by memory split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lachesis.report.html.plots.panel import INK, Panel, Plot, drawn_text
from lachesis.report.policy_style import PolicyStyle
from lachesis.report.questions import Question, in_memory_order

_COMMON = (
    "The most live sessions of the node that each SLO admits; every policy was replayed at the "
    "same load."
)
_EACH = "The most live sessions of the node that each SLO admits, searched for under each policy."
# Colours and hatches of SLOs, the tightest first.
_SLO_STYLES = (
    ("#0072B2", ""), ("#E69F00", "/"), ("#009E73", "x"), ("#CC79A7", "."), ("#56B4E9", "-"),
)  # fmt: skip


def load_plot(
    families: Sequence[Sequence[Question]], styles: Mapping[str, PolicyStyle]
) -> Plot | None:
    """The plot, a choice a family of questions; None where every load was given."""
    searched = [
        run["admitted_sessions"] is not None
        for family in families
        for question in family
        for run in question.runs
    ]
    if not any(searched):
        return None
    common = all(is_common(question) for family in families for question in family)
    if common:
        choices = [[_by_slo(family)] for family in families]
    else:
        choices = [[_by_policy(question, styles) for question in family] for family in families]
    return Plot("load", "Load admitted", _COMMON if common else _EACH, choices)


def is_common(question: Question) -> bool:
    """Whether all policies have the same load at each split."""
    loads: dict[str, set[int | None]] = {}
    for run in question.runs:
        loads.setdefault(run["memory"], set()).add(run["admitted_sessions"])
    return all(len(found) == 1 for found in loads.values())


def _by_slo(family: Sequence[Question]) -> Panel:
    data = []
    for place, question in enumerate(family):
        admitted = {run["memory"]: run["admitted_sessions"] for run in question.runs}
        memories = in_memory_order(admitted)
        colour, shape = _SLO_STYLES[place % len(_SLO_STYLES)]
        data.append(
            _bars(f"SLO {question.asked['slo']}", memories, [admitted[m] for m in memories])
            | {
                "marker": {
                    "color": colour,
                    "pattern": {
                        "shape": shape,
                        "size": 7,
                        "solidity": 0.3,
                        "fgcolor": "#222222",
                        "fillmode": "overlay",
                    },
                    "line": {"color": INK, "width": 0.8},
                }
            }
        )
    return Panel("", data, _layout(), wide=True)


def _by_policy(question: Question, styles: Mapping[str, PolicyStyle]) -> Panel:
    data = []
    for policy in question.policies:
        admitted = {
            run["memory"]: run["admitted_sessions"]
            for run in question.runs
            if run["policy"] == policy
        }
        memories = in_memory_order(admitted)
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": drawn_text(policy),
                "meta": {"policy": policy},
                "x": [drawn_text(name) for name in memories],
                "y": [admitted[name] for name in memories],
                "line": {"color": styles[policy].colour, "dash": styles[policy].dash},
                "marker": {
                    "color": styles[policy].colour,
                    "symbol": styles[policy].symbol,
                    "size": 11,
                    "line": {"color": INK, "width": 1},
                },
                "hovertemplate": "memory %{x}<br>%{y:,} sessions",
            }
        )
    return Panel(f"SLO {question.asked['slo']}", data, _layout())


def _bars(name: str, memories: Sequence[str], loads: Sequence[int | None]) -> dict[str, Any]:
    return {
        "type": "bar",
        "name": drawn_text(name),
        "x": [drawn_text(memory) for memory in memories],
        "y": list(loads),
        "text": ["" if load is None else f"{load:,}" for load in loads],
        "textposition": "outside",
        "cliponaxis": False,
        "hovertemplate": "memory %{x}<br>%{y:,} sessions",
    }


def _layout() -> dict[str, Any]:
    return {
        "barmode": "group",
        "xaxis": {"title": {"text": "memory split, HBM / HBF stacks"}, "type": "category",
                  "showgrid": False},
        "yaxis": {"title": {"text": "live sessions of the node"}, "rangemode": "tozero"},
    }  # fmt: skip

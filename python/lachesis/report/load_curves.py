"""Runs of one split at several given loads, so that years can be drawn against load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lachesis.report.questions import Question, Run


@dataclass(frozen=True)
class LoadCurve:
    """One split under everything that a question asks but the load.

    Attributes:
        told: what sets it apart from the other curves; empty where there is but one.
        runs: with device-years, by load.
    """

    told: str
    runs: tuple[Run, ...]


def load_curves(found: Sequence[Question]) -> list[LoadCurve]:
    """Every split that was run at two or more given loads.

    Example:
        >>> run = {"load": "closed", "admitted_sessions": None, "memory": "2/6",
        ...        "hbf_lifetime_years": 5.0}
        >>> asked = {"trace": "tau3", "slo": "tight"}
        >>> curves = load_curves([Question(asked | {"load": "16"}, (run | {"load_sessions": 16},)),
        ...                       Question(asked | {"load": "8"}, (run | {"load_sessions": 8},))])
        >>> [[run["load_sessions"] for run in curve.runs] for curve in curves]
        [[8, 16]]
    """
    groups: dict[tuple[str, ...], list[Run]] = {}
    for question in found:
        asked = tuple(words for name, words in question.asked.items() if name != "load")
        for run in question.runs:
            given = run["load"] == "closed" and run["admitted_sessions"] is None
            if given and run["hbf_lifetime_years"] is not None:
                groups.setdefault((*asked, f"memory {run['memory']}"), []).append(run)
    kept = {
        key: sorted(runs, key=lambda run: run["load_sessions"])
        for key, runs in groups.items()
        if len({run["load_sessions"] for run in runs}) > 1
    }
    vary = [len(set(words)) > 1 for words in zip(*kept, strict=True)]
    return [
        LoadCurve(
            " · ".join(word for word, varies in zip(key, vary, strict=True) if varies), tuple(runs)
        )
        for key, runs in kept.items()
    ]

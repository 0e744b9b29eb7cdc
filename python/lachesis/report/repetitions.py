"""Questions that differ by seed alone, taken together: seeds are repetitions of one measurement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lachesis.report.html.phrases import listed
from lachesis.report.questions import Question, Run
from lachesis.results.measures import TIERS
from lachesis.results.rows import write_column
from lachesis.traces.schema import SegmentClass

_YEARS = "hbf_lifetime_years"
_SEEDS_LISTED = 4
_WRITTEN = [write_column(str(name), tier) for name in SegmentClass for tier in TIERS]


def over_seeds(found: Sequence[Question]) -> list[Question]:
    """The questions with the seeds of each joined; their runs by memory split and policy.

    A run of several seeds has the mean of their device-years, between the least and the greatest in
    place of an interval, the mean load, and the sum of what they wrote; ``admitted_range`` holds
    the least and the greatest load where it was searched for. It meets its SLO, and has
    settled, if all have. Its ``repetitions`` say how many there are.

    Example:
        >>> run = {"memory": "2/6", "policy": "lachesis", "load_sessions": 8, "meets_slo": True,
        ...        "admitted_sessions": None, "settled": True, **dict.fromkeys(_WRITTEN, 5)}
        >>> ends = ("hbf_lifetime_years", "hbf_lifetime_years_low", "hbf_lifetime_years_high")
        >>> asked = {"trace": "tau3", "seed": "1"}
        >>> one, = over_seeds([
        ...     Question(asked, (run | dict.fromkeys(ends, 4.0),)),
        ...     Question(asked | {"seed": "2"}, (run | dict.fromkeys(ends, 6.0),)),
        ... ])
        >>> one.asked["seed"], [one.runs[0][end] for end in ends]
        ('1 and 2', [5.0, 4.0, 6.0])
    """
    groups: dict[tuple[str, ...], list[Question]] = {}
    for question in found:
        rest = tuple(words for name, words in question.asked.items() if name != "seed")
        groups.setdefault(rest, []).append(question)
    return [_joined(group) for group in groups.values()]


def _joined(group: Sequence[Question]) -> Question:
    seeds = [question.asked["seed"] for question in group]
    told = listed(seeds) if len(seeds) <= _SEEDS_LISTED else f"{len(seeds):,} seeds"
    alike: dict[tuple[str, str], list[Run]] = {}
    for question in group:
        for run in question.runs:
            alike.setdefault((run["memory"], run["policy"]), []).append(run)
    return Question(group[0].asked | {"seed": told}, tuple(map(_mean, alike.values())))


def _mean(runs: Sequence[Run]) -> Run:
    if len(runs) == 1:
        return runs[0] | {"repetitions": 1, "admitted_range": None}
    years = [run[_YEARS] for run in runs if run[_YEARS] is not None]
    known: dict[str, Any] = {
        _YEARS: _average(years),
        f"{_YEARS}_low": min(years, default=None),
        f"{_YEARS}_high": max(years, default=None),
    }
    for name in ("load_sessions", "admitted_sessions"):
        loads = [run[name] for run in runs if run[name] is not None]
        known[name] = _average(loads)
        known["admitted_range"] = (min(loads), max(loads)) if loads else None
    return {
        **runs[0],
        **known,
        **{name: sum(run[name] for run in runs) for name in _WRITTEN},
        "meets_slo": all(run["meets_slo"] for run in runs),
        "settled": all(run["settled"] for run in runs),
        "repetitions": len(runs),
    }


def _average(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None

"""Which runs of a question live longest, and which pass the warranty, as far as intervals tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lachesis.report.questions import Question, Run, is_bound

#: A 99th percentile up to this multiple of its limit misses the SLO closely.
CLOSE_MISS = 1.05

Verdict = Literal["passes", "falls short", "undecided"]


@dataclass(frozen=True)
class Ranking:
    """The runs of a question by how long the flash lasts.

    Attributes:
        best: those that no other run is known to outlive, the highest estimate first. More than one
            where intervals overlap, or where one has none.
        competing: all that may win: they have device-years, can be built, and meet the SLO or miss
            it closely (`is_close`).
        missed: have device-years, and miss the SLO by more.
        bounds: have device-years, and rest on what nobody can know beforehand.
        unrated: have no device-years.
    """

    best: tuple[Run, ...]
    competing: tuple[Run, ...]
    missed: tuple[Run, ...]
    bounds: tuple[Run, ...]
    unrated: tuple[Run, ...]


def rank(question: Question) -> Ranking:
    """Sort the runs of a question.

    Example:
        >>> run = {"policy": "lachesis", "memory": "2/6", "meets_slo": True,
        ...        "hbf_lifetime_years": 5.0, "hbf_lifetime_years_low": 4.8,
        ...        "hbf_lifetime_years_high": 5.2}
        >>> other = run | {"policy": "hbm-first", "hbf_lifetime_years_low": 4.0,
        ...                "hbf_lifetime_years": 4.5, "hbf_lifetime_years_high": 4.9}
        >>> [run["policy"] for run in rank(Question({}, (other, run))).best]
        ['lachesis', 'hbm-first']
    """
    rated = [run for run in question.runs if run["hbf_lifetime_years"] is not None]
    bounds = [run for run in rated if is_bound(run["policy"])]
    real = [run for run in rated if not is_bound(run["policy"])]
    competing = [run for run in real if run["meets_slo"] or is_close(run)]
    by_years = sorted(competing, key=lambda run: -run["hbf_lifetime_years"])
    best = [run for run in by_years if not is_apart(by_years[0], run)]
    return Ranking(
        best=tuple(best),
        competing=tuple(competing),
        missed=tuple(run for run in real if run not in competing),
        bounds=tuple(bounds),
        unrated=tuple(run for run in question.runs if run["hbf_lifetime_years"] is None),
    )


def is_close(run: Run) -> bool:
    """Whether a run misses the SLO by little at a load that was searched for.

    The search is made under one policy and over a shorter window, so that at the edge of the SLO
    which runs miss it by a hair is chance.

    Example:
        >>> run = {"meets_slo": False, "admitted_sessions": 654, "tpot_p99_s": 0.0605,
        ...        "slo_tpot_p99_s": 0.06, "ttft_p99_s": 1.1, "slo_ttft_p99_s": 2.0}
        >>> is_close(run), is_close(run | {"admitted_sessions": None})
        (True, False)
    """
    if run["meets_slo"] or not run["admitted_sessions"]:
        return False
    return all(
        run[measured] is not None and run[measured] <= CLOSE_MISS * run[limit]
        for measured, limit in (("tpot_p99_s", "slo_tpot_p99_s"), ("ttft_p99_s", "slo_ttft_p99_s"))
    )


def is_apart(longer: Run, shorter: Run) -> bool:
    """Whether the first is known to outlive the second: its whole interval lies above.

    Example:
        >>> one = {"hbf_lifetime_years_low": 5.0, "hbf_lifetime_years_high": 6.0}
        >>> is_apart(one, {"hbf_lifetime_years_low": 4.0, "hbf_lifetime_years_high": 4.9})
        True
        >>> is_apart(one, {"hbf_lifetime_years_low": None, "hbf_lifetime_years_high": None})
        False
    """
    low, high = longer["hbf_lifetime_years_low"], shorter["hbf_lifetime_years_high"]
    return low is not None and high is not None and low > high


def against_warranty(run: Run) -> Verdict:
    """Whether the flash outlives its warranty; undecided where its interval spans both or is none.

    Example:
        >>> against_warranty({"warranty_years": 5.0, "hbf_lifetime_years_low": 4.9,
        ...                   "hbf_lifetime_years_high": 5.3})
        'undecided'
    """
    low, high = run["hbf_lifetime_years_low"], run["hbf_lifetime_years_high"]
    if low is None or high is None:
        return "undecided"
    if low >= run["warranty_years"]:
        return "passes"
    return "falls short" if high < run["warranty_years"] else "undecided"


def by_verdict(runs: Sequence[Run]) -> dict[Verdict, list[Run]]:
    """The runs by what is known of them against the warranty."""
    found: dict[Verdict, list[Run]] = {"passes": [], "undecided": [], "falls short": []}
    for run in runs:
        found[against_warranty(run)].append(run)
    return found

"""Parts of sentences about runs: counts, places, intervals, factors."""

from __future__ import annotations

from collections.abc import Sequence

from lachesis.report.questions import Question, Run, in_memory_order, in_policy_order
from lachesis.report.run_summary import years_text


def count(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun.

    Example:
        >>> count(1, "run"), count(1200, "run")
        ('1 run', '1,200 runs')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(words: Sequence[str], joint: str = ", ") -> str:
    """Words as a sentence lists them.

    Example:
        >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
        ('a', 'a and b', 'a, b and c')
    """
    if len(words) < 2:
        return "".join(words)
    return f"{joint.join(words[:-1])} and {words[-1]}"


def run_place(run: Run) -> str:
    """Where and under what a run stands."""
    return f"at memory {run['memory']} under {run['policy']}"


def interval_text(run: Run) -> str:
    """The 95 % interval of a run's device-years."""
    low, high = run["hbf_lifetime_years_low"], run["hbf_lifetime_years_high"]
    if low is None or high is None:
        return "no interval"
    return f"95 % interval {years_text(low)} to {years_text(high)}"


def times_text(factor: float) -> str:
    """A factor with three digits.

    Example:
        >>> times_text(1.5117), times_text(12.345), times_text(250.2)
        ('1.51 times', '12.3 times', '250 times')
    """
    return f"{years_text(factor)} times"


def range_text(low: str, high: str, unit: str = "") -> str:
    """Two ends, said once where they read the same.

    Example:
        >>> range_text("3", "3", " %"), range_text("3", "5", " %")
        ('3 %', '3 to 5 %')
    """
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def places_text(runs: Sequence[Run], question: Question) -> str:
    """Runs of a question by policy: ``lachesis at 2/6 and 4/4; hbm-first at every split``.

    A policy stands at every split only if all the question's splits are among the runs.
    """
    whole = question.memories
    told = []
    for policy in in_policy_order(run["policy"] for run in runs):
        memories = in_memory_order(run["memory"] for run in runs if run["policy"] == policy)
        if len(whole) == 1:
            told.append(policy)
        elif len(memories) == len(whole):
            told.append(f"{policy} at every split")
        else:
            told.append(f"{policy} at {listed(memories)}")
    return "; ".join(told)

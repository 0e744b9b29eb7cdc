"""What is said of runs that cannot be run: how many, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lachesis.report.questions import Run

_REASONS_SHOWN = 3


def reasons(infeasible: Sequence[Run]) -> tuple[tuple[str, int], ...]:
    """Each reason with the number of runs that have it, the most frequent first.

    Example:
        >>> reasons([{"reason": "b"}, {"reason": "a"}, {"reason": "b"}])
        (('b', 2), ('a', 1))
    """
    counted = Counter(row["reason"] for row in infeasible)
    return tuple(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def infeasible_sentence(infeasible: Sequence[Run]) -> str:
    """How many runs are left out, and the most frequent reasons.

    Example:
        >>> infeasible_sentence([{"reason": "too large"}])
        '1 run cannot be run, and is left out: too large.'
        >>> infeasible_sentence([{"reason": "b"}, {"reason": "a"}, {"reason": "b"}])
        '3 runs cannot be run, and are left out: b (2 runs); a (1 run).'
    """
    found, total = reasons(infeasible), len(infeasible)
    told = [
        reason if len(found) == 1 else f"{reason} ({number:,} {'run' if number == 1 else 'runs'})"
        for reason, number in found[:_REASONS_SHOWN]
    ]
    if more := len(found) - len(told):
        told.append(f"and {more:,} other {'reason' if more == 1 else 'reasons'}")
    who = "1 run cannot be run, and is" if total == 1 else f"{total:,} runs cannot be run, and are"
    return f"{who} left out: {'; '.join(told)}."

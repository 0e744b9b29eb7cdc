"""What taking the k workers with the lowest scores selects (paper, section 3.5, Figure 7(b)).

Where scores or lifetimes tie at the border of a selection, each of the tied counts in part, as if
ties were broken by lot: the shares are the expected ones, and do not depend on the order of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Shares of the workers at which selections are reported.
FRACTIONS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6)


@dataclass(frozen=True)
class Selection:
    """Shares of a selection of k workers.

    Attributes:
        k: how many are selected.
        shortest_k: share of them among the k shortest-lived.
        shortest_2k: share among the 2k shortest-lived.
        avoids_longest_k: share that is not among the k longest-lived.
    """

    k: int
    shortest_k: float
    shortest_2k: float
    avoids_longest_k: float


def select(lifetime_s: Floats, scores: Floats, fraction: float) -> Selection:
    """The workers with the lowest scores, a fraction (above 0 to 1) of at least one worker.

    Example:
        >>> select(np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 6.0, 8.0, 7.0]), 0.5)
        Selection(k=2, shortest_k=1.0, shortest_2k=1.0, avoids_longest_k=1.0)
    """
    count = len(scores)
    k = selected_count(count, fraction)
    chosen = lowest(scores, k)
    return Selection(
        k=k,
        shortest_k=_shared(chosen, lowest(lifetime_s, k)),
        shortest_2k=_shared(chosen, lowest(lifetime_s, min(2 * k, count))),
        avoids_longest_k=1.0 - _shared(chosen, lowest(-lifetime_s, k)),
    )


def select_at_random(count: int, fraction: float) -> Selection:
    """What a random selection of that size holds on average.

    Example:
        >>> select_at_random(100, 0.1)
        Selection(k=10, shortest_k=0.1, shortest_2k=0.2, avoids_longest_k=0.9)
    """
    k = selected_count(count, fraction)
    return Selection(k, k / count, min(2 * k, count) / count, 1.0 - k / count)


def selected_count(count: int, fraction: float) -> int:
    """The nearest whole number of workers, at least one.

    Example:
        >>> selected_count(25, 0.1), selected_count(3, 0.1)
        (3, 1)
    """
    return max(1, int(np.floor(fraction * count + 0.5)))


def lowest(values: Floats, k: int) -> Floats:
    """How much of each value is among the k lowest: 1, 0, or the chance of those that tie.

    Example:
        >>> lowest(np.array([3.0, 1.0, 3.0, 9.0]), 2).tolist()
        [0.5, 1.0, 0.5, 0.0]
    """
    border = np.sort(values)[k - 1]
    below = values < border
    tied = values == border
    share: Floats = below + tied * ((k - int(below.sum())) / int(tied.sum()))
    return share


def _shared(chosen: Floats, wanted: Floats) -> float:
    """Share of a selection that is wanted too; sums of thirds may pass 1 by a rounding."""
    return min(1.0, math.fsum((chosen * wanted).tolist()) / math.fsum(chosen.tolist()))

"""The statistics that segments are compared by, each exact over all values or pairs.

Every result is the same for any order of its inputs, to the last digit: what is summed is summed
as integers, or by `math.fsum`, which rounds once.

**Percentile**, here and wherever this package prints one: of n values in order, the p-th percentile
stands at position (n - 1) p / 100, counted from 0, and between two values in proportion (numpy's
default, type 7 of Hyndman and Fan 1996). The median is the 50th.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Distribution:
    """Size, three percentiles and the mean of some values; None where there is no value.

    Example:
        >>> Distribution.of(np.array([0.0, 1.0, 2.0, 3.0, 9.0, 15.0]))
        Distribution(n=6, p10=0.5, p50=2.5, p90=12.0, mean=5.0)
    """

    n: int
    p10: float | None
    p50: float | None
    p90: float | None
    mean: float | None

    @classmethod
    def of(cls, values: Floats | Ints) -> Distribution:
        """The distribution of `values`, in their unit."""
        if not len(values):
            return cls(0, None, None, None, None)
        p10, p50, p90 = percentiles(values, 10, 50, 90)
        return cls(len(values), p10, p50, p90, math.fsum(values.tolist()) / len(values))


def percentiles(values: Floats | Ints, *which: float) -> list[float]:
    """Percentiles of at least one value, as the head of this module defines them.

    Example:
        >>> percentiles(np.array([4.0, 1.0, 3.0]), 50, 75)
        [3.0, 3.5]
    """
    found: list[float] = np.percentile(values, which).tolist()
    return found


def median(values: Floats | Ints) -> float:
    """The 50th percentile of at least one value."""
    return percentiles(values, 50)[0]


def spread(values: Floats | Ints) -> float | None:
    """The 90th over the 10th percentile; None without values or where the 10th is 0.

    Example:
        >>> spread(np.array([1.0, 2.0, 3.0])), spread(np.zeros(3))
        (2.3333333333333335, None)
    """
    if not len(values):
        return None
    low, high = percentiles(values, 10, 90)
    return high / low if low > 0 else None


def separability(above: Floats | Ints, below: Floats | Ints) -> float:
    """P(X > Y) + P(X = Y) / 2 for X of `above` and Y of `below`, over all pairs.

    By ranks, in O(n log n). Both must hold a value. Also known as the area under the ROC curve, or
    the Mann-Whitney U statistic over the number of pairs.

    Example:
        >>> separability(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
        0.875
    """
    ordered = np.sort(below)
    less = np.searchsorted(ordered, above, side="left")
    less_or_equal = np.searchsorted(ordered, above, side="right")
    return int((less + less_or_equal).sum()) / (2 * len(above) * len(below))


def overlap(first: Floats | Ints, second: Floats | Ints) -> float:
    """1 - sup |F - G| of two empirical distributions (1 minus Kolmogorov and Smirnov's distance).

    Both must hold a value.

    Example:
        >>> overlap(np.array([1.0, 2.0]), np.array([1.0, 2.0])), overlap(np.zeros(2), np.ones(2))
        (1.0, 0.0)
    """
    points = np.concatenate((first, second))
    of_first = np.searchsorted(np.sort(first), points, side="right") * len(second)
    of_second = np.searchsorted(np.sort(second), points, side="right") * len(first)
    pairs = len(first) * len(second)
    return (pairs - int(np.abs(of_first - of_second).max())) / pairs


def kendall_tau(first: Floats | Ints, second: Floats | Ints) -> float | None:
    """Kendall's tau-b of paired values, in O(n log n); None where either side is all alike.

    tau_b = (concordant - discordant) / sqrt((pairs - ties in first) (pairs - ties in second))

    Discordant pairs are the inversions of the second side once the pairs are in the order of the
    first (Knight 1966).

    Example:
        >>> kendall_tau(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))
        0.3333333333333333
    """
    rank_first = np.unique(first, return_inverse=True)[1].astype(np.int64)
    rank_second = np.unique(second, return_inverse=True)[1].astype(np.int64)
    count = len(rank_first)
    pairs = count * (count - 1) // 2
    tied_first = _tied_pairs(rank_first)
    tied_second = _tied_pairs(rank_second)
    untied = (pairs - tied_first) * (pairs - tied_second)
    if untied == 0:
        return None
    tied_both = _tied_pairs(rank_first * (int(rank_second.max()) + 1) + rank_second)
    # Pairs that tie in the first stand in the order of the second, so they count as no inversion.
    ordered = rank_second[np.lexsort((rank_second, rank_first))]
    discordant = inversions(ordered)
    concordant = pairs - tied_first - tied_second + tied_both - discordant
    return (concordant - discordant) / math.sqrt(untied)


def inversions(ranks: Ints) -> int:
    """Pairs of positions i < j with ranks[i] > ranks[j]; ranks are whole numbers from 0.

    Bit by bit from the highest: among values that agree in all higher bits, each 1 that stands
    before a 0 is an inversion that no lower bit can change; then the zeros go before the ones.

    Example:
        >>> inversions(np.array([2, 0, 1])), inversions(np.array([0, 1, 1]))
        (2, 0)
    """
    values = np.asarray(ranks, dtype=np.int64)
    found = 0
    for bit in reversed(range(int(values.max(initial=0)).bit_length())):
        ones = (values >> bit) & 1
        group_starts = np.flatnonzero(np.diff(values >> (bit + 1), prepend=-1))
        sizes = np.diff(group_starts, append=len(values))
        ones_before = np.cumsum(ones) - ones
        ones_before -= np.repeat(ones_before[group_starts], sizes)
        found += int(ones_before[ones == 0].sum())
        places = np.arange(len(values))
        in_group = places - np.repeat(group_starts, sizes)
        zeros = sizes - np.add.reduceat(ones, group_starts)
        goes_to = np.where(ones == 1, np.repeat(zeros, sizes) + ones_before, in_group - ones_before)
        moved = np.empty_like(values)
        moved[places - in_group + goes_to] = values
        values = moved
    return found


def _tied_pairs(ranks: Ints) -> int:
    """Pairs of equal values."""
    counts = np.unique(ranks, return_counts=True)[1].astype(np.int64)
    return int((counts * (counts - 1) // 2).sum())

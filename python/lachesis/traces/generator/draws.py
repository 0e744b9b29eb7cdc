"""Draws that repeat: streams keyed by name, stratified samples and exact apportionment.

Every random number of the corpora comes from here. Only ``Generator.random`` is used, since the
bits behind it are fixed by the bit generator, while numpy may change how its other distributions
turn bits into values. Permutations are the order of uniform draws and normal scores are their
inverse distribution function, so a corpus does not depend on the version of numpy.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lachesis.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_BISECTION_STEPS: Final = 200


def stream(seed: int, *names: str) -> np.random.Generator:
    """A generator that depends on ``seed`` and ``names`` alone.

    >>> float(stream(7, "tau3-airline", "turns").random()) == float(
    ...     stream(7, "tau3-airline", "turns").random())
    True
    """
    keys = [zlib.crc32(name.encode()) for name in names]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *keys])))


def permutation(rng: np.random.Generator, length: int) -> Ints:
    """A uniformly random order of ``range(length)``."""
    return np.argsort(rng.random(length), kind="stable")


def normal_scores(uniform: Floats) -> Floats:
    """Inverse of the standard normal distribution function, by Wichura's AS 241 (PPND16).

    >>> [round(float(z), 6) for z in normal_scores(np.array([0.025, 0.5, 0.9]))]
    [-1.959964, 0.0, 1.281552]
    """
    q = uniform - 0.5
    r = 0.180625 - q * q
    central = q * _ratio(r, _CENTRAL)
    tail = np.sqrt(-np.log(np.minimum(uniform, 1.0 - uniform)))
    near = _ratio(tail - 1.6, _NEAR)
    far = _ratio(tail - 5.0, _FAR)
    return np.where(np.abs(q) <= 0.425, central, np.sign(q) * np.where(tail <= 5.0, near, far))


def _ratio(x: Floats, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> Floats:
    above, below = coefficients
    return np.polyval(above, x) / np.polyval(below, x)


# Wichura 1988, Applied Statistics 37(3), AS 241: numerator and denominator, highest power first.
_CENTRAL: Final = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853,
     45921.953931549871457, 13731.693765509461125, 1971.5909503065514427,
     133.14166789178437745, 3.3871328727963666080),
    (5226.4952788528545610, 28729.085735721942674, 39307.895800092710610,
     21213.794301586595867, 5394.1960214247511077, 687.18700749205790830,
     42.313330701600911252, 1.0),
)  # fmt: skip
_NEAR: Final = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550,
     4.63033784615654529590, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940,
     2.05319162663775882187, 1.0),
)  # fmt: skip
_FAR: Final = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580,
     5.46378491116411436990, 6.65790464350110377720),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0),
)  # fmt: skip


def normals(rng: np.random.Generator, length: int) -> Floats:
    """Independent standard normal draws."""
    # 2^-54 keeps the draw off zero, where the score would be infinite.
    return normal_scores(rng.random(length) + 2.0**-54)


def strata(length: int) -> Floats:
    """Normal scores at the middles of ``length`` equal strata, ascending."""
    return normal_scores((np.arange(length) + 0.5) / length)


def place(values: Floats, order_by: Floats) -> Floats:
    """Hand out ``values`` (ascending) so that their order follows ``order_by``.

    >>> place(np.array([1.0, 2.0, 3.0]), np.array([0.3, -1.0, 5.0])).tolist()
    [2.0, 1.0, 3.0]
    """
    placed = np.empty_like(values)
    placed[np.argsort(order_by, kind="stable")] = values
    return placed


def stratified_lognormal(
    median: float, mean: float, length: int, *, bulk_sigma: float = 0.0, tail_share: float = 0.0
) -> Floats:
    """Ascending quantiles of a law with this median, whose own mean is ``mean`` exactly.

    A log-normal whose spread is solved for the mean; or, with ``tail_share``, a log-normal of
    spread ``bulk_sigma`` whose highest share of values is raised by one factor, solved for the
    mean. Solved for this number of values, since the middles of finitely many strata understate
    the mean of a heavy tail. Raises ``InputError`` when the mean cannot be met.

    >>> sample = stratified_lognormal(976, 1519, 313)
    >>> round(float(sample.mean())), round(float(np.median(sample)))
    (1519, 976)
    """
    scores = strata(length)
    if tail_share == 0.0:
        if mean < median:
            raise InputError(f"must be at least the median {median}", field="mean", value=mean)
        sigma = solve(lambda s: float(median * np.exp(s * scores).mean()), mean, 0.0, 12.0)
        return median * np.exp(sigma * scores)
    bulk = median * np.exp(bulk_sigma * scores)
    tail = np.arange(length) >= length - max(1, round(tail_share * length))
    factor = (mean * length - float(bulk[~tail].sum())) / float(bulk[tail].sum())
    if factor < 1.0:
        raise InputError("leaves no room for a tail", field="mean", value=mean)
    return np.where(tail, bulk * factor, bulk)


def solve(value_at: Callable[[float], float], target: float, low: float, high: float) -> float:
    """The argument in ``[low, high]`` at which the rising ``value_at`` meets ``target``."""
    for _ in range(_BISECTION_STEPS):
        middle = 0.5 * (low + high)
        if value_at(middle) < target:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def offsets(lengths: Ints) -> Ints:
    """Start of each group, and the end of the last, when groups of these lengths lie in a row.

    >>> offsets(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def index_within(lengths: Ints) -> Ints:
    """Position of each item within its group.

    >>> index_within(np.array([2, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    starts = offsets(lengths)[:-1]
    return np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(starts, lengths)


def group_sums(values: Ints, lengths: Ints) -> Ints:
    """Sum of the items of each group (0 for an empty one)."""
    running = np.concatenate(([0], np.cumsum(values)))
    bounds = offsets(lengths)
    return running[bounds[1:]] - running[bounds[:-1]]


def sums_before(values: Ints, lengths: Ints) -> Ints:
    """For each item the sum of the earlier items of its own group.

    >>> sums_before(np.array([5, 1, 4]), np.array([2, 1])).tolist()
    [0, 5, 0]
    """
    running = np.cumsum(values) - values
    starts = offsets(lengths)[:-1]
    first = np.minimum(starts, max(len(values) - 1, 0))
    return running - np.repeat(running[first] if len(values) else starts, lengths)


def apportion(totals: Ints, weights: Floats, lengths: Ints, minimum: int = 0) -> Ints:
    """Split each group's whole total over its items by weight, exactly.

    Every item gets ``minimum``; the rest goes by weight, rounded down, and what rounding left over
    goes one each to the largest remainders of the group (earlier items first among equals).
    A group's total must be at least ``minimum`` times its length; an empty group's total must be 0.

    >>> apportion(np.array([10]), np.array([1.0, 1.0, 1.0]), np.array([3]), minimum=1).tolist()
    [4, 3, 3]
    """
    spare = totals - minimum * lengths
    if np.any(spare < 0) or np.any((lengths == 0) & (totals != 0)):
        group = int(np.argmax((spare < 0) | ((lengths == 0) & (totals != 0))))
        raise InputError(
            f"must be at least {minimum} for each of {int(lengths[group])} items",
            row=f"group {group}",
            field="total",
            value=int(totals[group]),
        )
    group_of = np.repeat(np.arange(len(lengths)), lengths)
    weight_sums = np.bincount(group_of, weights=weights, minlength=len(lengths))
    # The shave keeps a product that rounding lifted onto a whole number from exceeding the total;
    # such an item then has the largest remainder and gets its unit back.
    exact = np.repeat(spare, lengths) * (weights / weight_sums[group_of]) * (1.0 - 1e-12)
    whole = np.floor(exact).astype(np.int64)
    left = spare - group_sums(whole, lengths)
    by_remainder = np.lexsort((-(exact - whole), group_of))
    rank = np.empty(len(weights), dtype=np.int64)
    rank[by_remainder] = index_within(lengths)
    return minimum + whole + (rank < left[group_of])


def whole_numbers(shape: Callable[[float], Floats], total: int, minimum: int, maximum: int) -> Ints:
    """Whole numbers in ``[minimum, maximum]`` that follow a shape and sum to ``total`` exactly.

    ``shape`` gives the values for a log scale; it is solved so that the clipped values sum to the
    total, and the remainders of rounding decide which are rounded up.
    """

    def clipped(log_scale: float) -> Floats:
        return np.clip(shape(log_scale), minimum, maximum)

    count = len(shape(0.0))
    if not minimum * count <= total <= maximum * count:
        raise InputError(
            f"must lie between {minimum} and {maximum} for each of {count} items",
            field="total",
            value=total,
        )
    values = clipped(solve(lambda s: float(clipped(s).sum()), float(total), -20.0, 20.0))
    whole = np.floor(values).astype(np.int64)
    order = np.argsort(-(values - whole), kind="stable")
    missing = total - int(whole.sum())
    while missing > 0:
        room = order[whole[order] < maximum][:missing]
        whole[room] += 1
        missing -= len(room)
    return whole

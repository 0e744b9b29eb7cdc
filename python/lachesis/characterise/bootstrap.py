"""How far a separability would move with other sessions: an interval by session bootstrap.

Segments of one session resemble each other, so sessions are drawn, not segments: as many as there
are, with replacement, and each drawn session brings all its segments. The interval goes from the
2.5th to the 97.5th percentile of the separability over the replicates. A replicate in which one
side has no segment says nothing and is left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lachesis.characterise.statistics import percentiles

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

REPLICATES = 1_000
# Weights that are held at one time; the batches change no result.
_WEIGHTS_MAX = 2_000_000


def separability_interval(
    above: Floats,
    above_session: Ints,
    below: Floats,
    below_session: Ints,
    *,
    seed: int,
    replicates: int = REPLICATES,
) -> tuple[float, float] | None:
    """The 95 % interval of `statistics.separability` over sessions; None from a single session.

    Sessions are numbers from 0, and the numbers decide which draws a session gets: number them by
    content, not by place, where the place should not matter. Sessions without a segment on either
    side are not drawn. Takes O(replicates x segments).

    Args:
        above: values X, one a segment.
        above_session: the session of each.
        below: values Y, one a segment.
        below_session: the session of each.
        seed: of the draws.
        replicates: how many sets of sessions are drawn.

    Example:
        >>> many = np.arange(8.0)
        >>> separability_interval(many + 10, np.arange(8), many, np.arange(8), seed=1)
        (1.0, 1.0)
    """
    present, codes = np.unique(np.concatenate((above_session, below_session)), return_inverse=True)
    if len(present) < 2:
        return None
    of_above, of_below = codes[: len(above)], codes[len(above) :]
    order = np.argsort(below, kind="stable")
    ordered, of_ordered = below[order], of_below[order]
    less = np.searchsorted(ordered, above, side="left")
    less_or_equal = np.searchsorted(ordered, above, side="right")

    rng = np.random.default_rng(seed)
    even = np.full(len(present), 1.0 / len(present))
    batch = max(1, _WEIGHTS_MAX // (len(above) + len(below) + len(present)))
    found: list[float] = []
    for start in range(0, replicates, batch):
        drawn = rng.multinomial(len(present), even, size=min(batch, replicates - start))
        weight = drawn[:, of_above]
        # Whole numbers throughout, so that no batch and no order can round differently.
        reached = np.zeros((len(drawn), len(ordered) + 1), dtype=np.int64)
        np.cumsum(drawn[:, of_ordered], axis=1, out=reached[:, 1:])
        won = (weight * (reached[:, less] + reached[:, less_or_equal])).sum(axis=1)
        pairs = weight.sum(axis=1) * reached[:, -1]
        some = pairs > 0
        found += (won[some] / (2 * pairs[some])).tolist()
    if not found:
        return None
    low, high = percentiles(np.array(found), 2.5, 97.5)
    return low, high

"""Where a yes turns into a no, among whole numbers."""

from __future__ import annotations

import math
from collections.abc import Callable


def last_passing(
    margin: Callable[[int], float], low: int, high: int, *, resolution: float = 0.01
) -> int:
    """The largest number that passes, between one that passes and one that fails.

    The margin falls as the number grows, nearly as a power of it; the next number tried is where
    that power says that it reaches 1, and the middle where that would not narrow enough.

    Args:
        margin: what there is over what is asked for; at least 1 passes.
        low: a number that passes.
        high: a larger one that fails.
        resolution: how near the answer's failing neighbour lies, relative.

    Example:
        >>> last_passing(lambda load: 1000.0 / load, 1, 5_000, resolution=0.001)
        1000
    """
    known = {low: margin(low), high: margin(high)}
    bisect = False
    while high - low > max(1, int(low * resolution)):
        middle = (low + high) // 2 if bisect else _interpolated(low, high, known)
        known[middle] = margin(middle)
        before = high - low
        if known[middle] >= 1.0:
            low = middle
        else:
            high = middle
        # A curve that is no power would be approached from one side for ever.
        bisect = high - low > before / 2
    return low


def _interpolated(low: int, high: int, known: dict[int, float]) -> int:
    above, below = known[low], known[high]
    if not (math.isfinite(above) and 0.0 < below < above):
        return (low + high) // 2
    share = math.log(above) / math.log(above / below)
    guess = math.exp(math.log(low) + share * math.log(high / low))
    return min(high - 1, max(low + 1, round(guess)))

"""The largest load that the SLO admits.

A load N is the answer if N passes and N + 1 fails, at one seed and one length of measurement.
Responses are monotone but for noise. A short measurement, by doubling and bisection, says where
about the answer lies; the measurement that decides then looks there, by widening and bisection, for
an N that passes while N + 1 fails; and because noise makes several of them, the search steps down
from there until three loads in a row pass, and takes the smallest such N that it met.

From 2,048 sessions on, loads are looked at in steps of a 1,024th part: finer ones measure nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lachesis.errors import InputError
from lachesis.simulation.plan import SESSIONS_MAX

#: Passing loads in a row below the bisection's answer that end the look for a smaller one.
_QUIET = 3
#: How near the short measurement goes, and how far around it the deciding one looks first.
_NEAR = 32
#: Loads are told apart to this part of themselves.
_RESOLUTION = 1024


@dataclass
class SearchResult:
    """Outcome of a search.

    Attributes:
        sessions: the largest load that passes; 0 if one session fails already.
        tried: every load that the deciding measurement tried, with its verdict, in order.
    """

    sessions: int
    tried: dict[int, bool] = field(default_factory=dict)


def largest_load(
    passes: Callable[[int], bool], *, near: Callable[[int], bool] | None = None, guess: int = 64
) -> SearchResult:
    """Find the smallest N such that N passes and N + 1 fails, near the first such found.

    Args:
        passes: whether a load meets the SLO; called once a load.
        near: the same, measured shorter, to get near the answer; `passes` if left out.
        guess: where to start.

    Raises:
        InputError: no load up to 2^24 sessions fails, so that the SLO does not bound the load.

    Example:
        >>> largest_load(lambda sessions: sessions <= 300).sessions
        300
    """
    if near is not None:
        guess = _bisect(near, guess, lambda low: max(1, low // _NEAR))[0]
    tried: dict[int, bool] = {}

    def admits(sessions: int) -> bool:
        if sessions not in tried:
            tried[sessions] = sessions == 0 or passes(sessions)
        return tried[sessions]

    widen = max(1, guess // _NEAR) if near is not None else None
    low, step = _bisect(admits, max(1, guess), lambda low: max(1, low // _RESOLUTION), widen)
    low = _step_down(admits, low, step)
    tried.pop(0, None)
    return SearchResult(low, tried)


def _bisect(
    admits: Callable[[int], bool],
    guess: int,
    resolution: Callable[[int], int],
    widen: int | None = None,
) -> tuple[int, int]:
    """A passing load with a failing one `resolution` above it, and that distance."""
    low, high = _bracket(admits, guess, widen)
    while high - low > resolution(low):
        middle = (low + high) // 2
        if admits(middle):
            low = middle
        else:
            high = middle
    return low, high - low


def _bracket(admits: Callable[[int], bool], guess: int, widen: int | None) -> tuple[int, int]:
    """A passing and a failing load around the guess: by doubling, or by steps that double."""
    if admits(guess):
        low, step = guess, widen or guess
        while admits(low + step):
            low, step = low + step, step * 2
            if low >= SESSIONS_MAX:
                raise InputError(
                    f"no load up to {SESSIONS_MAX} sessions fails: the SLO does not bound it",
                    field="load",
                    value="auto",
                )
        return low, low + step
    high, step = guess, widen or max(1, guess // 2)
    while high > 1 and not admits(max(1, high - step)):
        high = max(1, high - step)
        step = step * 2 if widen else max(1, high // 2)
    return (0, 1) if high == 1 else (max(1, high - step), high)


def _step_down(admits: Callable[[int], bool], low: int, step: int) -> int:
    """A smaller N with N passing and N + 1 failing, where noise has left one just below."""
    sessions, quiet = low, 0
    while sessions > step and quiet < _QUIET:
        sessions -= step
        if admits(sessions):
            quiet += 1
        else:
            quiet = 0
            while sessions > 0 and not admits(sessions):
                sessions = max(0, sessions - step)
            low = sessions
    return low

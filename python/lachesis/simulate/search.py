"""The largest load that the SLO admits.

A load N is the answer if N passes and N + 1 fails, at one seed and one length of measurement.
Responses are monotone but for noise, so a bracket by doubling and a bisection find such an N; where
noise makes several, the smallest within reach of it is taken: from the bisection's answer the
search steps down until three loads in a row pass with the next one passing too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lachesis.errors import InputError
from lachesis.simulate.plan import SESSIONS_MAX

#: Passing loads in a row below the bisection's answer that end the look for a smaller one.
_QUIET = 3


@dataclass
class SearchResult:
    """Outcome of a search.

    Attributes:
        sessions: the largest load that passes; 0 if one session fails already.
        tried: every load tried with its verdict, in the order tried.
    """

    sessions: int
    tried: dict[int, bool] = field(default_factory=dict)


def largest_load(passes: Callable[[int], bool], *, guess: int = 64) -> SearchResult:
    """Find the smallest N such that N passes and N + 1 fails, near the first such found.

    Args:
        passes: whether a load meets the SLO; called once a load.
        guess: where to start.

    Raises:
        InputError: no load up to 2^24 sessions fails, so that the SLO does not bound the load.

    Example:
        >>> largest_load(lambda sessions: sessions <= 300).sessions
        300
    """
    tried: dict[int, bool] = {}

    def admits(sessions: int) -> bool:
        if sessions not in tried:
            tried[sessions] = sessions == 0 or passes(sessions)
        return tried[sessions]

    low, high = _bracket(admits, guess)
    while high - low > 1:
        middle = (low + high) // 2
        if admits(middle):
            low = middle
        else:
            high = middle
    low = _step_down(admits, low)
    tried.pop(0, None)
    return SearchResult(low, tried)


def _bracket(admits: Callable[[int], bool], guess: int) -> tuple[int, int]:
    """A passing and a failing load around the guess."""
    low, high = 0, max(1, guess)
    if not admits(high):
        while high > 1 and not admits(high // 2):
            high //= 2
        return high // 2, high
    while admits(high):
        low, high = high, high * 2
        if low >= SESSIONS_MAX:
            raise InputError(
                f"no load up to {SESSIONS_MAX} sessions fails: the SLO does not bound it",
                field="load",
                value="auto",
            )
    return low, high


def _step_down(admits: Callable[[int], bool], low: int) -> int:
    """A smaller N with N passing and N + 1 failing, where noise has left one just below."""
    sessions, quiet = low, 0
    while sessions > 1 and quiet < _QUIET:
        sessions -= 1
        if admits(sessions):
            quiet += 1
        else:
            quiet = 0
            while sessions > 0 and not admits(sessions):
                sessions -= 1
            low = sessions
    return low

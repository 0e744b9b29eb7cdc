"""The largest load that the SLO admits.

A load N is the answer if N passes and N + 1 fails, at one seed; where noise makes several of them,
it is the smallest. The search spends its time where the answer lies:

1. Short measurements, by interpolation on the strain, say where about that is.
2. From there down to a load that is safe: its strain lies below 1 by more than noise explains. Then
   up, over every load of a grid (all below 128 sessions, then 32 to 64 an octave), to the first
   that fails.
3. By bisection between that load and the one before it.

Where the search starts decides how long it takes, and not what it finds: every start goes down to a
safe load, below which none fails but by a noise of more than three and a half standard deviations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from lachesis.errors import InputError
from lachesis.simulation.search_precision import SearchPrecision

#: How strain grows with the load where nothing better is known: as a power of it (0.5 is what
#: `multi-agent` has near its tight limit).
_SLOPE = 0.5
#: The farthest that one short measurement's answer sends the next, as a factor; less from so many
#: sessions on, since a measurement far past the answer takes the longest of all.
_FARTHEST = 8.0
_FARTHEST_OF_MANY, _MANY = 3.0, 4096
#: Short measurements end when they are as near as this, or after so many.
_NEAR = 0.02
_NEAR_PROBES = 12


@dataclass(frozen=True)
class Strain:
    """What a measurement says about a load.

    Attributes:
        passes: whether the load meets the SLO, by exact counts.
        value: the larger of p99 TTFT and p99 TPOT over its limit; infinite if no request ended.
    """

    passes: bool
    value: float


@dataclass
class SearchResult:
    """Outcome of a search.

    Attributes:
        sessions: the largest load that passes; 0 if one session fails already.
        bounded: whether a larger load was found to fail; else the search ended at the most that its
            precision allows.
        tried: every load that the deciding measurement tried, with its verdict, in order.
    """

    sessions: int
    bounded: bool = True
    tried: dict[int, bool] = field(default_factory=dict)


def largest_load(
    measure: Callable[[int], Strain],
    *,
    near: Callable[[int], Strain] | None = None,
    precision: SearchPrecision | None = None,
    requests_per_session: float = 1.0,
    guess: int | None = None,
) -> SearchResult:
    """Find the smallest N such that N passes and N + 1 fails.

    Args:
        measure: the measurement that decides; called once a load.
        near: a shorter one, to get near the answer; `measure` if left out.
        precision: grid, noise and end of the search.
        requests_per_session: mean of the workload, by which the search ends.
        guess: where to start; decides nothing but the time that it takes.

    Raises:
        InputError: the guess is below 1.

    Example:
        >>> answer = largest_load(lambda sessions: Strain(sessions <= 300, sessions / 300))
        >>> answer.sessions, answer.bounded
        (300, True)
    """
    if guess is not None and guess < 1:
        raise InputError("must be at least 1 session", field="guess", value=guess)
    precision = SearchPrecision() if precision is None else precision
    search = _Search(measure, precision, requests_per_session)
    if near is None:
        near = search.strain
    about = approach(near, min(guess or precision.first, search.most), search.most)
    answer = search.decide(about)
    return SearchResult(answer, search.bounded, search.tried)


class _Search:
    """The deciding measurements of one search."""

    def __init__(
        self,
        measure: Callable[[int], Strain],
        precision: SearchPrecision,
        requests_per_session: float,
    ) -> None:
        self._measure = measure
        self._precision = precision
        self._requests_per_session = requests_per_session
        self._found: dict[int, Strain] = {}
        self.most = precision.most_sessions(requests_per_session)
        self.bounded = True

    @property
    def tried(self) -> dict[int, bool]:
        """Verdicts by load, in the order tried."""
        return {sessions: strain.passes for sessions, strain in self._found.items()}

    def strain(self, sessions: int) -> Strain:
        """The deciding measurement of a load, made once."""
        if sessions not in self._found:
            self._found[sessions] = self._measure(sessions)
        return self._found[sessions]

    def decide(self, about: float) -> int:
        """The answer, looked for around `about` sessions."""
        low = self._safe(about)
        high = self._step_up(low)
        while self.strain(high).passes:
            if high >= self.most:
                self.bounded = False
                return high
            low, high = high, self._step_up(high)
        while high - low > self._precision.finest_step(low):
            middle = (low + high) // 2
            if self.strain(middle).passes:
                low = middle
            else:
                high = middle
        return low

    def _step_up(self, sessions: int) -> int:
        return min(self.most, sessions + self._precision.grid_step(sessions))

    def _safe(self, about: float) -> int:
        """A load of the grid that passes by more than noise explains, and not by far; or 0."""
        margin = self._margin(about)
        low, high = 0, math.inf
        sessions = self._on_grid(about * (1.0 - margin) ** (1.0 / _SLOPE))
        while low < sessions < high:
            strain = self.strain(sessions)
            margin = self._margin(sessions)
            aim = sessions * (1.0 - margin) / max(strain.value, 1e-3)
            if not strain.passes or strain.value > 1.0 - margin:
                high = sessions
                step = self._precision.grid_step(sessions)
                aim = min(sessions - step, max(sessions / _FARTHEST, aim))
            else:
                low = sessions
                if strain.value > 1.0 - 2.5 * margin:
                    break
                aim = min(sessions * _FARTHEST, aim)
            sessions = self._on_grid(aim)
        return low

    def _margin(self, sessions: float) -> float:
        return self._precision.margin(sessions, self._requests_per_session)

    def _on_grid(self, sessions: float) -> int:
        """The load of the grid at or below, from 0 to the most."""
        whole = int(max(0.0, min(sessions, self.most)))
        step = self._precision.grid_step(whole)
        return whole // step * step


def approach(near: Callable[[int], Strain], sessions: int, most: int) -> float:
    """About where strain is 1, by short measurements and interpolation of its logarithm.

    Args:
        near: the measurement.
        sessions: where to start.
        most: the largest load that is tried.

    Example:
        >>> round(approach(lambda sessions: Strain(sessions <= 300, sessions / 300), 64, 10_000))
        300
    """
    below: tuple[int, float] | None = None
    above: tuple[int, float] | None = None
    slope = _SLOPE
    for _ in range(_NEAR_PROBES):
        strain = near(sessions)
        value = min(max(strain.value, 1e-3), 1e3)
        if strain.passes:
            if sessions == most:
                return most
            if below is not None and value > below[1]:
                slope = math.log(value / below[1]) / math.log(sessions / below[0])
                slope = min(1.5, max(0.1, slope))
            below = (sessions, min(value, 1.0))
        else:
            if sessions == 1:
                return 1.0
            above = (sessions, max(value, 1.0))
        if abs(value - 1.0) <= _NEAR:
            return float(sessions * value ** (-1.0 / _SLOPE))
        following = _between(below, above, slope, most)
        if following in {sessions, below and below[0], above and above[0]}:
            break
        sessions = following
    return float(below[0] if below else sessions)


def _between(
    below: tuple[int, float] | None, above: tuple[int, float] | None, slope: float, most: int
) -> int:
    """The next load to measure: inside what is known, or beyond its end."""
    if below is None or above is None:
        known, value = below or above or (1, 1.0)
        farthest = _FARTHEST if known < _MANY else _FARTHEST_OF_MANY
        factor: float = min(farthest, max(1 / _FARTHEST, (1.0 / value) ** (1.0 / slope)))
        # Past the answer rather than just before it, so that it is bracketed soon.
        factor *= 1.02 if above is None else 0.98
        return min(most, max(1, round(known * factor)))
    (low, low_value), (high, high_value) = below, above
    share = 0.5
    # Where TTFT explodes there is nothing to interpolate.
    if low_value < 1.0 < high_value < 1.5:
        share = math.log(1.0 / low_value) / math.log(high_value / low_value)
    middle: float = low * (high / low) ** min(0.9, max(0.1, share))
    return min(high - 1, max(low + 1, round(middle)))

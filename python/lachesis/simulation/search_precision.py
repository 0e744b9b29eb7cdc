"""How finely the largest load is searched for, and how long a load is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lachesis.errors import InputError
from lachesis.simulation.plan import SESSIONS_MAX, Stopping

#: Standard deviations of the strain's noise by which a load must pass to be safe.
_SAFE_DEVIATIONS = 3.5
#: Every load below this is on the grid.
_EVERY_LOAD_BELOW = 128
#: The noise of p99 TPOT, relative, of one session measured over one turnover; it falls with the
#: square root of sessions times turnovers. On `multi-agent` from 600 to 698 sessions and 6
#: turnovers the standard deviation about the trend was 1.8 % (docs/engine.md).
_NOISE = 1.12


@dataclass(frozen=True)
class SearchPrecision:
    """Lengths of measurements, and distances of loads.

    Attributes:
        turnovers: turnovers of the live sessions that the deciding measurement covers.
        requests: requests that are enough for it, so that many sessions are measured shorter; never
            under a quarter of a turnover.
        exact_below: loads below this many sessions are told apart singly, larger ones to this part
            of themselves, down to a power of two: finer steps measure nothing.
        most_requests: the search goes no further than a load whose measurement takes so many.
        first: the first load tried where nothing better is known.
        coarse: answer with the grid of 32 to 64 loads an octave, without the bisection.
    """

    turnovers: float = 6.0
    requests: float = 200_000.0
    exact_below: int = 1024
    most_requests: float = 8e6
    first: int = 64
    coarse: bool = False

    def __post_init__(self) -> None:
        for name in ("turnovers", "requests", "exact_below", "most_requests", "first"):
            if not getattr(self, name) > 0:
                raise InputError("must be above 0", field=name, value=getattr(self, name))

    def grid_step(self, sessions: int) -> int:
        """The distance of the grid's loads around `sessions`: one below 128.

        Example:
            >>> [SearchPrecision().grid_step(sessions) for sessions in (0, 127, 128, 655)]
            [1, 1, 4, 16]
        """
        return 1 if sessions < _EVERY_LOAD_BELOW else _power_of_two(sessions / 32)

    def finest_step(self, sessions: int) -> int:
        """How near the answer's neighbour lies that fails.

        Example:
            >>> [SearchPrecision().finest_step(sessions) for sessions in (655, 4096, 100_000)]
            [1, 8, 128]
        """
        if self.coarse:
            return self.grid_step(sessions)
        return _power_of_two(sessions / self.exact_below * 2)

    def margin(self, sessions: float, requests_per_session: float) -> float:
        """By how much strain must lie below 1 for a load to be safe.

        Example:
            >>> round(SearchPrecision().margin(650, 53), 3), SearchPrecision().margin(1, 53)
            (0.064, 0.5)
        """
        turnovers = self._measured(sessions, requests_per_session)
        return min(0.5, _SAFE_DEVIATIONS * _NOISE / math.sqrt(max(1.0, sessions) * turnovers))

    def most_sessions(self, requests_per_session: float) -> int:
        """The largest load that is tried.

        Example:
            >>> SearchPrecision().most_sessions(14.25)
            449122
        """
        # The shortest measurement covers a turnover to settle, and a quarter.
        return max(1, min(SESSIONS_MAX, int(self.most_requests / (1.25 * requests_per_session))))

    def deciding(self, sessions: int, requests_per_session: float) -> Stopping:
        """The measurement that decides about a load; the same however the search came to it."""
        measured = self._measured(sessions, requests_per_session)
        # Sessions start staggered over a mean session, so that a turnover after is like any other.
        return _fixed(measured, min(2.0, max(1.0, 2.0 * measured)))

    def near(self, sessions: int, requests_per_session: float) -> Stopping:
        """A quarter of it, to get near the answer."""
        measured = self._measured(sessions, requests_per_session)
        return _fixed(max(0.25, measured / 4), 1.0)

    def _measured(self, sessions: float, requests_per_session: float) -> float:
        a_turnover = max(1.0, sessions) * requests_per_session
        return min(self.turnovers, max(0.25, self.requests / a_turnover))


def _fixed(turnovers: float, warm_up_turnovers: float) -> Stopping:
    return Stopping(
        turnovers=turnovers, warm_up_turnovers=warm_up_turnovers, fixed=True, fail_fast=True
    )


def _power_of_two(at_most: float) -> int:
    """The largest power of two up to a number; at least 1."""
    return 1 << max(0, int(at_most).bit_length() - 1)

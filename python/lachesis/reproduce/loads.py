"""The loads that the SLOs admit, for many cells that differ in little.

A run's strain is the larger of p99 TTFT and p99 TPOT over its limit; the load looked for is the one
at which it is 1. Near there, for the memory splits of one model, trace and SLO,

    log strain = level + slope x log sessions + flush / (HBF stacks)

with one line for all: a split decides how fast flash takes what a step writes, and nothing else of
a step's price. One split is measured at a few loads, to find the slope and about the answer; all
others once, at that answer; the line through all measurements gives each split its load. That takes
a tenth of the replays of an exhaustive search of every cell (`lachesis.simulation.search`), and
pools the noise of p99 over the splits. All replays have one seed, so that splits are told apart
better still. Far from that answer the line need not hold: a split that it sends there is measured
there, and approached on its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lachesis.sweeps import Cell

#: How log strain grows with log sessions where nothing better is known, and within which bounds.
_SLOPE, _SLOPES = 0.7, (0.4, 1.5)
#: Strains this near 1 lie on the line; beyond, TTFT may have exploded.
NEAR = 0.15
_MOST_MEASURED = 10
#: How far from the load that was measured, as a logarithm, the common line is believed.
_BELIEVED = 0.15
#: The farthest that one measurement sends the next, as a factor.
_FARTHEST = 3.0
FIRST = 512


@dataclass(frozen=True)
class Strained:
    """A measurement: at how many sessions, with how many HBF stacks, and the strain."""

    sessions: int
    stacks: int
    strain: float


def telling(strains: Mapping[int, float], hbf_stacks: int) -> list[Strained]:
    """The measurements of a split that lie near its answer, or the nearest of them.

    Example:
        >>> telling({300: 0.4, 600: 0.96}, 7)
        [Strained(sessions=600, stacks=7, strain=0.96)]
    """
    best = nearest(strains)
    return [
        Strained(sessions, hbf_stacks, strain)
        for sessions, strain in strains.items()
        if abs(math.log(strain)) <= NEAR or sessions == best
    ]


def group_loads(group: Sequence[Cell], measure: Callable[[Cell, int], float]) -> dict[str, int]:
    """The load of each cell, by id.

    Args:
        group: cells that differ in the memory split alone.
        measure: the strain of a cell at so many sessions.
    """
    middle = group[len(group) // 2]
    strains = approach(lambda sessions: measure(middle, sessions))
    slope = line_slope(strains)
    about = nearest(strains)
    found = telling(strains, stacks(middle))
    found += [
        Strained(about, stacks(cell), measure(cell, about)) for cell in group if cell is not middle
    ]

    def load(cell: Cell) -> int:
        sessions = admitted(found, stacks(cell), slope)
        if abs(math.log(sessions / about)) <= _BELIEVED:
            return sessions
        own = approach(lambda sessions: measure(cell, sessions), sessions)
        best = nearest(own)
        return max(1, math.floor(best * math.exp(-math.log(own[best]) / line_slope(own))))

    return {cell.id: load(cell) for cell in group}


def approach(measure: Callable[[int], float], first: int = FIRST) -> dict[int, float]:
    """Strains by sessions at the loads that lead to the answer, the last of them near it.

    Example:
        >>> approach(lambda sessions: (sessions / 640) ** 0.7)
        {512: 0.8553876799929505, 640: 1.0}
    """
    strains: dict[int, float] = {}
    sessions = first
    while len(strains) < _MOST_MEASURED and sessions not in strains:
        strains[sessions] = measure(sessions)
        if len(strains) > 1 and abs(math.log(strains[sessions])) <= NEAR / 3:
            break
        sessions = _next(strains)
    return strains


def nearest(strains: Mapping[int, float]) -> int:
    """The load measured with the strain nearest to 1."""
    return min(strains, key=lambda sessions: abs(math.log(strains[sessions])))


def line_slope(strains: Mapping[int, float]) -> float:
    """The slope of log strain in log sessions, from the two loads nearest to the answer.

    Example:
        >>> round(line_slope({400: 0.8, 600: 1.1}), 3), line_slope({400: 0.8})
        (0.785, 0.7)
    """
    near = sorted(strains, key=lambda sessions: abs(math.log(strains[sessions])))[:2]
    # Loads that lie close together tell noise rather than the slope.
    if len(near) < 2 or abs(math.log(near[0] / near[1])) < 0.1:
        return _SLOPE
    one, other = near
    found = math.log(strains[one] / strains[other]) / math.log(one / other)
    return min(_SLOPES[1], max(_SLOPES[0], found))


def admitted(found: Sequence[Strained], hbf_stacks: int, slope: float) -> int:
    """Sessions at which the line through all measurements has strain 1 for so many HBF stacks.

    Example:
        >>> measured = [Strained(600, 7, 0.96), Strained(600, 4, 1.02), Strained(600, 8, 0.95)]
        >>> admitted(measured, 7, 0.7) > admitted(measured, 4, 0.7)
        True
    """
    flush = np.array([1.0 / each.stacks for each in found])
    level = np.array([math.log(each.strain) - slope * math.log(each.sessions) for each in found])
    mean = float(flush.mean())
    spread = float(((flush - mean) ** 2).sum())
    rise = float(((flush - mean) * level).sum()) / spread if spread > 0.0 else 0.0
    # More stacks never make a step longer.
    rise = max(0.0, rise)
    here = float(level.mean()) + rise * (1.0 / hbf_stacks - mean)
    return max(1, math.floor(math.exp(-here / slope)))


def between(strains: Mapping[int, float]) -> int | None:
    """The next load to measure between what passes and what fails; None without both."""
    passing = [sessions for sessions, strain in strains.items() if strain <= 1.0]
    failing = [sessions for sessions, strain in strains.items() if strain > 1.0]
    low, high = max(passing, default=0), min(failing, default=0)
    if low and high > low:
        share = 0.5
        # Where TTFT explodes there is nothing to interpolate.
        if strains[high] < 1.5:
            share = -math.log(strains[low]) / math.log(strains[high] / strains[low])
        inside: float = low * (high / low) ** min(0.9, max(0.1, share))
        return round(inside)
    return None


def _next(strains: Mapping[int, float]) -> int:
    """The next load to measure: between what passes and what fails, or beyond what is known."""
    if (inside := between(strains)) is not None:
        return inside
    known = nearest(strains)
    factor = math.exp(-math.log(strains[known]) / line_slope(strains))
    return max(1, round(known * min(_FARTHEST, max(1.0 / _FARTHEST, factor))))


def stacks(cell: Cell) -> int:
    """HBF stacks of a cell's GPUs."""
    return cell.plan.settings.memory.hbf_stacks

"""Loads at the lower precision of ``--quick``: what `lachesis.reproduce.loads` does, from less.

Only the middle split and those with the fewest and the most HBF stacks are measured, each until one
load of it lies near its answer; the line through those tells the loads of all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from lachesis.reproduce.loads import (
    FIRST,
    NEAR,
    admitted,
    between,
    line_slope,
    nearest,
    stacks,
    telling,
)
from lachesis.simulation import Replay
from lachesis.sweeps import Cell

_MOST_MEASURED = 6
#: The farthest that one measurement sends the next, as a factor.
_FARTHEST = 6.0


def growing_strain(replay: Replay, cell: Cell) -> float:
    """The larger of p99 TPOT and p99 TTFT over its limit, TTFT counted from that of an idle node.

    It is 1 where `Replay.strain` is 1, and small where there is little load, so that loads far from
    the answer tell where about it lies.
    """
    settings = cell.plan.settings
    slo, idle_s = settings.slo, settings.latency.ttft_ref_s
    tpot_s, ttft_s = replay.measured["tpot_p99_s"], replay.measured["ttft_p99_s"]
    if not tpot_s or not ttft_s:
        return math.inf
    ttft_share = ttft_s / slo.ttft_p99_s
    if idle_s < slo.ttft_p99_s:
        ttft_share = (ttft_s - idle_s) / (slo.ttft_p99_s - idle_s)
    return float(max(tpot_s / slo.tpot_p99_s, ttft_share))


def quick_group_loads(
    group: Sequence[Cell], measure: Callable[[Cell, int], float]
) -> dict[str, int]:
    """The load of each cell, by id.

    Args:
        group: cells that differ in the memory split alone.
        measure: the growing strain of a cell at so many sessions.
    """
    middle = group[len(group) // 2]
    ends = {stacks(cell): cell for cell in (min(group, key=stacks), max(group, key=stacks))}
    strains = seek(partial(measure, middle))
    slope, about = line_slope(strains), nearest(strains)
    found = telling(strains, stacks(middle))
    for number, cell in ends.items():
        if cell is not middle:
            found += telling(seek(partial(measure, cell), about), number)
    return {cell.id: admitted(found, stacks(cell), slope) for cell in group}


def seek(measure: Callable[[int], float], first: int = FIRST) -> dict[int, float]:
    """Strains by sessions at the loads that lead to the answer, until one lies near it.

    Example:
        >>> seek(lambda sessions: (sessions / 3000) ** 1.2)
        {512: 0.1198..., 3072: 1.0288...}
    """
    strains: dict[int, float] = {}
    sessions = first
    while len(strains) < _MOST_MEASURED and sessions not in strains:
        strains[sessions] = measure(sessions)
        if abs(math.log(strains[sessions])) <= NEAR:
            break
        inside = between(strains)
        if inside is None:
            # As though strain were proportional to the load: it never grows much more slowly.
            known = nearest(strains)
            factor = min(_FARTHEST, max(1.0 / _FARTHEST, 1.0 / strains[known]))
            inside = max(1, round(known * factor))
        sessions = inside
    return strains

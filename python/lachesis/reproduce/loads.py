"""The loads that the SLOs admit, for many cells that differ in little.

A run's strain is the larger of p99 TTFT and p99 TPOT over its limit; the load looked for is the one
at which it is 1. Near there log strain is a line in log sessions, with one slope for all memory
splits of a model, trace and SLO, and a level of its own for each split. So one split is measured at
a few loads, the others at its answer, and each load follows from the line: a tenth of the replays
that an exhaustive search of every cell takes (`lachesis.simulation.search`), at loads that differ
from its own by the noise of one measurement. All replays have the same seed, so that splits are told
apart better than that noise.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import groupby

from lachesis.simulation import BASELINE, Load, LoadedTrace, Stopping, compare
from lachesis.sweeps import Cell, CellOutcome, Execute, TraceSource, run_cell

#: Measured strains by sessions.
Strains = dict[int, float]

#: How log strain grows with log sessions where nothing better is known, and within which bounds.
_SLOPE, _SLOPES = 0.7, (0.4, 1.5)
#: A load is near the answer when its strain is this near 1: the line is followed no further.
_NEAR = 0.08
_MOST_MEASURED = 8
#: The farthest that one measurement sends the next, as a factor.
_FARTHEST = 4.0
_FIRST = 512


@dataclass(frozen=True)
class LoadMeasurement:
    """How long a load is measured.

    Attributes:
        requests: about so many, the settling left out.
        turnovers: and no more turnovers of the live sessions than these.
        settling: turnovers before.
        repeats: measurements of each split beside the first near the answer.
    """

    requests: float
    turnovers: float
    settling: float = 1.0
    repeats: int = 1

    def stopping(self, sessions: int, requests_per_session: float) -> Stopping:
        """The length of one measurement."""
        turnovers = self.requests / (sessions * requests_per_session)
        return Stopping(
            turnovers=min(self.turnovers, max(0.25, turnovers)),
            warm_up_turnovers=self.settling,
            fixed=True,
        )


def with_common_loads(jobs: int, measurement: LoadMeasurement) -> Execute:
    """Runs the cells of a sweep at loads that are found for all of them together.

    Args:
        jobs: threads; they change no result.
        measurement: of the loads.
    """

    def execute(
        shards: Sequence[Sequence[Cell]],
        traces: Mapping[TraceSource, LoadedTrace],
        stop: threading.Event,
    ) -> Iterator[CellOutcome]:
        cells = [cell for shard in shards for cell in shard]
        groups = [list(group) for _, group in groupby(cells, key=_common)]

        def loads(group: list[Cell]) -> dict[str, int]:
            return group_loads(group, _measure(group, traces, measurement, stop), measurement)

        def run(cell: Cell, sessions: int) -> CellOutcome:
            at_load = replace(cell, load=Load("closed", sessions))
            return run_cell(at_load, traces[cell.source], stop=stop)

        with ThreadPoolExecutor(jobs) as pool:
            try:
                # What takes longest first, so that no thread is left with it at the end.
                searching: dict[Future[dict[str, int]], list[Cell]] = {
                    pool.submit(loads, group): group for group in groups
                }
                running: list[Future[CellOutcome]] = []
                for found in as_completed(searching):
                    sessions = found.result()
                    running += [
                        pool.submit(run, cell, sessions[cell.id]) for cell in searching[found]
                    ]
                for outcome in as_completed(running):
                    yield outcome.result()
            except BaseException:
                # Python delivers Ctrl-C to the main thread only; the others look at this.
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise

    return execute


def group_loads(
    group: Sequence[Cell],
    measure: Callable[[Cell, int], float],
    measurement: LoadMeasurement,
) -> dict[str, int]:
    """The load of each cell of a group, by id.

    Args:
        group: cells that differ in the memory split alone.
        measure: the strain of a cell at so many sessions.
        measurement: how often splits are measured.
    """
    middle = group[len(group) // 2]
    strains = approach(lambda sessions: measure(middle, sessions))
    slope = line_slope(strains)
    about = answer(strains, slope)
    loads = {}
    for cell in group:
        own = strains if cell is middle else {}
        sessions = about
        for _ in range(0 if cell is middle else measurement.repeats):
            own[sessions] = measure(cell, sessions)
            sessions = answer(own, slope)
        loads[cell.id] = answer(own, slope)
    return loads


def approach(measure: Callable[[int], float], first: int = _FIRST) -> Strains:
    """Strains at the loads that lead to the answer, the last of them near it.

    Example:
        >>> approach(lambda sessions: (sessions / 640) ** 0.7)
        {512: 0.8554160224820313, 640: 1.0}
    """
    strains: Strains = {}
    sessions = first
    while len(strains) < _MOST_MEASURED and sessions not in strains:
        strains[sessions] = measure(sessions)
        if abs(strains[sessions] - 1.0) <= _NEAR and len(strains) > 1:
            break
        sessions = answer(strains, line_slope(strains))
    return strains


def line_slope(strains: Strains) -> float:
    """The slope of log strain in log sessions, from the two loads nearest to the answer.

    Example:
        >>> round(line_slope({400: 0.8, 600: 1.1}), 3), line_slope({400: 0.8})
        (0.785, 0.7)
    """
    near = sorted(strains, key=lambda sessions: abs(math.log(strains[sessions])))[:2]
    if len(near) < 2:
        return _SLOPE
    one, other = near
    rise = math.log(strains[one] / strains[other])
    found = rise / math.log(one / other)
    # Loads that lie close together tell noise rather than the slope.
    if abs(math.log(one / other)) < 0.1:
        return _SLOPE
    return min(_SLOPES[1], max(_SLOPES[0], found))


def answer(strains: Strains, slope: float) -> int:
    """Where the line has strain 1: its level is that of the strains near 1, or of the nearest.

    Example:
        >>> answer({600: 0.97, 640: 1.02}, 0.7)
        624
    """
    near = [sessions for sessions, strain in strains.items() if abs(math.log(strain)) <= _NEAR]
    if not near:
        near = [min(strains, key=lambda sessions: abs(math.log(strains[sessions])))]
    steps = [math.log(sessions) - math.log(strains[sessions]) / slope for sessions in near]
    found = sum(steps) / len(steps)
    low, high = min(near), max(near)
    found = min(math.log(high * _FARTHEST), max(math.log(low / _FARTHEST), found))
    return max(1, math.floor(math.exp(found)))


def _measure(
    group: Sequence[Cell],
    traces: Mapping[TraceSource, LoadedTrace],
    measurement: LoadMeasurement,
    stop: threading.Event,
) -> Callable[[Cell, int], float]:
    loaded = traces[group[0].source]
    workload = loaded.workload(group[0].load)
    requests_per_session = workload.requests / workload.sessions

    def measure(cell: Cell, sessions: int) -> float:
        plan = cell.plan.with_stopping(measurement.stopping(sessions, requests_per_session))
        found = compare(loaded, plan, [BASELINE], Load("closed", sessions), stop=stop)
        return found.replays[0].strain(plan.settings.slo).value

    return measure


def _common(cell: Cell) -> tuple[str, str, str]:
    settings = cell.plan.settings
    return cell.trace, settings.model.name, settings.slo.name

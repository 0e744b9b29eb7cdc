"""Runs the cells of a reproduction: loads by groups of cells, then every policy at them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from lachesis.reproduce.cells import SINGLE_AGENT
from lachesis.reproduce.loads import group_loads
from lachesis.reproduce.quick_loads import growing_strain, quick_group_loads
from lachesis.simulation import BASELINE, Load, LoadedTrace, NodePart, Replay, Stopping, compare
from lachesis.sweeps import Cell, CellOutcome, Execute, TraceSource, run_cell


@dataclass(frozen=True)
class LoadMeasurement:
    """How long a load is measured.

    Attributes:
        requests: about so many, the settling left out.
        turnovers: and no more turnovers of the live sessions than these.
        settling: turnovers before.
        quick: whether loads are found as in `lachesis.reproduce.quick_loads`.
    """

    requests: float
    turnovers: float
    settling: float = 1.0
    quick: bool = False

    def stopping(self, sessions: int, requests_per_session: float) -> Stopping:
        """The length of one measurement."""
        turnovers = self.requests / (sessions * requests_per_session)
        return Stopping(
            turnovers=min(self.turnovers, max(0.25, turnovers)),
            warm_up_turnovers=self.settling,
            fixed=True,
        )


def with_common_loads(
    jobs: int,
    measurement: LoadMeasurement,
    stopping: Stopping | None = None,
    part: NodePart | None = None,
) -> Execute:
    """Runs the cells of a sweep at loads that are found for all of them together.

    Args:
        jobs: threads; they change no result.
        measurement: of the loads.
        stopping: when runs end, where not as the specification says.
        part: of the node, if not all its GPUs are simulated.
    """

    def execute(
        shards: Sequence[Sequence[Cell]],
        traces: Mapping[TraceSource, LoadedTrace],
        stop: threading.Event,
    ) -> Generator[CellOutcome, None, None]:
        cells = [
            replace(cell, plan=replace(cell.plan, part=part)) for shard in shards for cell in shard
        ]
        groups = [list(group) for _, group in groupby(cells, key=_common)]

        def loads(group: list[Cell]) -> dict[str, int]:
            measure = _measure(group, traces, measurement, stop)
            if measurement.quick:
                return quick_group_loads(
                    group, lambda cell, sessions: growing_strain(measure(cell, sessions), cell)
                )
            return group_loads(
                group,
                lambda cell, sessions: measure(cell, sessions).strain(cell.plan.settings.slo).value,
            )

        def run(cell: Cell, sessions: int) -> CellOutcome:
            plan = cell.plan if stopping is None else cell.plan.with_stopping(stopping)
            at_load = replace(cell, plan=plan, load=Load("closed", sessions))
            outcome = run_cell(at_load, traces[cell.source], stop=stop)
            # The load is given to the runs, but it is an answer: reports compare splits by it.
            rows = tuple(row | {"admitted_sessions": sessions} for row in outcome.rows)
            return replace(outcome, rows=rows)

        # Single-agent traces first: they admit ten times the sessions, so that their loads take the
        # longest to find, and are the quickest to read.
        groups.sort(key=lambda group: group[0].trace not in SINGLE_AGENT)
        to_search = iter(groups)
        #: What is under way: searches with their groups, and runs with none.
        waiting: dict[Future[Any], list[Cell] | None] = {}

        def search_next() -> None:
            if group := next(to_search, None):
                waiting[pool.submit(loads, group)] = group

        with ThreadPoolExecutor(jobs) as pool:
            try:
                # A search for each thread; the next one goes behind the runs of the one that ended,
                # so that there is work while a trace of later groups is being read.
                for _ in range(jobs):
                    search_next()
                while waiting:
                    for ended in wait(waiting, return_when=FIRST_COMPLETED).done:
                        group = waiting.pop(ended)
                        if group is None:
                            yield ended.result()
                            continue
                        sessions = ended.result()
                        for cell in group:
                            waiting[pool.submit(run, cell, sessions[cell.id])] = None
                        search_next()
            except BaseException:
                # Python delivers Ctrl-C to the main thread only; the others look at this.
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise

    return execute


def _measure(
    group: Sequence[Cell],
    traces: Mapping[TraceSource, LoadedTrace],
    measurement: LoadMeasurement,
    stop: threading.Event,
) -> Callable[[Cell, int], Replay]:
    loaded = traces[group[0].source]
    workload = loaded.workload(group[0].load)
    requests_per_session = workload.requests / workload.sessions

    def measure(cell: Cell, sessions: int) -> Replay:
        plan = cell.plan.with_stopping(measurement.stopping(sessions, requests_per_session))
        found = compare(loaded, plan, [BASELINE], Load("closed", sessions), stop=stop)
        return found.replays[0]

    return measure


def _common(cell: Cell) -> tuple[str, str, str]:
    settings = cell.plan.settings
    return cell.trace, settings.model.name, settings.slo.name

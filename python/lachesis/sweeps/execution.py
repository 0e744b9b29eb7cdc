"""Runs the cells of a sweep on the threads of one process.

The engine releases the GIL while it replays, and what Python does between two replays is about a
hundredth of a short one: threads scale with cores, and share traces, scores and prices.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lachesis.errors import InfeasibleError, InputError, LachesisError
from lachesis.results.document import add_gains, run_objects
from lachesis.results.infeasible import infeasible_row
from lachesis.results.provenance import search_object
from lachesis.results.rows import run_columns, run_row
from lachesis.results.timeline import timeline_of
from lachesis.simulation import (
    Comparison,
    KnownReplays,
    LoadedTrace,
    Plan,
    approximate_load,
    compare,
    replay_plan,
)
from lachesis.sweeps.cells import Cell, TraceSource

#: The traces of a sweep, each read once.
Traces = Mapping[TraceSource, LoadedTrace]


@dataclass(frozen=True)
class CellOutcome:
    """What came of a cell: plain values, so that it can travel between machines.

    Attributes:
        cell: its id.
        rows: one a policy, in the cell's order, but for those that failed.
        infeasible: by policy, why it cannot be run, as its row says too.
        failures: by policy, why it failed.
        searches: the searches for the load, as in the provenance of a run.
        wall_s: how long it took.
        timeline: the runs over time, if asked for.
    """

    cell: str
    rows: tuple[dict[str, Any], ...]
    infeasible: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    searches: tuple[dict[str, Any], ...] = ()
    wall_s: float = 0.0
    timeline: pa.Table | None = None


class Guesses:
    """Where searches of loads start: about where the first cell's of trace, model and SLO ends.

    That depends on the sweep alone: not on which cell was run first, on which thread or machine, or
    before which interruption.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[TraceSource, Plan], int | None] = {}
        # Held while one is made: who needs the same waits for it instead of making it again.
        self._making = threading.Lock()

    def near(
        self, cell: Cell, loaded: LoadedTrace, stop: threading.Event | None = None
    ) -> int | None:
        """A load to start a cell's search from; None where there is none to start from."""
        if cell.first_alike is None or not cell.load.is_searched:
            return None
        key = (cell.source, cell.first_alike)
        with self._making:
            if key not in self._found:
                self._found[key] = _approximate(cell, cell.first_alike, loaded, stop)
            return self._found[key]


def _approximate(
    cell: Cell, plan: Plan, loaded: LoadedTrace, stop: threading.Event | None
) -> int | None:
    try:
        return approximate_load(loaded, plan, search=cell.search, stop=stop)
    except LachesisError:
        # A session does not fit that cell's memory, which its own run reports.
        return None


def run_cell(
    cell: Cell,
    loaded: LoadedTrace,
    *,
    threads: int = 1,
    guesses: Guesses | None = None,
    stop: threading.Event | None = None,
    known: KnownReplays | None = None,
) -> CellOutcome:
    """Run the policies of one cell.

    A policy that cannot be run (a session does not fit its memory, say) takes no other with it: its
    row has the reason. One that fails for another reason (a policy in Python that raises an error,
    say) becomes a failure, and has no row.

    Raises:
        KeyboardInterrupt: Ctrl-C, or `stop` was set.
    """
    started = time.perf_counter()
    faults: dict[str, LachesisError] = {}
    compared: list[Comparison] = []
    guesses = guesses or Guesses()

    def attempt(policies: Sequence[str]) -> None:
        comparison = compare(
            loaded, cell.plan, policies, cell.load, threads=threads, search=cell.search,
            guess=guesses.near(cell, loaded, stop), stop=stop, known=known,
        )  # fmt: skip
        compared.append(comparison)

    if cell.infeasible is not None:
        infeasible = dict.fromkeys(cell.policies, cell.infeasible)
        return _outcome(cell, loaded, [], infeasible, {}, time.perf_counter() - started)
    try:
        attempt(cell.policies)
    except LachesisError as error:
        faults = {cell.policies[0]: error}
        # Which of several it was shows when each runs alone; their results are the same.
        for policy in cell.policies if len(cell.policies) > 1 else ():
            faults.pop(policy, None)
            try:
                attempt([policy])
            except LachesisError as alone:
                faults[policy] = alone
    infeasible = {
        policy: str(fault) for policy, fault in faults.items() if isinstance(fault, InfeasibleError)
    }
    failures = {policy: str(fault) for policy, fault in faults.items() if policy not in infeasible}
    return _outcome(cell, loaded, compared, infeasible, failures, time.perf_counter() - started)


def run_cells(
    cells: Sequence[Cell], traces: Traces, *, jobs: int, stop: threading.Event
) -> Generator[CellOutcome]:
    """Outcomes of cells as they end, on `jobs` threads.

    Cells that differ only in what enters after a replay are replayed once.

    When the caller stops early, or Ctrl-C comes, the cells that run are stopped and no further one
    is begun.

    Raises:
        InputError: `jobs` is below 1.
    """
    if jobs < 1:
        raise InputError("must be at least 1", field="jobs", value=jobs)
    groups = of_one_replay(cells)
    # With fewer replays than threads, the policies of a cell run side by side.
    threads = max(1, jobs // max(1, len(groups)))
    guesses = Guesses()

    def work(group: Sequence[Cell]) -> list[CellOutcome]:
        known = KnownReplays()
        return [
            run_cell(
                cell, traces[cell.source], threads=threads, guesses=guesses, stop=stop, known=known
            )
            for cell in group
        ]

    with ThreadPoolExecutor(jobs) as pool:
        try:
            waiting = {pool.submit(work, group) for group in groups}
            for future in as_completed(waiting):
                waiting.discard(future)
                yield from future.result()
        except BaseException:
            # Python delivers Ctrl-C to the main thread only; the others look at this.
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def of_one_replay(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The cells in groups that share their replays, as they differ in flash endurance, say.

    Groups, and the cells of each, stand in the order of the cells.
    """
    groups: dict[Hashable, list[Cell]] = {}
    for cell in cells:
        replayed = replay_plan(cell.plan)
        key = (cell.source, replayed, cell.load, cell.search, cell.policies, cell.infeasible)
        groups.setdefault(key, []).append(cell)
    return list(groups.values())


def _outcome(
    cell: Cell,
    loaded: LoadedTrace,
    compared: Sequence[Comparison],
    infeasible: dict[str, str],
    failures: dict[str, str],
    wall_s: float,
) -> CellOutcome:
    # The names as asked for: a policy in Python may call itself otherwise.
    policies = [name for name in cell.policies if name not in failures and name not in infeasible]
    runs = [run for comparison in compared for run in run_objects(comparison)]
    add_gains(runs)
    measured = {
        policy: run_row(
            run,
            run_id=cell.run_id(policy),
            cell_id=cell.id,
            trace=cell.trace,
            overrides=cell.overrides,
        )
        for run, policy in zip(runs, policies, strict=True)
    }
    unmeasured = {
        policy: infeasible_row(
            cell.plan,
            cell.load,
            cell.search,
            policy,
            reason=reason,
            run_id=cell.run_id(policy),
            cell_id=cell.id,
            trace=cell.trace,
            trace_sha256=loaded.trace.sha256,
            overrides=cell.overrides,
        )
        for policy, reason in infeasible.items()
    }
    by_policy = {**measured, **unmeasured}
    rows = tuple(by_policy[policy] for policy in cell.policies if policy in by_policy)
    searches = {
        search.policy: search_object(search)
        for comparison in compared
        for search in comparison.searches
    }
    timeline = None
    if cell.plan.timeline_interval_s is not None and measured:
        tables = [
            timeline_of(comparison, replay)
            for comparison in compared
            for replay in comparison.replays
        ]
        timeline = pa.concat_tables(
            [_identified(table, row) for table, row in zip(tables, measured.values(), strict=True)]
        )
    found = tuple(searches.values())
    return CellOutcome(cell.id, rows, infeasible, failures, found, wall_s, timeline)


def _identified(timeline: pa.Table, row: Mapping[str, Any]) -> pa.Table:
    """A timeline with the columns in front that say which run it is of."""
    front = {
        name: pa.array([row[name]] * timeline.num_rows, run_columns().field(name).type)
        for name in ("run", "trace", "model", "memory", "slo", "policy", "seed")
    }
    rest = {name: timeline[name] for name in timeline.column_names if name != "policy"}
    return pa.table({**front, **rest})

"""A sweep from specification to a directory of results; starts anew, or goes on where it was."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from lachesis import __version__
from lachesis.errors import InputError
from lachesis.policy import choose_policy
from lachesis.quantities import parse_pairs
from lachesis.results.directory import (
    LIFETIMES,
    MANIFEST,
    RUNS,
    SPECIFICATION,
    TIMELINES,
    Manifest,
    read_manifest,
    write_table,
)
from lachesis.results.files import write_text
from lachesis.results.folders import check_folder
from lachesis.results.lifetimes import lifetimes_table
from lachesis.results.provenance import digest
from lachesis.simulation import LoadedTrace
from lachesis.sweeps.cells import Cell, TraceSource, expand
from lachesis.sweeps.execution import CellOutcome, Traces, run_cells
from lachesis.sweeps.lock import held
from lachesis.sweeps.record import Record, new_manifest
from lachesis.sweeps.shards import Shard, shards_of, unfinished
from lachesis.sweeps.specification import Specification
from lachesis.traces import ReadOptions, open_trace

#: Runs shards and gives the outcomes of their cells as they end.
Execute = Callable[[Sequence[Sequence[Cell]], Traces, threading.Event], Generator[CellOutcome]]


class SweepWatcher:
    """Hears how far a sweep is; called from the thread that runs it."""

    def stage(self, what: str) -> None:
        """Something that takes a while begins: reading a trace, say."""

    def planned(self, cells: int, runs: int, ended_cells: int) -> None:
        """Cells and runs of the whole sweep, and the cells whose results are there already."""

    def cell_ended(self, cell: Cell, outcome: CellOutcome) -> None:
        """A cell was run, or failed."""


@dataclass(frozen=True)
class SweepOutcome:
    """What a sweep leaves: its directory, its manifest, and how many cells it ran now."""

    directory: Path
    manifest: Manifest
    cells_run: int

    @property
    def failures(self) -> int:
        """Runs that failed, and have no row."""
        return sum(len(entry.failures) for entry in self.manifest.cells)


def on_threads(jobs: int) -> Execute:
    """Runs cells on so many threads of this process."""

    def execute(
        shards: Sequence[Sequence[Cell]], traces: Traces, stop: threading.Event
    ) -> Generator[CellOutcome]:
        cells = [cell for shard in shards for cell in shard]
        return run_cells(cells, traces, jobs=jobs, stop=stop)

    return execute


def sweep(
    specification: Specification,
    directory: str | Path,
    execute: Execute,
    *,
    workers: str = "threads",
    restart: bool = False,
    watcher: SweepWatcher | None = None,
    read: Callable[[TraceSource], LoadedTrace] | None = None,
) -> SweepOutcome:
    """Run what a specification asks for and the directory does not hold yet.

    Everything that is wrong is refused before the first run; a combination that cannot be run gets
    a row that says so, and the others are run. Results of cells that end are kept whatever happens
    after: an error, Ctrl-C, or the end of the process.

    Args:
        specification: what to run.
        directory: where to; its own folder must be there.
        execute: `on_threads`, or `lachesis.sweeps.ray_execution.on_ray`.
        workers: what the manifest says of how it ran.
        restart: throw away the results that are there.
        watcher: hears about progress.
        read: gives the traces, where the caller shares them; `read_source` if None.

    Raises:
        InputError: an invalid specification, a trace that cannot be read, or a directory that holds
            something else: files of the user's, or results of another specification, of other
            traces, or of another version.
        KeyboardInterrupt: Ctrl-C.

    Example:
        >>> import tempfile
        >>> asked = Specification.parse(
        ...     {"grid": {"trace": "tau3-airline", "load": [8, 16], "turnovers": 2}}
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     first = sweep(asked, folder, on_threads(2))
        ...     again = sweep(asked, folder, on_threads(1))
        >>> first.manifest.counts(), first.cells_run, again.cells_run
        ({'done': 2, 'infeasible': 0, 'failed': 0, 'pending': 0}, 2, 0)
    """
    watcher = watcher or SweepWatcher()
    cells = expand(specification)
    shards = shards_of(cells, _digest(cells), timed=specification.timeline_interval_s is not None)
    check_folder(directory)
    _check_place(Path(directory), restart=restart)
    with held(directory) as place:
        earlier = None if restart else _earlier(place, shards[0].sweep)
        traces = _read_traces(cells, watcher, read or read_source)
        if earlier is not None:
            _check_traces(earlier, cells, traces, place)
        if restart:
            _clear(place)
        manifest = new_manifest(specification, shards, traces, earlier)
        return _Sweep(place, shards, traces, manifest, workers, watcher).run(execute, specification)


class _Sweep:
    """A sweep that may begin: everything is read and checked, and the directory is held."""

    def __init__(
        self,
        place: Path,
        shards: Sequence[Shard],
        traces: Traces,
        manifest: Manifest,
        workers: str,
        watcher: SweepWatcher,
    ) -> None:
        self.place = place
        self.shards = shards
        self.traces = traces
        self.record = Record(place, manifest, workers)
        self.watcher = watcher
        self.shard_of = {cell.id: shard for shard in shards for cell in shard.cells}
        self.cells = {cell.id: cell for shard in shards for cell in shard.cells}
        #: Outcomes of shards that have a cell to run; what is written is let go.
        self.open: dict[int, dict[str, CellOutcome]] = {}
        self.unwritten: set[int] = set()

    def run(self, execute: Execute, specification: Specification) -> SweepOutcome:
        self._prepare(specification)
        missing = self._look()
        left = {cells[0].id: len(cells) for cells in missing}
        remaining = {self.shard_of[first].number: count for first, count in left.items()}
        count = sum(remaining.values())
        runs = sum(len(cell.policies) for cell in self.cells.values())
        self.watcher.planned(len(self.cells), runs, len(self.cells) - count)
        try:
            if missing:
                with closing(execute(missing, self.traces, threading.Event())) as outcomes:
                    for outcome in outcomes:
                        self._take(outcome, remaining)
        finally:
            for number in sorted(self.unwritten):
                self._write(self.shards[number])
            self.record.write(now=True)
        return SweepOutcome(self.place, self.record.manifest, count)

    def _prepare(self, specification: Specification) -> None:
        (self.place / RUNS).mkdir(exist_ok=True)
        if specification.timeline_interval_s is not None:
            (self.place / TIMELINES).mkdir(exist_ok=True)
        # What a killed process was writing.
        for folder in (self.place, self.place / RUNS, self.place / TIMELINES):
            for scratch in folder.glob(".*.*.*"):
                scratch.unlink(missing_ok=True)
        self.record.write(now=True)
        write_text(self.place / SPECIFICATION, specification.text)
        if not (self.place / LIFETIMES).exists():
            self.watcher.stage("measuring lifetimes")
            by_name = {cell.trace: self.traces[cell.source].trace for cell in self.cells.values()}
            write_table(self.place / LIFETIMES, lifetimes_table(by_name))

    def _look(self) -> list[list[Cell]]:
        """The cells that are missing, by shard."""
        missing = []
        for shard in self.shards:
            present = dict(shard.present(self.place))
            for outcome in present.values():
                self.record.present(outcome)
            if cells := unfinished(shard, present):
                self.open[shard.number] = present
                missing.append(cells)
        return missing

    def _take(self, outcome: CellOutcome, remaining: dict[int, int]) -> None:
        shard = self.shard_of[outcome.cell]
        self.open[shard.number][outcome.cell] = outcome
        self.unwritten.add(shard.number)
        self.record.ended(outcome)
        remaining[shard.number] -= 1
        if remaining[shard.number] == 0:
            self._write(shard)
            del self.open[shard.number]
        self.record.write()
        self.watcher.cell_ended(self.cells[outcome.cell], outcome)

    def _write(self, shard: Shard) -> None:
        shard.write(self.place, self.open[shard.number])
        self.unwritten.discard(shard.number)


def _digest(cells: Sequence[Cell]) -> str:
    """What identifies a sweep: its cells and their policies, in order."""
    # A policy in Python is told by its source as well as by its name.
    names = dict.fromkeys(name for cell in cells for name in cell.policies)
    policies = {name: choose_policy(name).engine() for name in names}
    return digest([policies, [[cell.id, cell.policies] for cell in cells]])


def _check_place(place: Path, *, restart: bool) -> None:
    """Refuse a folder with files of somebody else's."""
    if not place.is_dir() or (place / MANIFEST).exists():
        return
    others = [entry.name for entry in place.iterdir() if not entry.name.startswith(".")]
    if others:
        hint = "; --restart replaces results only" if restart else ""
        raise InputError(
            f"holds {sorted(others)[0]} and no results: name another{hint}", path=place
        )


def _earlier(place: Path, sweep_sha256: str) -> Manifest | None:
    """The manifest that is there, if the sweep can go on from it."""
    if not (place / MANIFEST).exists():
        return None
    ways = "name another directory, or start anew with --restart"
    manifest = read_manifest(place)
    if manifest.version != __version__:
        raise InputError(
            f"holds results of version {manifest.version}, and this is {__version__}: {ways}",
            path=place,
        )
    if manifest.specification_sha256 != sweep_sha256:
        rule = "holds results of another specification (or a preset or policy file has changed)"
        raise InputError(f"{rule}: {ways}", path=place)
    return manifest


def _check_traces(earlier: Manifest, cells: Sequence[Cell], traces: Traces, place: Path) -> None:
    for cell in {cell.trace: cell for cell in cells}.values():
        before = earlier.traces.get(cell.trace, {}).get("trace_sha256")
        if before != traces[cell.source].trace.sha256:
            raise InputError(
                f"holds results of another {cell.trace}: the trace has changed since; name another "
                "directory, or start anew with --restart",
                path=place,
            )


def _read_traces(
    cells: Sequence[Cell], watcher: SweepWatcher, read: Callable[[TraceSource], LoadedTrace]
) -> dict[TraceSource, LoadedTrace]:
    """Every trace, read once, with the workloads that the loads ask for."""
    traces: dict[TraceSource, LoadedTrace] = {}
    for cell in cells:
        if cell.source not in traces:
            watcher.stage(f"reading {cell.trace}")
            traces[cell.source] = read(cell.source)
        # A recorded load asks more of a trace than others; made once, this is for the runs too.
        traces[cell.source].workload(cell.load)
    return traces


def read_source(source: TraceSource) -> LoadedTrace:
    """Read what a cell names.

    Raises:
        InputError: it cannot be read.
    """
    columns = parse_pairs(list(source.map), "map", "OURS=THEIRS")
    return LoadedTrace(
        open_trace(*source.names, format=source.format, options=ReadOptions(columns=columns))
    )


def _clear(place: Path) -> None:
    """Remove the results that are there, and nothing else."""
    (place / MANIFEST).unlink(missing_ok=True)
    for folder in (RUNS, TIMELINES):
        shutil.rmtree(place / folder, ignore_errors=True)
    for name in (LIFETIMES, SPECIFICATION):
        (place / name).unlink(missing_ok=True)

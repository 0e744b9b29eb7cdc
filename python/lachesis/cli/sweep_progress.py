"""Shows how far a sweep is, on standard error, where that is a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from lachesis.cli.terminal import console
from lachesis.sweeps import Cell, CellOutcome, SweepWatcher

# Cells differ in length; the estimate looks at so many seconds of them.
_ESTIMATE_S = 60.0


class SweepCount(SweepWatcher):
    """Counts cells; says nothing."""

    cells = 0
    ended_cells = 0

    def planned(self, cells: int, runs: int, ended_cells: int) -> None:
        """Remember how much there is."""
        self.cells, self.ended_cells = cells, ended_cells

    def cell_ended(self, cell: Cell, outcome: CellOutcome) -> None:
        """Count one more."""
        self.ended_cells += 1


class _Display(SweepCount):
    """A bar over the cells."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._line = progress.add_task("reading the specification", total=None)
        self._failed = 0

    def stage(self, what: str) -> None:
        self._progress.update(self._line, description=what)

    def planned(self, cells: int, runs: int, ended_cells: int) -> None:
        super().planned(cells, runs, ended_cells)
        # A line of its own, so that what was done before does not enter the time left.
        self._progress.update(self._line, visible=False)
        kept = f" ({ended_cells:,} are there)" if ended_cells else ""
        self._line = self._progress.add_task(
            f"{runs:,} runs in {cells:,} cells{kept}", total=cells - ended_cells
        )

    def cell_ended(self, cell: Cell, outcome: CellOutcome) -> None:
        super().cell_ended(cell, outcome)
        self._failed += len(outcome.failures)
        self._progress.update(self._line, advance=1)
        if self._failed:
            self._progress.update(self._line, description=f"{self._failed:,} runs failed")


@contextmanager
def sweep_progress(*, quiet: bool) -> Iterator[SweepCount]:
    """A watcher that draws, or one that only counts where nobody would see it."""
    screen = console(stderr=True)
    if quiet or not screen.is_terminal:
        yield SweepCount()
        return
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=20),
        MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(
        *columns, console=screen, transient=True, speed_estimate_period=_ESTIMATE_S
    ) as progress:
        yield _Display(progress)

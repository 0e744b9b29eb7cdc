"""Shows how far a run is, on standard error, where that is a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from lachesis.cli.terminal import console
from lachesis.simulation import Load, Replay, Watcher


class _Display(Watcher):
    """A line for each policy: its search, then its replay. Safe to call from several threads."""

    def __init__(self, progress: Progress, preparing: TaskID) -> None:
        self._progress = progress
        self._preparing = preparing
        self._lines: dict[str, TaskID] = {}

    def load_tried(self, policy: str, sessions: int, passes: bool) -> None:
        verdict = "passes" if passes else "misses"
        text = f"{policy}: SLO search, {sessions:,} sessions {verdict}"
        self._progress.update(self._line(policy), description=text, total=None)

    def replay_started(self, policy: str, load: Load) -> None:
        sessions = f" at {load.sessions:,} sessions" if load.kind == "closed" else ""
        self._progress.update(
            self._line(policy), description=f"{policy}: replay{sessions}", total=1.0, completed=0.0
        )

    def replay_advanced(self, policy: str, simulated_s: float, requests: int, share: float) -> None:
        self._progress.update(self._line(policy), completed=min(share, 1.0))

    def replay_ended(self, policy: str, outcome: Replay) -> None:
        self._progress.update(self._line(policy), completed=1.0, description=f"{policy}: done")

    def _line(self, policy: str) -> TaskID:
        self._progress.update(self._preparing, visible=False)
        if policy not in self._lines:
            self._lines[policy] = self._progress.add_task(policy, total=None)
        return self._lines[policy]


@contextmanager
def run_progress(*, quiet: bool) -> Iterator[Watcher]:
    """A watcher that draws, or one that does nothing where nobody would see it."""
    screen = console(stderr=True)
    if quiet or not screen.is_terminal:
        yield Watcher()
        return
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=20),
        TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=screen, transient=True) as progress:
        yield _Display(progress, progress.add_task("preparing", total=None))

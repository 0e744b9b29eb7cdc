"""What the engine tells of a run while it runs: operations on flash, segments, requests, steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Columns of one kind of record by name, as numpy arrays of equal length.
Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Journal:
    """What is told, and to whom. A run that is listened to gives the same result, more slowly.

    Attributes:
        deliver: called from time to time with the records since the last call, by kind: ``flash``,
            ``segments``, ``slices`` (phases of requests), ``instants`` and ``steps``. What it
            raises ends the run.
        flash: whether operations on flash are told, over the whole run.
        segments: whether events of segments are told, over the whole run: what a live placement
            layer would be told, in order.
        window_s: from when to when, in simulated seconds, the other kinds are told; None: never.
    """

    deliver: Callable[[dict[str, Columns]], object]
    flash: bool = False
    segments: bool = False
    window_s: tuple[float, float] | None = None

    def engine(self) -> dict[str, Any]:
        """The journal as the engine takes it."""
        return {
            "flash": self.flash,
            "segments": self.segments,
            "window_s": self.window_s,
            "deliver": self.deliver,
        }


class Told:
    """Collects records in memory, for windows that are known to be short.

    Example:
        >>> told = Told()
        >>> told({"steps": {"time_ps": np.array([1, 2])}})
        >>> told({"steps": {"time_ps": np.array([3])}})
        >>> told.columns("steps")["time_ps"].tolist(), told.records
        ([1, 2, 3], 3)
    """

    def __init__(self) -> None:
        self.records = 0
        self._chunks: dict[str, list[Columns]] = {}

    def __call__(self, tables: dict[str, Columns]) -> None:
        """Keep what is told."""
        for kind, columns in tables.items():
            self._chunks.setdefault(kind, []).append(columns)
            self.records += len(next(iter(columns.values())))

    def columns(self, kind: str) -> Columns:
        """All records of one kind; nothing at all if nothing was told."""
        chunks = self._chunks.get(kind, [])
        if not chunks:
            return {}
        return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}

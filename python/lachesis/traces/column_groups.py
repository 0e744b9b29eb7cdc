"""Records of numbers, grouped by their first one, while memory holds few: as `RecordGroups`.

For logs whose sessions interleave, and whose requests are but numbers: these are sorted and taken
apart a column at a time. What exceeds 8 MB goes to a temporary file without a name, as one sorted
run; the runs are merged when the groups are asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from lachesis.traces.scratch_file import room_for_scratch, scratch_file

_RUN_BYTES: Final = 8_000_000
_READ_BYTES: Final = 1 << 17
_GROUPED_BYTES: Final = 1 << 20

Records = NDArray[Any]


class ColumnGroups:
    """Takes records (a structured array) whose first field is the number of their group.

    Iterating gives them in order of that number, in blocks of whole groups; within a group they
    have the order in which they came. `folder`: as of `RecordGroups`.

    Example:
        >>> kind = np.dtype([("group", np.int64), ("value", np.int64)])
        >>> groups = ColumnGroups(kind)
        >>> groups.append(np.array([(7, 1), (3, 2), (7, 3)], kind))
        >>> [block.tolist() for block in groups]
        [[(3, 2), (7, 1), (7, 3)]]
    """

    def __init__(self, dtype: np.dtype[Any], folder: Path | None = None) -> None:
        assert dtype.names, "Invariant: records have fields"
        self._dtype = dtype
        self._group = dtype.names[0]
        self._folder = folder
        self._waiting: list[Records] = []
        self._waiting_bytes = 0
        self._runs: list[tuple[int, int]] = []  # where a run begins in the file, and its records
        self._file: IO[bytes] | None = None

    def append(self, records: Records) -> None:
        """Take records; raises `InputError` if the disk cannot hold them."""
        if not len(records):
            return
        self._waiting.append(records)
        self._waiting_bytes += records.nbytes
        if self._waiting_bytes >= _RUN_BYTES:
            self._put_by()

    def __iter__(self) -> Iterator[Records]:
        runs = [_Run(self._blocks(*run)) for run in self._runs]
        runs.append(_Run(self._last_run()))
        merged: list[Records] = []
        while runs := [run for run in runs if run.more()]:
            # What lies below every run's last number that was read is whole.
            open_runs = [run for run in runs if not run.ended]
            if open_runs:
                limit = min(int(run.content[self._group][-1]) for run in open_runs)
                parts = [run.below(limit, self._group) for run in runs]
            else:
                parts = [run.rest() for run in runs]
            if not any(len(part) for part in parts):
                for run in open_runs:
                    if run.content[self._group][-1] == limit:
                        run.read()
                continue
            merged.append(self._in_order(parts))
            if sum(part.nbytes for part in merged) >= _GROUPED_BYTES:
                yield np.concatenate(merged)
                merged = []
        if merged:
            yield np.concatenate(merged)

    def _in_order(self, parts: list[Records]) -> Records:
        records = np.concatenate(parts)
        return records[np.argsort(records[self._group], kind="stable")]

    def _sorted(self) -> Records:
        return self._in_order([*self._waiting, np.zeros(0, self._dtype)])

    def _last_run(self) -> Iterator[Records]:
        records = self._sorted()
        at_once = max(1, _READ_BYTES // self._dtype.itemsize)
        for first in range(0, max(1, len(records)), at_once):
            yield records[first : first + at_once]

    def _put_by(self) -> None:
        if self._file is None:
            self._file = scratch_file(self, self._folder)
        with room_for_scratch(self._folder):
            begin = self._file.seek(0, os.SEEK_END)
            records = self._sorted()
            self._file.write(records.tobytes())
            self._file.flush()
        self._runs.append((begin, len(records)))
        self._waiting, self._waiting_bytes = [], 0

    def _blocks(self, begin: int, count: int) -> Iterator[Records]:
        assert self._file is not None, "Invariant: a run is in the file"
        size = self._dtype.itemsize
        at_once = max(1, _READ_BYTES // size)
        for first in range(0, count, at_once):
            many = min(at_once, count - first)
            content = os.pread(self._file.fileno(), many * size, begin + first * size)
            yield np.frombuffer(content, self._dtype)


class _Run:
    """A sorted run as far as it was read and not taken."""

    def __init__(self, blocks: Iterator[Records]) -> None:
        self._blocks = blocks
        self.content: Records = next(blocks)
        self._next = next(blocks, None)

    @property
    def ended(self) -> bool:
        """Whether all of it was read."""
        return self._next is None

    def more(self) -> bool:
        """Whether anything is left; reads on where nothing is at hand."""
        while not len(self.content) and self._next is not None:
            self.read()
        return len(self.content) > 0

    def read(self) -> None:
        """Read on."""
        if self._next is not None:
            self.content = np.concatenate([self.content, self._next])
            self._next = next(self._blocks, None)

    def below(self, limit: int, group: str) -> Records:
        """Take what lies below a number."""
        end = int(np.searchsorted(self.content[group], limit))
        taken, self.content = self.content[:end], self.content[end:]
        return taken

    def rest(self) -> Records:
        """Take all."""
        taken, self.content = self.content, self.content[:0]
        return taken

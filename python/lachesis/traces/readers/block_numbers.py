"""Blocks numbered from 0, so that what is known of each fits in plain columns.

A log of serving requests names hundreds of millions of blocks; a dictionary would take a hundred
bytes for each.
"""

from __future__ import annotations

import mmap
from array import array
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lachesis.traces.scratch_file import room_for_scratch, scratch_file

Numbers = NDArray[np.int64]

#: Ids up to so many times the ids seen so far are their own numbers: a gap costs a few bytes.
_DENSE = 16
_FREE = 1 << 20
_FIRST_RECORDS = 1 << 16
_USES_TILL_RELEASE = 4096


class BlockNumbers:
    """Numbers of block ids. Ids that count up from 0 are their own numbers; others are looked up.

    Example:
        >>> numbers = BlockNumbers()
        >>> numbers.of(array("Q", [4, 7])).tolist(), numbers.of(array("Q", [2**60, 4])).tolist()
        ([4, 7], [8, 4])
        >>> numbers.id_of(8) == 2**60
        True
    """

    def __init__(self) -> None:
        self._seen = 0
        self._end = 0  # one more than the largest number given out
        self._first_looked_up = 0
        self._looked_up: dict[int, int] | None = None
        self._ids = array("Q")  # of the numbers from `_first_looked_up` on

    def of(self, blocks: array[int]) -> Numbers:
        """The number of each id."""
        ids = np.frombuffer(blocks, np.uint64)
        self._seen += len(ids)
        if self._looked_up is None and len(ids):
            largest = int(ids.max())
            if largest < _FREE + _DENSE * self._seen:
                self._end = max(self._end, largest + 1)
                return ids.astype(np.int64)
            self._looked_up = {}
            self._first_looked_up = self._end
        if self._looked_up is None:
            return ids.astype(np.int64)
        return np.array([self._number(block, self._looked_up) for block in blocks], np.int64)

    def id_of(self, number: int) -> int:
        """The id that has this number."""
        above = number - self._first_looked_up
        return self._ids[above] if self._looked_up is not None and above >= 0 else number

    def _number(self, block: int, looked_up: dict[int, int]) -> int:
        if block < self._first_looked_up:
            return block  # its own number, as it was before
        number = looked_up.get(block)
        if number is None:
            number = looked_up[block] = self._end
            self._end += 1
            self._ids.append(block)
        return number


class BlockTable:
    """A record for each block number, zero until it is set, in a temporary file without a name.

    The file is mapped into memory, and let go of now and then: what was used of it lately is in
    memory, the rest on disk (or in what the system has to spare).
    """

    def __init__(self, dtype: np.dtype[Any], folder: Path | None = None) -> None:
        self._dtype = dtype
        self._folder = folder
        self._file = scratch_file(self, folder)
        self._uses = 0
        self._map: mmap.mmap
        self.records: NDArray[Any]
        self._grow(_FIRST_RECORDS)

    def reach(self, numbers: Numbers) -> NDArray[Any]:
        """The records, enough for these numbers; good until the next call."""
        self._release_now_and_then()
        needed = int(numbers.max()) + 1 if len(numbers) else 0
        if needed > len(self.records):
            self._grow(max(needed, len(self.records) * 3 // 2))
        return self.records

    def latest(self) -> NDArray[Any]:
        """The records as far as they were ever reached; good until the next call."""
        self._release_now_and_then()
        return self.records

    def _release_now_and_then(self) -> None:
        self._uses += 1
        if self._uses % _USES_TILL_RELEASE == 0 and hasattr(self._map, "madvise"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def _grow(self, records: int) -> None:
        size_bytes = records * self._dtype.itemsize
        with room_for_scratch(self._folder):
            self._file.truncate(size_bytes)
            self._map = mmap.mmap(self._file.fileno(), size_bytes)
        self.records = np.frombuffer(self._map, self._dtype)

"""Blocks numbered from 0, so that what is known of each fits in plain columns.

A log of serving requests names hundreds of millions of blocks; a dictionary would take a hundred
bytes for each.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

#: Ids up to so many times the ids seen so far are their own numbers: a gap costs a few bytes.
_DENSE = 16
_FREE = 1 << 20


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


class BlockColumn:
    """A value for each block number, `empty` until it is set."""

    def __init__(self, dtype: type[np.generic], empty: int) -> None:
        self._empty = empty
        self.values: NDArray[Any] = np.full(1024, empty, dtype)

    def reach(self, numbers: Numbers) -> NDArray[Any]:
        """The column, long enough for these numbers."""
        needed = int(numbers.max()) + 1 if len(numbers) else 0
        if needed > len(self.values):
            longer = np.full(max(needed, len(self.values) * 3 // 2), self._empty, self.values.dtype)
            longer[: len(self.values)] = self.values
            self.values = longer
        return self.values

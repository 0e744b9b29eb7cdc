"""Blocks numbered from 0, so that what is known of each fits in plain columns.

A log of serving requests names hundreds of millions of blocks; a dictionary would take a hundred
bytes for each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lachesis.traces.readers.block_table import BlockTable, Numbers

Ids = NDArray[np.uint64]

#: Ids up to so many times the ids seen so far are their own numbers: a gap costs a few bytes.
_DENSE: Final = 16
_FREE: Final = 1 << 20
_FIRST_SLOTS_LOG2: Final = 16
#: Fibonacci hashing: ids that are near each other come to lie far apart (Knuth, vol. 3, 6.4).
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
_SLOT: Final = np.dtype([("id", np.uint64), ("number", np.int64)])  # the number from 1; 0: free
_AT_ONCE: Final = 1 << 16


class BlockNumbers:
    """Numbers of block ids. Ids that count up from 0 are their own numbers; others are looked up.

    Example:
        >>> numbers = BlockNumbers()
        >>> numbers.of(np.array([4, 7], np.uint64)).tolist()
        [4, 7]
        >>> numbers.of(np.array([2**60, 4], np.uint64)).tolist(), numbers.ids_of(np.array([8]))
        ([8, 4], array([1152921504606846976], dtype=uint64))
    """

    def __init__(self, scratch: Path | None = None) -> None:
        self._scratch = scratch
        self._seen = 0
        self._end = 0  # one more than the largest number given out
        self._first_looked_up: int | None = None
        self._slots: _Slots
        self._ids: BlockTable  # of the numbers from `_first_looked_up` on

    def of(self, ids: Ids) -> Numbers:
        """The number of each id."""
        self._seen += len(ids)
        if self._first_looked_up is None:
            largest = int(ids.max()) if len(ids) else 0
            if largest < _FREE + _DENSE * self._seen:
                self._end = max(self._end, largest + 1) if len(ids) else self._end
                return ids.astype(np.int64)
            self._first_looked_up = self._end
            self._slots = _Slots(self._scratch)
            self._ids = BlockTable(np.dtype(np.uint64), self._scratch)
        numbers = ids.astype(np.int64)  # those below are their own numbers, as they were before
        above = np.flatnonzero(ids >= np.uint64(self._first_looked_up))
        if len(above):
            numbers[above] = self._looked_up(ids[above])
        return numbers

    def ids_of(self, numbers: Numbers) -> Ids:
        """The ids that have these numbers."""
        ids = numbers.astype(np.uint64)
        if self._first_looked_up is not None:
            above = np.flatnonzero(numbers >= self._first_looked_up)
            places = numbers[above] - self._first_looked_up
            ids[above] = self._ids.reach(places)[places]
        return ids

    def _looked_up(self, ids: Ids) -> Numbers:
        assert self._first_looked_up is not None, "Invariant: some ids are looked up"
        numbers = self._slots.find(ids)
        if (numbers < 0).any():
            new, which = np.unique(ids[numbers < 0], return_inverse=True)
            given = np.arange(self._end, self._end + len(new))
            self._end += len(new)
            numbers[numbers < 0] = given[which]
            places = given - self._first_looked_up
            self._ids.reach(places)[places] = new
            if not self._slots.has_room_for(len(new)):
                self._slots = _Slots(self._scratch, self._slots.log2 + 2)
                known = np.arange(self._end - self._first_looked_up - len(new))
                for first in range(0, len(known), _AT_ONCE):
                    some = known[first : first + _AT_ONCE]
                    self._slots.add(self._ids.reach(some)[some], some + self._first_looked_up)
            self._slots.add(new, given)
        return numbers


class _Slots:
    """A hash table with open addressing: an id lies in the first slot from its own that was free.

    Many ids go through it at once: each round looks at the next slot of those that are not settled.
    """

    def __init__(self, scratch: Path | None, log2: int = _FIRST_SLOTS_LOG2) -> None:
        self.log2 = log2
        self._taken = 0
        self._table = BlockTable(_SLOT, scratch, records=1 << log2)

    def has_room_for(self, count: int) -> bool:
        """Whether with so many ids more half of the slots are free."""
        return 2 * (self._taken + count) <= 1 << self.log2

    def find(self, ids: Ids) -> Numbers:
        """The number of each id, -1 where it is not there."""
        numbers = np.full(len(ids), -1, np.int64)
        slots = self._table.reach_below(0, len(ids))
        left, places = np.arange(len(ids)), self._places(ids)
        while len(left):
            found = slots[places]
            here = found["id"] == ids[left]
            here &= found["number"] > 0
            numbers[left[here]] = found["number"][here] - 1
            on = (found["number"] > 0) & ~here
            left, places = left[on], self._next(places[on])
        return numbers

    def add(self, ids: Ids, numbers: Numbers) -> None:
        """Put in ids that differ and are not there."""
        self._taken += len(ids)
        slots = self._table.reach_below(0, len(ids))
        left, places = np.arange(len(ids)), self._places(ids)
        while len(left):
            free = slots["number"][places] == 0
            slots["number"][places[free]] = numbers[left[free]] + 1  # of several the last one stays
            mine = slots["number"][places] == numbers[left] + 1
            slots["id"][places[mine]] = ids[left[mine]]
            left, places = left[~mine], self._next(places[~mine])

    def _places(self, ids: Ids) -> Numbers:
        return ((ids * _SPREAD) >> np.uint64(64 - self.log2)).astype(np.int64)

    def _next(self, places: Numbers) -> Numbers:
        return (places + 1) & ((1 << self.log2) - 1)

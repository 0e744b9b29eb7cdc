"""Records by number that need no memory: in a temporary file that is mapped into it."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lachesis.traces.scratch_file import room_for_scratch, scratch_file

Numbers = NDArray[np.int64]

_FIRST_RECORDS: Final = 1 << 16
#: A larger file is let go of whenever so many records were used; each may lie on its own page.
_STAYS_BYTES: Final = 16 << 20
_USES_TILL_RELEASE: Final = 1 << 16


class BlockTable:
    """A record for each number, zero until it is set, in a temporary file without a name.

    A small file stays mapped. A larger one is let go of now and then: what was used of it lately is
    in memory, the rest on disk (or in what the system has to spare).
    """

    def __init__(
        self, dtype: np.dtype[Any], folder: Path | None = None, records: int = _FIRST_RECORDS
    ) -> None:
        self._dtype = dtype
        self._folder = folder
        self._file = scratch_file(self, folder)
        self._uses = 0
        self._map: mmap.mmap
        self.records: NDArray[Any]
        self._grow(records)

    def reach(self, numbers: Numbers) -> NDArray[Any]:
        """The records, enough for these numbers; good until the next call."""
        return self.reach_below(int(numbers.max()) + 1 if len(numbers) else 0, len(numbers))

    def reach_below(self, end: int, uses: int) -> NDArray[Any]:
        """The records below a number, for so many uses; good as above."""
        if end > len(self.records):
            self._grow(max(end, len(self.records) * 3 // 2))
        self._uses += uses
        if self._uses >= _USES_TILL_RELEASE:
            self._uses = 0
            if self.records.nbytes > _STAYS_BYTES and hasattr(self._map, "madvise"):
                self._map.madvise(mmap.MADV_DONTNEED)
        return self.records

    def _grow(self, records: int) -> None:
        size_bytes = records * self._dtype.itemsize
        with room_for_scratch(self._folder):
            self._file.truncate(size_bytes)
            self._map = mmap.mmap(self._file.fileno(), size_bytes)
        self.records = np.frombuffer(self._map, self._dtype)

"""Records grouped by number while memory holds few of them: for logs whose sessions interleave.

Records are taken in any order of their numbers. What exceeds 8 MB is sorted and put by in a
temporary file without a name, as one run; the runs are merged when the groups are asked for.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from hashlib import blake2b
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import IO, Final

import numpy as np
from numpy.typing import NDArray

from lachesis.traces.scratch_file import room_for_scratch, scratch_file

_RUN_BYTES: Final = 8_000_000
_READ_RECORDS: Final = 512
_READ_BYTES: Final = 1 << 15
_RECENT: Final = 65_536
_RECENT_SHARE: Final = 32  # of all names: memory of some four bytes a name, and few merges


class RecordGroups:
    """Takes records with a number, and gives them back group by group, in order of the numbers.

    Within a group records have the order in which they came. `folder`: where the temporary file is
    made; the system's folder for such files if None.

    Example:
        >>> groups = RecordGroups()
        >>> for number, record in ((7, b"a"), (3, b"b"), (7, b"c")):
        ...     groups.append(number, record)
        >>> list(groups)
        [(3, [b'b']), (7, [b'a', b'c'])]
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._numbers = array("q")
        self._ends = array("q")
        self._content = bytearray()
        self._runs: list[tuple[int, int]] = []  # where a run begins in the file, and its records
        self._file: IO[bytes] | None = None

    def append(self, number: int, record: bytes) -> None:
        """Take a record; raises `InputError` if the disk cannot hold it."""
        self._content += record
        self._numbers.append(number)
        self._ends.append(len(self._content))
        if len(self._content) >= _RUN_BYTES:
            self._put_by()

    def __iter__(self) -> Iterator[tuple[int, list[bytes]]]:
        for number, records in groupby(self.records(), key=itemgetter(0)):
            yield number, [record for _, record in records]

    def records(self) -> Iterator[tuple[int, bytes]]:
        """All records with their numbers, in order of these."""
        runs = [self._run(*run) for run in self._runs]
        runs.append(self._last_run())
        return merge(*runs, key=itemgetter(0)) if len(runs) > 1 else runs[0]

    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Numbers in order, and where their records begin and end."""
        numbers = np.frombuffer(self._numbers, np.int64) if self._numbers else np.zeros(0, np.int64)
        ends = np.frombuffer(self._ends, np.int64) if self._ends else np.zeros(0, np.int64)
        order = np.argsort(numbers, kind="stable")
        return numbers[order], np.concatenate([[0], ends[:-1]])[order], ends[order]

    def _last_run(self) -> Iterator[tuple[int, bytes]]:
        numbers, starts, ends = self._sorted()
        content = bytes(self._content)
        for first in range(0, len(numbers), _READ_RECORDS):
            piece = slice(first, first + _READ_RECORDS)
            for number, start, end in zip(
                numbers[piece].tolist(), starts[piece].tolist(), ends[piece].tolist(), strict=True
            ):
                yield number, content[start:end]

    def _put_by(self) -> None:
        numbers, starts, ends = self._sorted()
        content = bytes(self._content)
        if self._file is None:
            self._file = scratch_file(self, self._folder)
        with room_for_scratch(self._folder):
            begin = self._file.seek(0, os.SEEK_END)
            self._file.write(numbers.tobytes())
            self._file.write((ends - starts).tobytes())
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
                self._file.write(content[start:end])
            self._file.flush()
        self._runs.append((begin, len(numbers)))
        self._numbers, self._ends, self._content = array("q"), array("q"), bytearray()

    def _run(self, begin: int, count: int) -> Iterator[tuple[int, bytes]]:
        assert self._file is not None, "Invariant: a run is in the file"
        file = self._file.fileno()
        at = begin + 16 * count
        for first in range(0, count, _READ_RECORDS):
            many = min(_READ_RECORDS, count - first)
            numbers = np.frombuffer(os.pread(file, 8 * many, begin + 8 * first), np.int64)
            lengths = np.frombuffer(os.pread(file, 8 * many, begin + 8 * (count + first)), np.int64)
            # There may be hundreds of runs, and records may be long: so these come piece by piece.
            pieces = (np.cumsum(lengths) - lengths) // _READ_BYTES
            for piece in np.split(np.arange(many), np.flatnonzero(np.diff(pieces)) + 1):
                ends = np.cumsum(lengths[piece]).tolist()
                content = os.pread(file, ends[-1], at)
                at += ends[-1]
                start = 0
                for number, end in zip(numbers[piece].tolist(), ends, strict=True):
                    yield number, content[start:end]
                    start = end


class NameNumbers:
    """Numbers of names, 0, 1, 2, … as they come, in some sixteen bytes a name.

    Names are kept as 64-bit hashes; two names of one hash, which even among a hundred million is
    not expected, would count as one.

    Example:
        >>> numbers = NameNumbers()
        >>> [numbers.of(name) for name in ("b", "a", "b")], len(numbers)
        ([0, 1, 0], 2)
    """

    def __init__(self) -> None:
        self._count = 0
        self._recent: dict[str, int] = {}
        self._fresh = array("Q")  # hashes of the latest names, not in the sorted columns yet
        self._hashes: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self._numbers: NDArray[np.int64] = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return self._count

    def of(self, name: str) -> int:
        """The number of a name, which is the next one if it is new."""
        number = self._recent.get(name)
        if number is None:
            number = self._recall(name)
        return number

    def _recall(self, name: str) -> int:
        if len(self._recent) >= max(_RECENT, len(self._hashes) // _RECENT_SHARE):
            self._put_by()
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        key = int.from_bytes(digest, "little")
        place = int(self._hashes.searchsorted(np.uint64(key)))
        if place < len(self._hashes) and int(self._hashes[place]) == key:
            number = int(self._numbers[place])
        else:
            number = self._count
            self._count += 1
            self._fresh.append(key)
        self._recent[name] = number
        return number

    def _put_by(self) -> None:
        fresh = np.array(self._fresh, np.uint64)
        order = np.argsort(fresh)
        numbers = self._count - len(fresh) + order
        hashes = np.concatenate([self._hashes, fresh[order]])
        order = np.argsort(hashes, kind="stable")  # a merge of two sorted runs
        self._hashes = hashes[order]
        self._numbers = np.concatenate([self._numbers, numbers])[order]
        self._recent.clear()
        del self._fresh[:]

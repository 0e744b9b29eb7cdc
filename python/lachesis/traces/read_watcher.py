"""How far reading is: what an observer is told, and the ledger that knows how much was read.

Files report from the one place where their bytes come from (`readers.protocol.SourceFile`), so that
no reader has to. Bytes are those on disk: of a compressed file, the compressed ones.
"""

from __future__ import annotations

import io
from array import array
from dataclasses import dataclass, field
from typing import Any

from lachesis.traces.record_groups import NameNumbers

_PIECE_BYTES = 1 << 20


class ReadWatcher:
    """Is told how far reading is; does nothing. Override what is wanted.

    Called from the thread that reads, at most once for every mebibyte of a file and for every file.

    Example:
        >>> from lachesis.traces import ReadOptions
        >>> class Printer(ReadWatcher):
        ...     def bytes_read(self, file, files, read_bytes, total_bytes):
        ...         print(f"file {file} of {files}: {read_bytes} of {total_bytes} bytes")
        >>> options = ReadOptions(watcher=Printer())
    """

    def files_found(self, files: int) -> None:
        """So many files were found so far; none is read yet but for its head."""

    def bytes_read(self, file: int, files: int, read_bytes: int, total_bytes: int) -> None:
        """File number `file` (from 1, in the order of reading) is being read.

        `read_bytes` is of all files together and never falls, though a file may be read twice;
        `files` and `total_bytes` grow where a reader finds more files beside those given.
        """

    def all_read(self) -> None:
        """Every file was read; sessions that wait for others are put together and checked."""


@dataclass(slots=True)
class ReadLedger:
    """Adds up what was read of which file, and tells a watcher.

    Example:
        >>> ledger = ReadLedger(ReadWatcher())
        >>> ledger.expect("a.jsonl", 10)
        >>> ledger.reached("a.jsonl", 4)
        >>> ledger.reached("a.jsonl", 2)  # read again from its beginning
        >>> ledger.read_bytes, ledger.total_bytes
        (4, 10)
    """

    watcher: ReadWatcher
    read_bytes: int = 0
    total_bytes: int = 0
    _numbers: NameNumbers = field(default_factory=NameNumbers)
    _sizes: array[int] = field(default_factory=lambda: array("q"))
    _reached: array[int] = field(default_factory=lambda: array("q"))  # -1: not read yet
    _begun: int = 0

    def expect(self, path: str, size_bytes: int) -> None:
        """A file of this size will be read."""
        self._number(path, size_bytes)

    def reached(self, path: str, position_bytes: int) -> None:
        """The file was read up to here."""
        number = self._number(path, position_bytes)
        before = self._reached[number]
        if before < 0:
            self._begun += 1
            before = 0
        # The file may have grown since, and it may be read again from its beginning.
        position_bytes = max(before, min(position_bytes, self._sizes[number]))
        self._reached[number] = position_bytes
        self.read_bytes += position_bytes - before
        self.watcher.bytes_read(self._begun, len(self._sizes), self.read_bytes, self.total_bytes)

    def _number(self, path: str, size_bytes: int) -> int:
        number = self._numbers.of(path)
        if number == len(self._sizes):
            self._sizes.append(size_bytes)
            self._reached.append(-1)
            self.total_bytes += size_bytes
        return number


class CountedFile(io.RawIOBase):
    """A file whose reading shows in a ledger. `path` is the file's; takes over `raw`."""

    def __init__(self, raw: io.FileIO, path: str, ledger: ReadLedger) -> None:
        super().__init__()
        self._raw = raw
        self._path = path
        self._ledger = ledger
        self._position = 0
        self._told = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 - any writable buffer
        """Fill `buffer` as far as the file goes at once; 0 at the end."""
        count = self._raw.readinto(buffer) or 0
        self._position += count
        if not count or self._position - self._told >= _PIECE_BYTES:
            self._tell()
        return count

    def _tell(self) -> None:
        self._told = self._position
        self._ledger.reached(self._path, self._position)

    def readall(self) -> bytes:
        """The rest of the file, taken in pieces so that an interrupt comes through."""
        pieces: list[bytes] = []
        while piece := self.read(_PIECE_BYTES):
            pieces.append(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Close the file beneath."""
        if self._told < self._position:
            self._tell()
        self._raw.close()
        super().close()

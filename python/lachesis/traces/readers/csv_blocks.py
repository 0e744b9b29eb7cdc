"""CSV files in blocks of lines: as columns where a block has nothing odd, else row by row.

Reading columns takes a hundredth of the time. A block is odd if a quote, an empty line, a line end
of old Macs or bytes that are no text stand in it, or if a row has not the header's fields; its rows
are then read one by one, by Python's csv, which knows what is wrong and in which line.
"""

from __future__ import annotations

import csv
import io
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from lachesis.errors import InputError
from lachesis.traces.readers.protocol import STREAM_FAULTS, SourceFile

_BLOCK_BYTES: Final = 1 << 20
_ODD: Final = (b'"', b"\0")


class Columns(NamedTuple):
    """The rows of a block: their lines, and the wanted columns as trimmed texts, empty as null."""

    numbers: np.ndarray
    texts: dict[str, pa.Array]


class CsvBlock:
    """Some lines of a file, each ended; `number` is the first one's."""

    def __init__(self, file: CsvFile, number: int, content: bytes) -> None:
        self._file = file
        self._content = content
        self.number = number
        self.lines = 0  # how many it has, once it was read

    def columns(self, wanted: Sequence[str]) -> Columns | None:
        """The wanted columns that the file has; None if the block has to be read row by row."""
        content = self._content
        if any(mark in content for mark in _ODD):
            return None
        if content.count(b"\r") != content.count(b"\r\n"):
            return None
        if not content.isascii():
            try:
                content.decode()
            except UnicodeDecodeError:
                return None
            if content.startswith(BOM_UTF8):
                return None  # Arrow would drop it, which is part of the first value here
        ends = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n"))
        if np.diff(ends, prepend=-1).max(initial=0) > csv.field_size_limit():
            return None
        names = self._file.names
        present = [name for name in wanted if name in names]
        try:
            table = pyarrow.csv.read_csv(
                pa.BufferReader(content),
                pyarrow.csv.ReadOptions(
                    use_threads=False, column_names=names, block_size=len(content) + 1
                ),
                pyarrow.csv.ParseOptions(
                    delimiter=self._file.delimiter, quote_char=False, ignore_empty_lines=False
                ),
                pyarrow.csv.ConvertOptions(
                    include_columns=present, column_types=dict.fromkeys(present, pa.string())
                ),
            )
        except pa.ArrowInvalid:
            return None
        self.lines = table.num_rows
        return Columns(
            np.arange(self.number, self.number + self.lines),
            {name: _trimmed(table[name].combine_chunks()) for name in present},
        )

    def rows(self) -> Iterator[tuple[int, Mapping[str, str]]]:
        """Every row with the number of its last line; raises `InputError` for a broken one.

        A row that goes on after the block is taken whole.
        """
        file = self._file
        try:
            own = list(io.StringIO(self._content.decode("utf-8"), newline=""))
        except UnicodeDecodeError as fault:
            before = self._content[: fault.start].count(b"\n")
            raise file.broken(fault, self.number + before) from fault
        reader = csv.reader(self._lines(own), delimiter=file.delimiter, strict=True)
        while reader.line_num < len(own):
            try:
                values = next(reader)
            except (csv.Error, UnicodeDecodeError, *STREAM_FAULTS) as fault:
                raise file.broken(fault, self.number + reader.line_num) from fault
            self.lines = reader.line_num
            if not values:
                continue
            number = self.number + reader.line_num - 1
            if len(values) != len(file.names):
                rule = f"has {len(values)} fields, the header {len(file.names)}"
                raise InputError(rule, path=file.file.name, row=number)
            yield number, dict(zip(file.names, values, strict=True))

    def _lines(self, own: list[str]) -> Iterator[str]:
        yield from own
        while line := self._file.line():
            yield line


class CsvFile:
    """A CSV file with the names in its header. Iterating opens it and gives its blocks."""

    def __init__(self, file: SourceFile, names: list[str], delimiter: str) -> None:
        self.file = file
        self.names = names
        self.delimiter = delimiter
        self._stream: BinaryIO
        self._left: list[str] = []  # lines that were read from the stream and not taken

    def __iter__(self) -> Iterator[CsvBlock]:
        with self.file.open() as self._stream:
            number = self._skip_header()
            while content := self._read(number):
                block = CsvBlock(self, number, content)
                yield block
                number += block.lines

    def line(self) -> str:
        """The next line, whatever ends it; empty at the end of the file."""
        if not self._left:
            self._left = list(io.StringIO(self._stream.readline().decode("utf-8"), newline=""))
        return self._left.pop(0) if self._left else ""

    def broken(self, fault: Exception, row: int) -> InputError:
        """The error for what is no CSV."""
        return InputError(f"not valid CSV: {fault}", path=self.file.name, row=row)

    def _skip_header(self) -> int:
        """Read the header; returns the number of the line after it."""
        reader = csv.reader(iter(self.line, ""), delimiter=self.delimiter, strict=True)
        try:
            next(reader, None)
        except (csv.Error, UnicodeDecodeError, *STREAM_FAULTS) as fault:
            raise self.broken(fault, reader.line_num + 1) from fault
        return reader.line_num + 1

    def _read(self, number: int) -> bytes:
        left, self._left = "".join(self._left).encode(), []
        try:
            return left + self._stream.read(_BLOCK_BYTES) + self._stream.readline()
        except STREAM_FAULTS as fault:
            raise self.broken(fault, number) from fault


def _trimmed(texts: pa.Array) -> pa.Array:
    trimmed = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)

"""Batches of whole sessions between reading and writing: the first in memory, the rest on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa

from lachesis.traces.schema import TABLES
from lachesis.traces.scratch_file import room_for_scratch, scratch_file
from lachesis.traces.totals import TraceTotals

_MEMORY_BYTES = 16_000_000

#: The five tables by name.
Tables = dict[str, pa.Table]


class Spool:
    """Takes batches in order and gives them back, as often as asked for.

    What exceeds 16 MB goes to a temporary file without a name, which is gone whatever ends the
    process. `folder`: where that file is made; the system's folder for such files if None.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._batches: list[Tables | int] = []  # a number: where it begins in the file
        self._totals: list[TraceTotals] = []
        self._memory_bytes = 0
        self._file: IO[bytes] | None = None

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Tables]:
        for index in range(len(self._batches)):
            yield self[index]

    def __getitem__(self, index: int) -> Tables:
        batch = self._batches[index]
        if isinstance(batch, dict):
            return batch
        assert self._file is not None, "Invariant: a batch that is not in memory is in the file"
        self._file.seek(batch)
        tables: Tables = {}
        for name in TABLES:
            with pa.ipc.open_stream(self._file) as stream:
                tables[name] = stream.read_all()
        return tables

    @property
    def totals(self) -> TraceTotals:
        """What all batches add up to."""
        return TraceTotals.sum(self._totals)

    def append(self, tables: Tables) -> None:
        """Take the next batch; raises `InputError` if the disk cannot hold it."""
        self._totals.append(TraceTotals.of(tables))
        size_bytes = sum(table.nbytes for table in tables.values())
        if self._memory_bytes + size_bytes <= _MEMORY_BYTES:
            self._memory_bytes += size_bytes
            self._batches.append(tables)
            return
        if self._file is None:
            self._file = scratch_file(self, self._folder)
        with room_for_scratch(self._folder):
            self._batches.append(self._write(self._file, tables))

    def truncate(self, count: int) -> None:
        """Forget all but the first `count` batches."""
        gone, self._batches = self._batches[count:], self._batches[:count]
        del self._totals[count:]
        self._memory_bytes -= sum(
            table.nbytes for batch in gone if isinstance(batch, dict) for table in batch.values()
        )
        on_disk = [batch for batch in gone if isinstance(batch, int)]
        if on_disk and self._file is not None:
            self._file.truncate(on_disk[0])

    @staticmethod
    def _write(file: IO[bytes], tables: Tables) -> int:
        begin = file.seek(0, 2)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        for name in TABLES:
            table = tables[name]
            with pa.ipc.new_stream(file, table.schema, options=options) as stream:
                stream.write_table(table.combine_chunks())
        return begin

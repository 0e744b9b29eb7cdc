"""Digests of sessions, and of traces: over all rows, names of sessions and sources left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import pairwise, repeat
from typing import IO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lachesis.traces.schema import TABLES
from lachesis.traces.scratch_file import room_for_scratch, scratch_file

_LEFT_OUT: Final = frozenset({"session", "source"})
_BLOCK_ROWS: Final = 16_384
_DIGEST_BYTES: Final = 32
_BUCKETS: Final = 64  # as many files may be open
_BUCKET_BYTES: Final = 1 << 16


def digests_by_session(tables: Mapping[str, pa.Table]) -> dict[str, bytes]:
    """A SHA-256 digest of each session's rows in all five tables, in the order of sessions.

    Raises `KeyError` for rows of a session that is not in the sessions table.
    """
    digests = {name: sha256() for name in tables["sessions"]["session"].to_pylist()}
    for table_name in TABLES:
        for session, text in _texts(table_name, tables[table_name]):
            digests[session].update(text.encode())
    return {name: digest.digest() for name, digest in digests.items()}


def _texts(table_name: str, table: pa.Table) -> Iterator[tuple[str, str]]:
    """For every run of rows of one session its name, and what of the run enters the digest."""
    names = [name for name in table.schema.names if name not in _LEFT_OUT]
    sessions, ends = _runs(table)
    first = 0
    while first < len(sessions):
        begin = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, begin + _BLOCK_ROWS, "right")))
        block = table.slice(begin, ends[last - 1] - begin)
        offsets = [0, *(ends[first:last] - begin).tolist()]
        columns = [block[name].combine_chunks() for name in names]
        texts = (
            _texts_of_rows(columns)
            if len(offsets) - 1 == block.num_rows
            else map(
                "".join, zip(*(_texts_of_runs(each, offsets) for each in columns), strict=True)
            )
        )
        for session, text in zip(sessions[first:last], texts, strict=True):
            yield session, table_name + text
        first = last


def _texts_of_runs(column: pa.Array, offsets: list[int]) -> list[str]:
    values = column.to_pylist()
    return [repr(values[start:end]) for start, end in pairwise(offsets)]


def _texts_of_rows(columns: list[pa.Array]) -> Iterable[str]:
    """The same where each run is one row; columns of one value, as most are then, cost little."""
    parts: list[str | list[str]] = []
    for column in columns:
        values = column.to_pylist()
        # Equal floats may be written differently: 0.0 and -0.0.
        plain = values[0] == [] or not isinstance(values[0], (float, list))
        if plain and values.count(values[0]) == len(values):
            text = f"[{values[0]!r}]"
            if parts and isinstance(parts[-1], str):
                parts[-1] += text
            else:
                parts.append(text)
        else:
            parts.append([f"[{value!r}]" for value in values])
    count = len(columns[0])
    if len(parts) == 1 and isinstance(parts[0], str):
        return repeat(parts[0], count)
    rows = zip(
        *(repeat(each, count) if isinstance(each, str) else each for each in parts), strict=True
    )
    return map("".join, rows)


def _runs(table: pa.Table) -> tuple[list[str], np.ndarray]:
    """The session of every run of equal names, and where the runs end."""
    if table.num_rows == 0:
        return [], np.zeros(0, np.int64)
    encoded = pc.run_end_encode(table["session"].combine_chunks())
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return encoded.values.to_pylist(), np.asarray(encoded.run_ends, np.int64)


class TraceDigest:
    """The digest of a trace from the digests of its sessions: over these, sorted.

    However many there are, memory holds few: they go to temporary files by their first bits.

    Example:
        >>> digest = TraceDigest()
        >>> for session in (b"b", b"a"):
        ...     digest.add(sha256(session).digest())
        >>> digest.hex() == sha256(
        ...     b"".join(sorted(sha256(session).digest() for session in (b"b", b"a")))
        ... ).hexdigest()
        True
    """

    def __init__(self) -> None:
        self._buckets = [bytearray() for _ in range(_BUCKETS)]
        self._files: dict[int, IO[bytes]] = {}

    def add(self, digest: bytes) -> None:
        """Take the digest of a session."""
        number = digest[0] * _BUCKETS // 256
        bucket = self._buckets[number]
        bucket += digest
        if len(bucket) >= _BUCKET_BYTES:
            if number not in self._files:
                self._files[number] = scratch_file(self)
            with room_for_scratch():
                self._files[number].write(bucket)
            bucket.clear()

    def hex(self) -> str:
        """The digest of the trace in hex."""
        whole = sha256()
        for number, bucket in enumerate(self._buckets):
            content = bytes(bucket)
            if number in self._files:
                with self._files.pop(number) as file:
                    file.seek(0)
                    content = file.read() + content
            whole.update(np.sort(np.frombuffer(content, f"S{_DIGEST_BYTES}")).tobytes())
        return whole.hexdigest()

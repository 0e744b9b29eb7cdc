"""Digests of sessions, and of traces: over all rows, names of sessions and sources left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import pairwise
from typing import IO, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lachesis.traces.schema import TABLES
from lachesis.traces.scratch_file import room_for_scratch, scratch_file
from lachesis.traces.value_texts import joined, lists_inside, text_of_all, value_texts

_LEFT_OUT: Final = frozenset({"session", "source"})
_BLOCK_ROWS: Final = 16_384
_DIGEST_BYTES: Final = 32
_BUCKETS: Final = 64  # as many files may be open
_BUCKET_BYTES: Final = 1 << 16


def digests_by_session(tables: Mapping[str, pa.Table]) -> dict[str, bytes]:
    """A SHA-256 digest of each session's rows in all five tables, in the order of sessions.

    Raises `KeyError` for rows of a session that is not in the sessions table.
    """
    names = tables["sessions"]["session"].combine_chunks()
    runs = {name: _Runs.of(tables[name], names) for name in TABLES}
    if all((np.diff(each.sessions) > 0).all() for each in runs.values()):
        digests = _of_sessions_in_order(len(names), tables, runs)
        return dict(zip(names.to_pylist(), digests, strict=True))
    found = {session: sha256() for session in range(len(names))}
    for name, each in runs.items():
        for first, last in _blocks(each):
            texts = _texts(name, tables[name], each, first, last)
            for session, text in zip(each.sessions[first:last].tolist(), texts, strict=True):
                found[session].update(text.as_buffer())
    return {name: found[row].digest() for row, name in enumerate(names.to_pylist())}


class _Runs(NamedTuple):
    """Runs of a table's rows that are of one session: that session's row, and where they end."""

    sessions: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, table: pa.Table, names: pa.Array) -> _Runs:
        if table.num_rows == 0:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))
        encoded = pc.run_end_encode(table["session"].combine_chunks())
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        rows = pc.index_in(encoded.values, value_set=names)
        if rows.null_count:
            raise KeyError(encoded.values[pc.index(rows.is_null(), value=True).as_py()].as_py())
        return cls(rows.to_numpy().astype(np.int64), np.asarray(encoded.run_ends, np.int64))

    def begin(self, run: int) -> int:
        return int(self.ends[run - 1]) if run else 0


def _of_sessions_in_order(
    count: int, tables: Mapping[str, pa.Table], runs: Mapping[str, _Runs]
) -> Iterator[bytes]:
    """The digests of sessions whose rows stand together in every table, in its order."""
    biggest = max(runs.values(), key=lambda each: int(each.ends[-1]) if len(each.ends) else 0)
    begin = 0
    for _, last in _blocks(biggest):
        end = int(biggest.sessions[last]) if last < len(biggest.sessions) else count
        if end == begin + 1:  # it may be a long one
            yield _of_one_session(begin, tables, runs)
            begin = end
            continue
        texts = [
            _texts_by_session(name, table, runs[name], begin, end) for name, table in tables.items()
        ]
        whole = joined(*texts)
        content = memoryview(whole.buffers()[2] or b"")
        offsets = np.frombuffer(whole.buffers()[1], np.int64).tolist()
        for start, stop in pairwise(offsets[whole.offset : whole.offset + len(whole) + 1]):
            yield sha256(content[start:stop]).digest()
        begin = end


def _of_one_session(
    session: int, tables: Mapping[str, pa.Table], runs: Mapping[str, _Runs]
) -> bytes:
    """The same for one session, with the texts of few rows at once in memory."""
    digest = sha256()
    for name, table in tables.items():
        run = int(np.searchsorted(runs[name].sessions, session))
        if run == len(runs[name].sessions) or runs[name].sessions[run] != session:
            continue
        first, end = runs[name].begin(run), runs[name].begin(run + 1)
        mark = f"{name}["
        for column in table.schema.names:
            if column in _LEFT_OUT:
                continue
            for begin in range(first, end, _BLOCK_ROWS):
                values = table[column].slice(begin, min(_BLOCK_ROWS, end - begin)).combine_chunks()
                text = lists_inside(value_texts(values), np.array([0, len(values)]))
                digest.update((mark if begin == first else ", ").encode())
                digest.update(text[0].as_buffer())
            mark = "]["
        digest.update(b"]")
    return digest.digest()


def _texts_by_session(name: str, table: pa.Table, runs: _Runs, begin: int, end: int) -> pa.Array:
    """What of each session from row `begin` up to `end` enters the digest; null for nothing."""
    first, last = np.searchsorted(runs.sessions, [begin, end]).tolist()
    texts = _texts(name, table, runs, first, last)
    if len(texts) == end - begin:
        return texts
    places = np.full(end - begin, -1)
    places[runs.sessions[first:last] - begin] = np.arange(last - first)
    return texts.take(pa.array(places, mask=places < 0))


def _blocks(runs: _Runs) -> Iterator[tuple[int, int]]:
    """Runs in blocks of not too many rows."""
    first = 0
    while first < len(runs.ends):
        limit = runs.begin(first) + _BLOCK_ROWS
        last = max(first + 1, int(np.searchsorted(runs.ends, limit, "right")))
        yield first, last
        first = last


def _texts(name: str, table: pa.Table, runs: _Runs, first: int, last: int) -> pa.Array:
    """For each of these runs what of it enters the digest: every column, as a list of values."""
    begin = runs.begin(first)
    block = table.slice(begin, runs.begin(last) - begin)
    offsets = np.concatenate([[0], runs.ends[first:last] - begin])
    parts: list[str | pa.Array] = []
    for column in table.schema.names:
        if column not in _LEFT_OUT:
            values = block[column].combine_chunks()
            parts.append("][" if parts else f"{name}[")
            if len(values) > last - first:
                parts.append(lists_inside(value_texts(values), offsets))
            else:  # runs of one row
                same = text_of_all(values)
                parts.append(value_texts(values) if same is None else same)
    texts = joined(*parts, "]")
    return texts if isinstance(texts, pa.Array) else pa.repeat(texts, last - first)


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

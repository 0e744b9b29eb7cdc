"""What a reader is, and what it gets to work with."""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import msgspec
import zstandard

from lachesis.errors import InputError, printable
from lachesis.traces.builder import TraceBuilder
from lachesis.traces.read_watcher import CountedFile, ReadLedger, ReadWatcher
from lachesis.traces.readers.json_fault import MALFORMED
from lachesis.traces.readers.zstd_stream import ZstdStream
from lachesis.traces.token_count import CHARACTERS_PER_TOKEN_NAME, estimate_tokens

HEAD_BYTES = 65_536
_COMPRESSED = {".gz", ".zst"}
#: So small that its memory is used again for the next file, and not given back to the system.
_BUFFER_BYTES = 1 << 18
#: So much of a file's lines is handled at once where many are.
LINES_BYTES = 1 << 19
#: What reading a file, or decompressing it, may raise.
STREAM_FAULTS = (OSError, EOFError, zlib.error, zstandard.ZstdError)


class SourceFile(msgspec.Struct, frozen=True):
    """A file to read, compressed or not. There may be millions, so each keeps but names.

    `place` is the file's path, `name` what messages and the trace's `source` column call it (the
    path as the user gave it, or relative to the folder that was searched). What is read of it shows
    in `ledger`, if there is one. Where it was looked at before, `kept_head` is its head (the whole
    file, if shorter than `HEAD_BYTES`), `known_size_bytes` its size on disk, and `real_path` where
    `place` leads to.
    """

    place: str
    name: str
    kept_head: bytes | None = None
    ledger: ReadLedger | None = None
    real_path: str | None = None
    known_size_bytes: int | None = None

    @property
    def path(self) -> Path:
        """Where it lies."""
        return Path(self.place)

    @property
    def workload(self) -> str:
        """The workload of its requests where a log has none: its name up to the first dot."""
        return Path(self.name).name.split(".")[0]

    @property
    def resolved(self) -> str:
        """The path with all links followed: equal for two files that are the same."""
        return os.path.realpath(self.place) if self.real_path is None else self.real_path

    @property
    def head(self) -> bytes:
        """Its first 64 KiB, decompressed; read again where they were not kept."""
        if self.kept_head is not None:
            return self.kept_head
        return self.peeked().read_bytes(HEAD_BYTES)

    @property
    def start(self) -> bytes:
        """Its head from the first byte on that is no white space or byte order mark."""
        return self.head.lstrip(b"\xef\xbb\xbf \t\r\n")

    @property
    def ending(self) -> str:
        """The file's ending, lower case, without a compression's: ``.jsonl`` for ``a.jsonl.gz``."""
        suffix = _suffix(self.place)
        return _suffix(self.place[: -len(suffix)]) if suffix in _COMPRESSED else suffix

    @property
    def size_bytes(self) -> int:
        """Its size on disk."""
        if self.known_size_bytes is not None:
            return self.known_size_bytes
        return self.path.stat().st_size

    def beside(self, path: Path, name: str) -> SourceFile:
        """Another file, which a reader found by way of this one."""
        return SourceFile(str(path), printable(name), ledger=self.ledger)

    def peeked(self) -> SourceFile:
        """The same file for a look that is no reading: it does not show in the ledger."""
        return msgspec.structs.replace(self, ledger=None)

    @classmethod
    def looked_at(cls, place: str, name: str) -> SourceFile:
        """A file with its head and its size; raises `InputError` if it cannot be read."""
        try:
            # At once, and with room for no more than there is: among thousands of small files a
            # stream for each would take longer than what is in them.
            with io.FileIO(place) as file:
                size_bytes = os.fstat(file.fileno()).st_size
                room = min(size_bytes, HEAD_BYTES) or HEAD_BYTES
                head = file.read(room).removeprefix(BOM_UTF8)
                while len(head) < room and (more := file.read(room - len(head))):
                    head += more
        except OSError as fault:
            raise unreadable(name, fault) from fault
        if _suffix(place) in _COMPRESSED:
            head = cls(place, name).read_bytes(HEAD_BYTES)
        return cls(place, name, head, known_size_bytes=size_bytes)

    def open(self, buffer_bytes: int = _BUFFER_BYTES) -> BinaryIO:
        """A decompressed byte stream behind its byte order mark, if it has one.

        Raises `InputError` if the file cannot be opened, or its beginning cannot be read.
        """
        if self.kept_head is not None and len(self.kept_head) < HEAD_BYTES:
            self.note_read(1.0)
            return io.BytesIO(self.kept_head)
        try:
            file = io.FileIO(self.place)
        except OSError as fault:
            raise unreadable(self.name, fault) from fault
        raw: Any = file if self.ledger is None else CountedFile(file, self.place, self.ledger)
        match _suffix(self.place):
            case ".gz":
                raw = _GzipStream(raw)
            case ".zst":
                raw = ZstdStream(raw)
        stream = io.BufferedReader(raw, buffer_bytes)
        try:
            if stream.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
                stream.read(len(BOM_UTF8))
        except STREAM_FAULTS as fault:
            stream.close()
            raise unreadable(self.name, fault) from fault
        return stream

    def note_read(self, share: float) -> None:
        """Report a share of the file as read; for files that are not read from front to end."""
        if self.ledger is not None:
            self.ledger.reached(self.place, round(share * self.size_bytes))

    def read_bytes(self, limit: int = -1) -> bytes:
        """The decompressed content, or its first `limit` bytes."""
        try:
            with self.open(limit if limit > 0 else _BUFFER_BYTES) as stream:
                return stream.read(limit)
        except STREAM_FAULTS as fault:
            raise unreadable(self.name, fault) from fault

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Non-empty lines with their 1-based numbers."""
        try:
            with self.open() as stream:
                for number, line in enumerate(stream, 1):
                    if not line.isspace():
                        yield number, line
        except STREAM_FAULTS as fault:
            raise unreadable(self.name, fault) from fault

    def line_blocks(self) -> Iterator[bytes]:
        """The same lines, empty ones too, in blocks of whole lines."""
        try:
            with self.open() as stream:
                while block := stream.read(LINES_BYTES) + stream.readline():
                    yield block
        except STREAM_FAULTS as fault:
            raise unreadable(self.name, fault) from fault

    def json_lines(self) -> Iterator[tuple[int, Any]]:
        """Decoded JSON of every line; a line that is no JSON (a truncated one, say) is an error."""
        decode = msgspec.json.Decoder().decode
        for number, line in self.lines():
            try:
                value = decode(line)
            except MALFORMED:
                value = self._decoded_again(line, number)
            yield number, value

    def json(self) -> Any:  # noqa: ANN401 - whatever the file holds
        """The whole file as one JSON value."""
        content = self.read_bytes()
        try:
            return msgspec.json.decode(content)
        except MALFORMED:
            return self._decoded_again(content, None)

    def _decoded_again(self, content: bytes, line: int | None) -> Any:  # noqa: ANN401 - as above
        """What the slower decoder makes of it.

        It takes half surrogate pairs, which cut-off tool results have, and knows where a fault is.
        """
        try:
            return json.loads(content, parse_constant=_refuse_constant)
        except json.JSONDecodeError as fault:
            rule = f"not valid JSON: {fault.msg} (column {fault.colno})"
            row = fault.lineno if line is None else line
            raise InputError(rule, path=self.name, row=row) from fault
        except (ValueError, RecursionError) as fault:
            raise InputError(f"not valid JSON: {fault}", path=self.name, row=line) from fault


def _suffix(place: str) -> str:
    return os.path.splitext(place)[1].lower()  # noqa: PTH122 - a Path of each file takes longer


class _GzipStream(gzip.GzipFile):
    """A gzip file that closes what it reads from."""

    def __init__(self, raw: Any) -> None:  # noqa: ANN401 - any binary stream
        super().__init__(fileobj=raw, mode="rb")
        self._beneath = raw

    def close(self) -> None:
        """Close both."""
        super().close()
        self._beneath.close()


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def unreadable(name: str, fault: BaseException) -> InputError:
    """The error for a file that cannot be opened, read or decompressed."""
    said = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
    return InputError(f"cannot be read: {said}", path=name)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the user may set for a reader.

    `columns` maps our column names to the file's (``--map session=trace_id``); `count_tokens`
    counts text that the log gives no count for, and `tokenizer` names it (`load_tokenizer` gives
    both). `strict` makes every repair an `InputError`: a recount, a count inferred otherwise than
    by a tokenizer, a dropped row, a value filled in, a context that had to be reset, a file that
    cannot be read among others. `watcher` is told how far reading is. `left_out` holds resolved
    paths of files that were found to be broken: a reader that looks beside its files for more does
    not open them. `scratch` is the folder for what does not fit into memory meanwhile; the system's
    for temporary files if None.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    count_tokens: Callable[[str], int] = estimate_tokens
    tokenizer: str = CHARACTERS_PER_TOKEN_NAME
    strict: bool = False
    watcher: ReadWatcher = field(default_factory=ReadWatcher)
    left_out: frozenset[Path] = frozenset()
    scratch: Path | None = None


class Reader(Protocol):
    """One format. Modules in this package hold one reader each and name it in `REGISTRY`."""

    @property
    def name(self) -> str:
        """What ``--format`` calls it."""
        ...

    @property
    def description(self) -> str:
        """What is taken from where, and what is recounted, inferred or left out."""
        ...

    @property
    def joins_files(self) -> bool:
        """Whether files must be read together, since a session may be spread over several."""
        ...

    def recognises(self, file: SourceFile) -> bool:
        """Whether the file looks like this format, by content (`file.head`), not by name alone."""
        ...

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push what all files hold.

        They are in order of name, and come together if the reader `joins_files`, so that those of
        one session (a lead and its sub-agents) can be joined; else one at a time.

        Files with nothing in them are skipped through `builder.skip`; a broken value raises
        `InputError` with the file's name and row.
        """
        ...

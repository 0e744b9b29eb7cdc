"""Finds which reader a file belongs to, and reads files, folders and saved traces into one trace.

A format is recognised by content. Folders are searched with all that is below them; a file in one
that no reader knows, or that is broken, is skipped and counted with the reason, whereas one that
the user named is an error. Files with nothing in them are always skipped and counted; an input is
an error only if no request remains. Under `ReadOptions.strict` whatever is broken or had to be
repaired is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from lachesis.errors import InputError, printable
from lachesis.traces.batches import Part, TraceBatches
from lachesis.traces.builder import TraceBuilder, nothing_remains
from lachesis.traces.read_watcher import ReadLedger
from lachesis.traces.readers.atif import AtifReader
from lachesis.traces.readers.azure_llm import READER as AZURE_LLM
from lachesis.traces.readers.bfcl import READER as BFCL
from lachesis.traces.readers.burstgpt import READER as BURSTGPT
from lachesis.traces.readers.claude_code import ClaudeCodeReader
from lachesis.traces.readers.codex import READER as CODEX
from lachesis.traces.readers.frontier import READER as FRONTIER
from lachesis.traces.readers.gemini_cli import READER as GEMINI_CLI
from lachesis.traces.readers.lmcache import READER as LMCACHE
from lachesis.traces.readers.magentic_one import READER as MAGENTIC_ONE
from lachesis.traces.readers.mooncake import READER as MOONCAKE
from lachesis.traces.readers.mooncake_agentic import READER as MOONCAKE_AGENTIC
from lachesis.traces.readers.openhands_completions import READER as OPENHANDS_COMPLETIONS
from lachesis.traces.readers.openhands_events import READER as OPENHANDS_EVENTS
from lachesis.traces.readers.openhands_sdk import READER as OPENHANDS_SDK
from lachesis.traces.readers.otel_genai import READER as OTEL_GENAI
from lachesis.traces.readers.pi import READER as PI
from lachesis.traces.readers.protocol import Reader, ReadOptions, SourceFile
from lachesis.traces.readers.swe_agent import READER as SWE_AGENT
from lachesis.traces.readers.table import READER as TABLE
from lachesis.traces.readers.tau import READER as TAU
from lachesis.traces.readers.tolerance import read_files
from lachesis.traces.readers.weka import READER as WEKA
from lachesis.traces.record_groups import NameNumbers
from lachesis.traces.token_count import CHARACTERS_PER_TOKEN_NAME
from lachesis.traces.trace import Trace
from lachesis.traces.trace_files import MANIFEST
from lachesis.traces.validate import validate

#: All readers, in the order in which they are asked; the table, which needs least, comes last.
READERS: tuple[Reader, ...] = (
    ClaudeCodeReader(),
    AtifReader(),
    TAU,
    CODEX,
    GEMINI_CLI,
    PI,
    OPENHANDS_EVENTS,
    OPENHANDS_SDK,
    OPENHANDS_COMPLETIONS,
    SWE_AGENT,
    MAGENTIC_ONE,
    OTEL_GENAI,
    WEKA,
    LMCACHE,
    BFCL,
    MOONCAKE_AGENTIC,
    MOONCAKE,
    AZURE_LLM,
    BURSTGPT,
    FRONTIER,
    TABLE,
)
#: How much of the files' heads is kept in memory until the files are read.
_HEADS_KEPT_BYTES = 16 << 20
_ENCODINGS: tuple[tuple[tuple[bytes, ...], str], ...] = (
    ((b"\xff\xfe", b"\xfe\xff"), "is text in UTF-16; convert it to UTF-8"),
    ((b"\x1f\x8b",), "is compressed by gzip; its name must end in .gz"),
    ((b"\x28\xb5\x2f\xfd",), "is compressed by Zstandard; its name must end in .zst"),
)
_TABLE_ENDINGS = frozenset({".csv", ".tsv", ".parquet"})


def reader_named(name: str) -> Reader:
    """The reader that ``--format`` calls `name`; raises `InputError` naming all."""
    for reader in READERS:
        if reader.name == name:
            return reader
    raise InputError(
        f"no such format; there are {', '.join(reader.name for reader in READERS)}",
        field="format",
        value=name,
    )


def read(
    paths: Sequence[str | Path],
    *,
    format: str | None = None,
    options: ReadOptions | None = None,
) -> Trace:
    """Read files, folders and ``.trace`` directories into one validated trace.

    Args:
        paths: any number of files (``.gz`` and ``.zst`` too) and folders.
        format: name of a reader, where recognition is to be overridden.
        options: column names and token counter for the readers.

    Raises `InputError` for what cannot be read, and where no request remains.
    """
    return read_batches(paths, format=format, options=options).whole()


def read_batches(
    paths: Sequence[str | Path],
    *,
    format: str | None = None,
    options: ReadOptions | None = None,
) -> TraceBatches:
    """What `read` gives, in batches of sessions, which need not fit into memory."""
    options = ReadOptions() if options is None else options
    forced = None if format is None else reader_named(format)
    source = ", ".join(printable(str(path)) for path in paths)
    builder = TraceBuilder(source=source, tokenizer=options.tokenizer, scratch=options.scratch)
    found: set[str] = set()  # files that were not named by the user
    saved: list[Trace] = []
    by_reader: dict[str, list[SourceFile]] = {}
    seen = NameNumbers()
    ledger = ReadLedger(options.watcher)
    heads_bytes = 0
    for place, resolved, named, is_trace in _search(paths):
        known = len(seen)
        if seen.of(resolved) < known:
            builder.skip(printable(place), "was given before")
            continue
        options.watcher.files_found(len(seen))
        if is_trace:
            trace = Trace.load(place)
            validate(trace, place)
            saved.append(trace)
            continue
        file = _with_head(place, named=named or options.strict, builder=builder)
        if file is None:
            continue
        if not (named or options.strict):
            found.add(file.name)
        reader = _reader_of(file, forced, named=named, options=options)
        if reader is None:
            builder.skip(file.name, _encoding(file) or _unknown(forced))
        else:
            heads_bytes += len(file.head)
            head = file.head if heads_bytes <= _HEADS_KEPT_BYTES else None
            file = SourceFile(place, file.name, head, ledger, resolved, file.size_bytes)
            ledger.expect(place, file.size_bytes)
            by_reader.setdefault(reader.name, []).append(file)
    builder.may_skip(found)
    for reader in READERS:
        if files := by_reader.get(reader.name):
            read_files(reader, files, builder, options, found=found)
    options.watcher.all_read()
    parts: list[Part] = [*saved]
    if builder.holds_requests:
        parts.append(builder.collect())
    elif saved:
        saved[0].quality.merge(builder.quality)
    else:
        raise InputError(nothing_remains(builder.quality), path=source)
    batches = TraceBatches(parts, source)
    if options.strict:
        _refuse_repairs(batches, options)
    return batches


def _refuse_repairs(batches: TraceBatches, options: ReadOptions) -> None:
    tokenised = options.tokenizer != CHARACTERS_PER_TOKEN_NAME
    repair = batches.quality.first_repair(tokenised=tokenised)
    if repair is not None:
        raise InputError(f"strict reading allows no repair: {repair}", path=batches.source)


class _Found(NamedTuple):
    """A file or a saved trace, where its path leads to, and whether the user named it."""

    place: str
    resolved: str
    named: bool
    is_trace: bool


def _search(paths: Sequence[str | Path]) -> Iterator[_Found]:
    """Files and saved traces in order of path."""
    for path in paths:
        place = Path(path)
        try:
            place.lstat()
        except OSError as fault:
            if isinstance(fault, FileNotFoundError):
                raise InputError("no such file or folder", path=place) from fault
            raise InputError(f"cannot be read: {fault.strerror}", path=place) from fault
        except ValueError as fault:  # a NUL
            raise InputError("is no name of a file or folder", path=place) from fault
        if not (place.is_dir() or place.is_file()):
            rule = "must be a file or a folder; a pipe or device cannot be read twice"
            raise InputError(rule if place.exists() else "no such file or folder", path=place)
        is_folder = place.is_dir()
        if is_folder and not (place / MANIFEST).is_file():
            if place.suffix == ".trace":
                raise InputError(f"holds no {MANIFEST}", path=place)
            yield from _below(place, os.path.realpath(place))
        else:
            yield _Found(str(place), os.path.realpath(place), named=True, is_trace=is_folder)


def _below(folder: Path, resolved: str) -> Iterator[_Found]:
    # The folder's listing tells files from folders, and what is no link needs no resolving: of
    # folders with thousands of files, system calls for each would be a large part of the reading.
    try:
        with os.scandir(resolved) as listing:
            entries = sorted(listing, key=attrgetter("name"))
    except OSError as fault:
        raise InputError(f"cannot be read: {fault.strerror}", path=folder) from fault
    beginning = os.fspath(folder / "x")[:-1]  # joining each name as a path takes longer
    for entry in entries:
        place = beginning + entry.name
        is_link = entry.is_symlink()
        kind = Path(place) if is_link else entry
        try:
            is_folder = kind.is_dir()
            is_trace = is_folder and Path(place, MANIFEST).is_file()
            is_file = kind.is_file()
        except OSError as fault:
            raise InputError(f"cannot be read: {fault.strerror}", path=place) from fault
        if is_trace or is_file:
            real = os.path.realpath(place) if is_link else entry.path
            # One string for both where they are the same: there may be millions.
            real = place if real == place else real
            yield _Found(place, real, named=False, is_trace=is_trace)
        elif is_folder and not is_link:  # a link may lead back up
            yield from _below(Path(place), entry.path)


def _with_head(place: str, *, named: bool, builder: TraceBuilder) -> SourceFile | None:
    """The file with its head, or None if it is empty, or unreadable and not named by the user."""
    name = printable(place)
    try:
        file = SourceFile.looked_at(place, name)
    except InputError as fault:
        if named:
            raise
        builder.skip(name, fault.rule)
        return None
    if not file.head or file.head.isspace():
        builder.skip(name, "is empty")
        return None
    return file


def _reader_of(
    file: SourceFile, forced: Reader | None, *, named: bool, options: ReadOptions
) -> Reader | None:
    if forced is not None:
        return forced if named or _recognises(forced, file, options) else None
    for reader in READERS:
        if _recognises(reader, file, options):
            return reader
    if not named:
        return None
    if file.ending in _TABLE_ENDINGS:
        return TABLE  # which says what columns are missing
    if (told := _encoding(file)) is not None:
        raise InputError(told, path=file.name)
    raise InputError(
        f"no reader recognises it (formats: {', '.join(reader.name for reader in READERS)}; "
        "--format overrides)",
        path=file.name,
    )


def _recognises(reader: Reader, file: SourceFile, options: ReadOptions) -> bool:
    if reader is TABLE:
        return TABLE.recognises_with(file, options.columns)
    return reader.recognises(file)


def _encoding(file: SourceFile) -> str | None:
    """What is wrong with a file of which no reader can read a letter."""
    for marks, rule in _ENCODINGS:
        if file.head.startswith(marks):
            return rule
    return None


def _unknown(forced: Reader | None) -> str:
    return "no reader recognises it" if forced is None else f"is not in format {forced.name}"

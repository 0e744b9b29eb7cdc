"""Reads the traces that a command line names, and shows on a terminal how far reading is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from lachesis.cli.terminal import console
from lachesis.errors import InputError
from lachesis.quantities import parse_pairs
from lachesis.traces import ReadOptions, ReadWatcher, Trace, load_tokenizer
from lachesis.traces.batches import TraceBatches
from lachesis.traces.opening import open_batches


def read_traces(
    names: Sequence[str],
    format: str | None,
    map: Sequence[str],
    *,
    tokenizer: str | None = None,
    strict: bool = False,
    quiet: bool,
) -> Trace:
    """Everything that the arguments name, as one trace; shows how far it is unless `quiet`."""
    return read_batches(names, format, map, tokenizer=tokenizer, strict=strict, quiet=quiet).whole()


def read_batches(
    names: Sequence[str],
    format: str | None,
    map: Sequence[str],
    *,
    tokenizer: str | None = None,
    strict: bool = False,
    quiet: bool,
    scratch: Path | None = None,
) -> TraceBatches:
    """The same in batches, which need not fit into memory; `scratch` as in `ReadOptions`."""
    if not names:
        raise InputError("name at least one file or folder", field="TRACE")
    options = ReadOptions(columns=parse_pairs(list(map), "--map", "OURS=THEIRS"), strict=strict,
                          scratch=scratch)  # fmt: skip
    if tokenizer is not None:
        loaded = load_tokenizer(tokenizer)
        options = replace(options, count_tokens=loaded.count_tokens, tokenizer=loaded.name)
    with reading(quiet=quiet) as watcher:
        return open_batches(*names, format=format, options=replace(options, watcher=watcher))


class _Display(ReadWatcher):
    def __init__(self, progress: Progress, line: TaskID) -> None:
        self._progress = progress
        self._line = line

    def files_found(self, files: int) -> None:
        if files > 1:
            self._progress.update(self._line, description=f"looking at {files:,} files")

    def bytes_read(self, file: int, files: int, read_bytes: int, total_bytes: int) -> None:
        self._progress.update(
            self._line,
            description=f"reading file {file:,} of {files:,}",
            completed=read_bytes,
            total=total_bytes,
        )

    def all_read(self) -> None:
        self._progress.update(self._line, description="putting sessions together")


@contextmanager
def reading(*, quiet: bool) -> Iterator[ReadWatcher]:
    """A watcher that draws a line, removed at the end; one that does nothing where none sees it."""
    screen = console(stderr=True)
    if quiet or not screen.is_terminal:
        yield ReadWatcher()
        return
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=16),
        DownloadColumn(), TimeRemainingColumn(compact=True),
    )  # fmt: skip
    with Progress(*columns, console=screen, transient=True) as progress:
        yield _Display(progress, progress.add_task("reading traces", total=None))

"""Reads files among which some may be broken: these are skipped and counted, with the reason.

Only files that were found in a folder are; one that the user named is an error, and so is an input
of which nothing remains. What came from a broken file before the fault is taken back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from lachesis.errors import InputError
from lachesis.traces.builder import TraceBuilder
from lachesis.traces.readers.protocol import Reader, ReadOptions, SourceFile


def read_files(
    reader: Reader,
    files: Sequence[SourceFile],
    builder: TraceBuilder,
    options: ReadOptions,
    *,
    found: Collection[str],
) -> None:
    """Let `reader` push what all files hold; those in `found` (by name) may be broken.

    Every file is read once where a session is in one file. Where sessions may be spread over
    files, they are read together; if one is broken, every file is tried alone, so that all that are
    broken are known, and the others are read again.
    """
    if not reader.joins_files:
        for file in files:
            _Together(reader, [file], builder, options, found).read()
    else:
        _Together(reader, files, builder, options, found).read()


class _Together:
    """Files that are read together; `remaining` are those that are not known to be broken."""

    def __init__(
        self,
        reader: Reader,
        files: Sequence[SourceFile],
        builder: TraceBuilder,
        options: ReadOptions,
        found: Collection[str],
    ) -> None:
        self.reader = reader
        self.remaining = {file.name: file for file in files}
        self.builder = builder
        self.options = options
        self.found = found

    def read(self) -> None:
        """Read until no file is broken; raises `InputError` for one that the user named."""
        while self.remaining:
            mark = self.builder.mark()
            try:
                self.reader.read(list(self.remaining.values()), self.builder, self.options)
            except InputError as fault:
                if not self._may_be_left_out(fault):
                    raise
                self.builder.take_back(mark)
                self._leave_out([fault, *self._other_faults(fault)])
            else:
                return

    def _may_be_left_out(self, fault: InputError) -> bool:
        return fault.path in self.remaining and fault.path in self.found

    def _leave_out(self, faults: Sequence[InputError]) -> None:
        broken = {str(fault.path): fault for fault in faults}
        gone = [Path(self.remaining.pop(name).resolved) for name in broken]
        for name, fault in broken.items():
            self.builder.skip(name, _reason(fault))
        self.options = replace(self.options, left_out=self.options.left_out.union(gone))

    def _other_faults(self, first: InputError) -> Iterator[InputError]:
        """What is wrong with single files besides; read together, others may be found."""
        for file in self.remaining.values():
            if file.name == first.path:
                continue
            alone = TraceBuilder(source=self.builder.source, tokenizer=self.builder.tokenizer)
            alone.may_skip(self.found)
            try:
                self.reader.read([file], alone, self.options)
            except InputError as fault:
                if self._may_be_left_out(fault):
                    yield fault


def _reason(fault: InputError) -> str:
    """The error without the file's name."""
    return str(InputError(fault.rule, row=fault.row, field=fault.field, value=fault.value))

"""Reads files among which some may be broken: these are skipped and counted, with the reason.

Only files that were found in a folder are; one that the user named is an error, and so is an input
of which nothing remains.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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

    What came from the reader before the fault is taken back, and the other files are read again:
    a file's sessions may hang together with another's.
    """
    remaining = list(files)
    left_out: set[Path] = set()
    while remaining:
        mark = builder.mark()
        try:
            reader.read(remaining, builder, replace(options, left_out=frozenset(left_out)))
        except InputError as fault:
            broken = next((file for file in remaining if file.name == fault.path), None)
            if broken is None or broken.name not in found:
                raise
            builder.take_back(mark)
            builder.skip(broken.name, _reason(fault))
            remaining.remove(broken)
            left_out.add(Path(broken.resolved))
        else:
            return


def _reason(fault: InputError) -> str:
    """The error without the file's name."""
    return str(InputError(fault.rule, row=fault.row, field=fault.field, value=fault.value))

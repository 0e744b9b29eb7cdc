"""Temporary files without a name, for what does not fit into memory while a trace is read."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from lachesis.errors import InputError


def scratch_file(owner: object, folder: Path | None = None) -> IO[bytes]:
    """A file that is closed with `owner`, and gone whatever ends the process.

    `folder`: where it is made; the system's folder for temporary files if None. Raises `InputError`
    where it cannot be made.
    """
    with room_for_scratch(folder):
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed with its owner
    weakref.finalize(owner, file.close)
    return file


@contextmanager
def room_for_scratch(folder: Path | None = None) -> Iterator[None]:
    """Turns a full disk into an `InputError` that names the folder."""
    try:
        yield
    except OSError as fault:
        place = folder or tempfile.gettempdir()
        rule = f"cannot hold what is read until it is written: {fault.strerror}"
        raise InputError(rule, path=place) from fault

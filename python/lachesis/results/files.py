"""Output files: checked before long work, written beside their place and renamed when whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lachesis.errors import InputError


def check_output(path: str | Path) -> None:
    """Refuse a place that cannot be written, before the work whose result goes there.

    Raises:
        InputError: the path is a folder, or its folder is absent or closed to writing.
    """
    place = Path(path)
    folder = place.parent
    if place.is_dir():
        raise InputError("cannot be written: is a folder", path=path)
    if not folder.exists():
        raise InputError(f"cannot be written: no folder {folder}", path=path)
    if not folder.is_dir():
        raise InputError(f"cannot be written: {folder} is no folder", path=path)
    if not os.access(place if place.exists() else folder, os.W_OK):
        raise InputError("cannot be written: permission denied", path=path)


@contextmanager
def replaced(path: str | Path) -> Iterator[Path]:
    """A file to write in place of `path`; it takes that name when the block ends well.

    A reader never sees half of it, and an error or an interrupt leaves what was there. A device or
    a pipe is written as it is.

    Raises:
        InputError: the place cannot be written.
    """
    check_output(path)
    place = Path(path).resolve()
    if place.exists() and not place.is_file():
        yield place
        return
    # The ending stays, because writers choose their format by it.
    scratch = place.with_name(f".{place.stem}.{os.getpid()}{place.suffix}")
    try:
        yield scratch
        scratch.replace(place)
    except OSError as fault:
        raise InputError(f"cannot be written: {fault.strerror}", path=path) from fault
    finally:
        scratch.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file whole, in UTF-8.

    Raises:
        InputError: the place cannot be written.
    """
    with replaced(path) as scratch:
        scratch.write_text(text, encoding="utf-8")

"""Folders that results go into: checked before long work, made when there is something to put."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lachesis.errors import InputError


def check_folder(path: str | Path) -> None:
    """Refuse a place that cannot be a folder of results, before the work.

    Raises:
        InputError: it is a file, its own folder is absent, or either is closed to writing.
    """
    place = Path(path)
    try:
        place.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass  # said below
    except OSError as fault:
        raise InputError(f"cannot be written: {fault.strerror}", path=path) from fault
    except ValueError as fault:  # a NUL
        raise InputError("cannot be written: is no name of a folder", path=path) from fault
    if place.exists() and not place.is_dir():
        raise InputError("cannot be written: is no folder", path=path)
    if not place.exists() and not place.parent.is_dir():
        raise InputError(f"cannot be written: no folder {place.parent}", path=path)
    if not os.access(place if place.exists() else place.parent, os.W_OK | os.X_OK):
        raise InputError("cannot be written: permission denied", path=path)


def make_folder(path: str | Path) -> Path:
    """The folder, made if it is not there; its parent must be.

    Raises:
        InputError: it cannot be made.
    """
    check_folder(path)
    place = Path(path)
    try:
        place.mkdir(exist_ok=True)
    except OSError as fault:
        raise InputError(f"cannot be written: {fault.strerror}", path=path) from fault
    return place


@contextmanager
def replaced_folder(path: str | Path) -> Iterator[Path]:
    """A folder to fill in place of `path`; what is in it takes its place when the block ends well.

    A reader never sees half of it, and an error or an interrupt leaves what was there. Other files
    of a folder that was there stay.

    Raises:
        InputError: the place cannot be written.
    """
    check_folder(path)
    place = Path(path).resolve()
    scratch = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        yield scratch
        if not place.exists():
            scratch.rename(place)
            return
        for entry in sorted(scratch.iterdir()):
            taken = place / entry.name
            if taken.is_dir():
                shutil.rmtree(taken)
            entry.replace(taken)
    except OSError as fault:
        raise InputError(f"cannot be written: {fault.strerror}", path=path) from fault
    finally:
        shutil.rmtree(scratch, ignore_errors=True)

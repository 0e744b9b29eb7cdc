"""Folders that results go into: checked before long work, made when there is something to put."""

from __future__ import annotations

import os
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

"""One sweep at a time in one directory."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lachesis.errors import InputError
from lachesis.results.folders import make_folder

_NAME = ".lock"


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the directory; the kernel lets go of it however this process ends.

    Raises:
        InputError: another process holds it, or it cannot be written.
    """
    try:
        handle = os.open(directory / _NAME, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as fault:
        raise InputError(f"cannot be written: {fault.strerror}", path=directory) from fault
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            rule = "another sweep is running in this directory: wait for it, or name another"
            raise InputError(rule, path=directory) from None
        if not _is_file(handle, directory / _NAME):  # removed with its folder while we waited
            raise InputError("was removed by another sweep that ended: try again", path=directory)
        yield
    finally:
        os.close(handle)


@contextmanager
def held(directory: str | Path) -> Iterator[Path]:
    """The directory, made if it is not there, and held.

    One that was made for this, and into which nothing was put, is removed again.

    Raises:
        InputError: it cannot be made or written, or another process holds it.
    """
    is_new = not Path(directory).exists()
    place = make_folder(directory)
    with locked(place):
        try:
            yield place
        finally:
            if is_new and [entry.name for entry in place.iterdir()] == [_NAME]:
                (place / _NAME).unlink()
                place.rmdir()


def _is_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False

"""One sweep at a time in one directory."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lachesis.errors import InputError

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
        yield
    finally:
        os.close(handle)

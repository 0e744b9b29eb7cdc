"""Output files: checked before long work, written beside their place and renamed when whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
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
    try:
        place.lstat()
    except FileNotFoundError:
        pass
    except NotADirectoryError:
        pass  # said below, with the folder
    except OSError as fault:
        raise InputError(f"cannot be written: {fault.strerror}", path=path) from fault
    if place.is_dir():
        raise InputError("cannot be written: is a folder", path=path)
    if not folder.exists():
        raise InputError(f"cannot be written: no folder {folder}", path=path)
    if not folder.is_dir():
        raise InputError(f"cannot be written: {folder} is no folder", path=path)
    if not os.access(place if place.exists() else folder, os.W_OK):
        raise InputError("cannot be written: permission denied", path=path)


def check_apart(inputs: Iterable[str], outputs: Mapping[str, str | None]) -> None:
    """Refuse outputs that would overwrite an input, a part of a saved trace, or one another.

    Args:
        inputs: paths that are read; names that are no paths do no harm.
        outputs: what an option writes, by the option; those not given are None.

    Raises:
        InputError: two of them are the same file.

    Example:
        >>> check_apart(["log.jsonl"], {"--json": "log.jsonl"})
        Traceback (most recent call last):
        ...
        lachesis.errors.InputError: --json = log.jsonl, would overwrite what is read
    """
    read = {Path(name).resolve() for name in inputs}
    traces = {place for place in read if place.is_dir() and place.suffix == ".trace"}
    written: dict[Path, str] = {}
    for option, name in outputs.items():
        if name is None or name == "-":
            continue
        place = Path(name).resolve()
        if place.exists() and not (place.is_file() or place.is_dir()):
            continue  # a device or a pipe
        if place in read or traces.intersection(place.parents):
            raise InputError("would overwrite what is read", field=option, value=name)
        if other := written.get(place):
            raise InputError(f"would overwrite what {other} writes", field=option, value=name)
        written[place] = option


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

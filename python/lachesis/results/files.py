"""Output files: checked before long work, written beside their place and renamed when whole."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lachesis.errors import InputError

_NAME_BYTES_MAX = 255


def check_output(path: str | Path) -> None:
    """Refuse a place that cannot be written, before the work whose result goes there.

    Raises:
        InputError: the path is a folder, or its folder is absent or closed to writing.
    """
    place = _named(path)
    folder = place.parent
    try:
        place.stat()
    except FileNotFoundError:
        pass
    except NotADirectoryError:
        pass  # said below, with the folder
    except OSError as fault:
        raise InputError(f"cannot be written: {fault.strerror}", path=path) from fault
    except ValueError as fault:  # a NUL
        raise InputError("cannot be written: is no name of a file", path=path) from fault
    if place.is_dir():
        raise InputError("cannot be written: is a folder", path=path)
    if not folder.exists():
        raise InputError(f"cannot be written: no folder {folder}", path=path)
    if not folder.is_dir():
        raise InputError(f"cannot be written: {folder} is no folder", path=path)
    if not os.access(place if place.exists() else folder, os.W_OK):
        raise InputError("cannot be written: permission denied", path=path)


def _named(path: str | Path) -> Path:
    """The file that a path names: where it is a link, what that points at."""
    place = Path(path)
    # Not `resolve`, which raises on a circle of links, nor `is_symlink`, on a name too long.
    return Path(os.path.realpath(place)) if os.path.islink(place) else place  # noqa: PTH114


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
    read = {Path(os.path.realpath(name)) for name in inputs}
    traces = {place for place in read if place.is_dir() and place.suffix == ".trace"}
    written: dict[Path, str] = {}
    for option, name in outputs.items():
        if name is None or name == "-":
            continue
        place = Path(os.path.realpath(name))
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
    place = Path(os.path.realpath(path))
    as_it_is = place.exists() and not place.is_file()
    scratch = place if as_it_is else place.with_name(_scratch_name(place))
    try:
        yield scratch
        if not as_it_is:
            scratch.replace(place)
    except OSError as fault:
        raise InputError(f"cannot be written: {fault.strerror}", path=path) from fault
    finally:
        if not as_it_is:
            scratch.unlink(missing_ok=True)


def _scratch_name(place: Path) -> str:
    """A name of this thread's alone, no longer than a file system takes.

    The ending stays, because writers choose their format by it.
    """
    ending = f".{os.getpid()}-{threading.get_ident()}{place.suffix}"
    stem = os.fsencode(place.stem)[: _NAME_BYTES_MAX - len(os.fsencode(ending)) - 1]
    return f".{os.fsdecode(stem)}{ending}"


def write_text(path: str | Path, text: str) -> None:
    """Write a text file whole, in UTF-8.

    Raises:
        InputError: the place cannot be written.
    """
    with replaced(path) as scratch:
        scratch.write_text(text, encoding="utf-8")

"""What callers hand over, checked and brought into the form that the rooms below take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from lachesis.errors import InputError
from lachesis.sweeps import Value, option_value


def plain(values: object) -> object:
    """Sequences of any kind, arrays too, as lists; paths as texts.

    Example:
        >>> plain((1, np.float64(2.5), Path("a.toml")))
        [1, 2.5, 'a.toml']
    """
    if isinstance(values, np.ndarray | np.generic):
        return values.tolist()
    if isinstance(values, list | tuple | range):
        return [plain(value) for value in values]
    return str(values) if isinstance(values, Path) else values


def option(key: str, value: object) -> Value:
    """The value of an option of ``lachesis run``, or of a preset value.

    Raises:
        InputError: it has the wrong type, or there is no such key.
    """
    return option_value(key, plain(value))


def option_or_none(key: str, value: object) -> Value | None:
    """The same where None leaves the choice to the rooms below."""
    return None if value is None else option(key, value)


def table(key: str, value: object) -> Mapping[str, object]:
    """Values by key; None is none.

    Raises:
        InputError: it is no mapping.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError("must be a dict of values by key", field=key, value=value)
    return value


def place(key: str, value: object) -> str | Path:
    """A path.

    Raises:
        InputError: it is none.
    """
    if not isinstance(value, str | Path):
        raise InputError("must be a path", field=key, value=repr(value))
    return value


def threads(key: str, value: object) -> int:
    """How many threads to use.

    Raises:
        InputError: it is no whole number from 1 up.
    """
    number = plain(value)
    if isinstance(number, bool) or not isinstance(number, int):
        raise InputError("must be a whole number", field=key, value=repr(value))
    if number < 1:
        raise InputError("must be at least 1", field=key, value=number)
    return number


def truth(key: str, value: object) -> bool:
    """True or False; a text such as ``"no"`` would else count as true.

    Raises:
        InputError: it is neither.
    """
    found = plain(value)
    if not isinstance(found, bool):
        raise InputError("must be True or False", field=key, value=repr(value))
    return found


def names(key: str, value: object) -> list[str | Path]:
    """A path or a name, or several.

    Raises:
        InputError: something else is among them, or there is none.
    """
    several = [value] if isinstance(value, str | Path) else value
    if not isinstance(several, Iterable) or isinstance(several, bytes | Mapping):
        raise InputError("must be a path or a name, or several", field=key, value=repr(value))
    found = []
    for each in several:
        if not isinstance(each, str | Path):
            raise InputError("must be a path or a name", field=key, value=repr(each))
        found.append(each)
    if not found:
        raise InputError("name at least one", field=key)
    return found

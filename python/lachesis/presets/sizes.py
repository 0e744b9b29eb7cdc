"""Sizes in bytes: which gigabyte is meant, and how users may write one."""

from __future__ import annotations

import re
from fractions import Fraction

from lachesis.errors import InputError

KB = 10**3
MB = 10**6
GB = 10**9
TB = 10**12
KIB = 2**10
MIB = 2**20
GIB = 2**30
TIB = 2**40

BYTES_OF_UNIT = {
    "B": 1,
    "kB": KB,
    "MB": MB,
    "GB": GB,
    "TB": TB,
    "KiB": KIB,
    "MiB": MIB,
    "GiB": GIB,
    "TiB": TIB,
}
_SIZE = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-z]+)")


def parse_bytes(text: str, *, field: str | None = None) -> int:
    """Read a size such as ``"36 GB"`` as whole bytes.

    Units are spelled exactly: B, kB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB (powers
    of 1024). "G", "gb" and the like are refused, because they do not say which is meant.

    Args:
        text: number and unit, with or without a blank between them.
        field: the option or key that the text came from, for the error.

    Raises:
        InputError: the text is not a number with one of the units, or not a whole number of bytes.

    Example:
        >>> parse_bytes("36 GB"), parse_bytes("4MiB"), parse_bytes("1.5 KiB")
        (36000000000, 4194304, 1536)
    """
    units = ", ".join(BYTES_OF_UNIT)
    match = _SIZE.fullmatch(text.strip())
    if match is None or match.group(2) not in BYTES_OF_UNIT:
        raise InputError(f"must be a number and one of {units}", field=field, value=text)
    size = Fraction(match.group(1).replace("_", "")) * BYTES_OF_UNIT[match.group(2)]
    if size.denominator != 1:
        raise InputError("must be a whole number of bytes", field=field, value=text)
    return size.numerator

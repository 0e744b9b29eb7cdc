"""Times and rates as people write them on the command line."""

from __future__ import annotations

import math
import re

from lachesis.errors import InputError

_UNITS_S = {
    "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0,
}  # fmt: skip
_QUANTITY = re.compile(r"\s*([0-9.eE+_-]+?)\s*([a-zµ]*)\s*")
_SECONDS_MAX = 9.0e6


def parse_seconds(text: str, option: str, *, bare: bool = False, zero: bool = False) -> float:
    """Read a time such as ``60ms``, ``2s``, ``1.5 h`` or ``30d``, in seconds.

    Args:
        text: as written.
        option: for the message.
        bare: whether a number without unit is taken for seconds.
        zero: whether 0 is allowed.

    Raises:
        InputError: no number or unit, below the least allowed, or beyond the engine's clock.

    Example:
        >>> parse_seconds("60ms", "--tpot"), parse_seconds("2 h", "--horizon")
        (0.06, 7200.0)
    """
    low = "of 0 or more" if zero else "above 0"
    rule = f"must be a time {low} and at most 9e6 s with a unit: us, ms, s, min, h or d"
    if bare:
        rule += " (seconds without one)"
    match = _QUANTITY.fullmatch(text)
    if match is None or not (match.group(2) or bare):
        raise InputError(rule, field=option, value=text)
    unit_s = _UNITS_S.get(match.group(2) or "s")
    try:
        number = float(match.group(1))
    except ValueError:
        number = math.nan
    in_range = unit_s is not None and 0.0 <= number * unit_s <= _SECONDS_MAX
    if unit_s is None or not in_range or (number == 0.0 and not zero):
        raise InputError(rule, field=option, value=text)
    # Products such as 60 * 0.001 carry a last digit that nobody wrote.
    return float(f"{number * unit_s:.15g}")


def parse_share(text: str, option: str) -> float:
    """Read a share such as ``0.02`` or ``2%``.

    Raises:
        InputError: not a number between 0 and 1, ends excluded.

    Example:
        >>> parse_share("2%", "--precision"), parse_share("0.05", "--precision")
        (0.02, 0.05)
    """
    number = text.strip()
    percent = number.endswith("%")
    try:
        share = float(number.removesuffix("%")) / (100.0 if percent else 1.0)
    except ValueError:
        share = math.nan
    if not 0.0 < share < 1.0:
        raise InputError("must be above 0 and below 1, or 100%", field=option, value=text)
    return share


def parse_pairs(texts: list[str], option: str, words: str) -> dict[str, str]:
    """Read ``OURS=THEIRS`` pairs.

    Raises:
        InputError: a text without ``=``, an empty side, or a left side given twice.

    Example:
        >>> parse_pairs(["session=trace_id"], "--map", "OURS=THEIRS")
        {'session': 'trace_id'}
    """
    pairs: dict[str, str] = {}
    for text in texts:
        left, equals, right = (part.strip() for part in text.partition("="))
        if not equals or not left or not right:
            raise InputError(f"must be written {words}", field=option, value=text)
        if left in pairs:
            raise InputError(f"{left} is given twice", field=option, value=text)
        pairs[left] = right
    return pairs

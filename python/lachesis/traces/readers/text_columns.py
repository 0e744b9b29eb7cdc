"""Columns of texts as numbers, counts and times, all rows at once.

Each gives exactly what `RequestRow` gives row by row, or raises for a column with a value of which
only the row-wise reading says whether it is right.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lachesis.traces.schema import TOKENS_MAX

_STAMPS = (pa.timestamp("ns"), pa.timestamp("ns", "UTC"))


class OddValueError(ValueError):
    """A value that is not of the plain form."""


def numbers_of(texts: pa.Array) -> pa.Array:
    """Finite numbers, nulls kept; raises `OddValueError` or `pa.ArrowInvalid` for others."""
    numbers = pc.cast(texts, pa.float64())
    if not pc.all(pc.is_finite(numbers), min_count=0).as_py():
        raise OddValueError
    return numbers


def counts_of(texts: pa.Array) -> NDArray[np.int64]:
    """Whole numbers of tokens without nulls; raises as `numbers_of` does.

    Example:
        >>> counts_of(pa.array(["7", "2.0"])).tolist()
        [7, 2]
    """
    if texts.null_count:
        raise OddValueError
    numbers = numbers_of(texts).to_numpy()
    if ((numbers < 0) | (numbers > TOKENS_MAX)).any():  # before the cast, which warns of huge ones
        raise OddValueError
    counts: NDArray[np.int64] = numbers.astype(np.int64)
    if (counts != numbers).any():
        raise OddValueError
    return counts


def seconds_of(texts: pa.Array) -> pa.Array:
    """Seconds, or dates and times as seconds since the epoch (UTC if unsaid), nulls kept.

    Raises as `numbers_of` does, also where some are one and some the other.

    Example:
        >>> seconds_of(pa.array(["1970-01-01 00:00:02.5", None])).to_pylist()
        [2.5, None]
    """
    try:
        return numbers_of(texts)
    except pa.ArrowInvalid:
        pass  # not seconds, so dates and times
    try:
        stamps = pc.cast(texts, _STAMPS[0])
    except pa.ArrowInvalid:
        stamps = pc.cast(texts, _STAMPS[1])
    nanoseconds = pc.fill_null(stamps.cast(pa.int64()), 0).to_numpy()
    # Python's times count microseconds and drop what is finer.
    seconds = (nanoseconds // 1000) / 1e6
    return pa.array(seconds, pa.float64(), mask=stamps.is_null().to_numpy(zero_copy_only=False))

"""Rows of a table while a file is read: numbers in arrays, words once each.

A row is some 90 bytes here and several times that as an object, and a table may have millions.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator

import numpy as np

from lachesis.traces.readers.table_rows import Row

_MISSING = -1


class RowColumns:
    """Takes rows one by one, and gives them back session by session.

    Example:
        >>> columns = RowColumns()
        >>> for number, session in enumerate("aba", 1):
        ...     columns.append(Row(number, session, 5, 1, None, 0, 1.5, None, None, "m", None))
        >>> [(name, [row.number for row in rows]) for name, rows in columns.sessions()]
        [('a', [1, 3]), ('b', [2])]
    """

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._sessions: dict[str, int] = {}
        self._session = array("i")
        self._counts = {name: array("q") for name in ("number", *_COUNTS)}
        self._timestamp_s = array("d")
        self._words = {name: array("i") for name in _WORDS}

    def __len__(self) -> int:
        return len(self._session)

    @property
    def count(self) -> int:
        """How many sessions there are."""
        return len(self._sessions)

    def append(self, row: Row) -> None:
        """Take a row."""
        self._session.append(self._sessions.setdefault(row.session, len(self._sessions)))
        for name, counts in self._counts.items():
            value = getattr(row, name)
            counts.append(_MISSING if value is None else value)
        self._timestamp_s.append(math.nan if row.timestamp_s is None else row.timestamp_s)
        for name, words in self._words.items():
            word = getattr(row, name)
            words.append(
                _MISSING if word is None else self._codes.setdefault(word, len(self._codes))
            )

    def sessions(self) -> Iterator[tuple[str, list[Row]]]:
        """Each session's rows in the order in which they came; sessions by their first row."""
        names = list(self._sessions)
        spelled = list(self._codes)
        codes = np.frombuffer(self._session, np.int32) if self._session else np.zeros(0, np.int32)
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(names)), "right")
        start = 0
        for name, end in zip(names, ends.tolist(), strict=True):
            yield name, [self._row(name, index, spelled) for index in order[start:end].tolist()]
            start = end

    def _row(self, session: str, index: int, spelled: list[str]) -> Row:
        counts = {name: values[index] for name, values in self._counts.items()}
        words = {
            name: None if values[index] == _MISSING else spelled[values[index]]
            for name, values in self._words.items()
        }
        timestamp_s = self._timestamp_s[index]
        return Row(
            session=session,
            number=counts["number"],
            input_tokens=counts["input_tokens"],
            output_tokens=counts["output_tokens"],
            cached_tokens=_known(counts["cached_tokens"]),
            reasoning_tokens=_known(counts["reasoning_tokens"]),
            timestamp_s=None if math.isnan(timestamp_s) else timestamp_s,
            **words,
        )


_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
_WORDS = ("agent", "parent", "model", "turn")


def _known(count: int) -> int | None:
    return None if count == _MISSING else count

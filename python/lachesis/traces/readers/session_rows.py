"""Requests of tables of counts, gathered by session: columns in, columns out.

Sessions may interleave. They come out in the order of their first requests, each whole, its
requests by time if every one has one, else in the order of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lachesis.traces.column_groups import ColumnGroups, Records
from lachesis.traces.grown_sessions import CountedRequests
from lachesis.traces.record_groups import NameNumbers, RecordGroups
from lachesis.traces.session_names import name_key

#: A request while its session is not complete: counts -1, seconds NaN and turn 0 where the table
#: says nothing; `turn` is a hash.
_REQUEST: Final = np.dtype(
    [
        ("session", np.int64),
        ("row", np.int64),
        ("input_tokens", np.int64),
        ("output_tokens", np.int64),
        ("cached_tokens", np.int64),
        ("reasoning_tokens", np.int64),
        ("start_s", np.float64),
        ("end_s", np.float64),
        ("model", np.int32),
        ("turn", np.uint64),
    ]
)


class RequestColumns(NamedTuple):
    """Requests of a table: Arrow arrays with nulls where it says nothing; seconds NaN there.

    `row`: where each stands. `session` has no nulls.
    """

    row: NDArray[np.int64]
    session: pa.Array
    input_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    model: pa.Array
    cached_tokens: pa.Array
    reasoning_tokens: pa.Array
    turn: pa.Array

    def where(self, kept: NDArray[np.bool_]) -> RequestColumns:
        """Those rows for which `kept` is true."""
        if kept.all():
            return self
        mask = pa.array(kept)
        return RequestColumns(
            self.row[kept], self.session.filter(mask), self.input_tokens[kept],
            self.output_tokens[kept], self.start_s[kept], self.end_s[kept],
            self.model.filter(mask), self.cached_tokens.filter(mask),
            self.reasoning_tokens.filter(mask), self.turn.filter(mask),
        )  # fmt: skip


class SessionBlock(NamedTuple):
    """Requests of some sessions, all that these have; nulls as in `RequestColumns`."""

    requests: Records
    starts: NDArray[np.int64]
    names: list[str]
    model: pa.Array

    def of(self, place: int) -> tuple[Records, list[str | None]]:
        """The requests of one session, and their models."""
        begin, end, *_ = (*self.starts[place : place + 2], len(self.requests))
        return self.requests[begin:end], self.model[begin:end].to_pylist()

    def counted(self, *, opens_turn: NDArray[np.bool_]) -> CountedRequests:
        """The requests as columns of which `opens_turn` says where turns begin."""
        requests, count = self.requests, len(self.requests)
        cached = requests["cached_tokens"]
        return CountedRequests(
            lengths=np.diff(self.starts, append=count),
            input_tokens=requests["input_tokens"],
            output_tokens=requests["output_tokens"],
            reasoning_tokens=np.maximum(requests["reasoning_tokens"], 0),
            agreed_tokens=None,
            start_s=requests["start_s"],
            end_s=requests["end_s"],
            delay_s=np.full(count, np.nan),
            opens_turn=opens_turn,
            inferred=np.zeros(count, np.bool_),
            cached_tokens=pa.array(cached, mask=cached < 0),
            model=self.model,
            prompt_tokens=None,
            prompt_key=pa.nulls(len(self.starts), pa.string()),
        )

    def changes_of_turn(self) -> NDArray[np.bool_]:
        """Where the turn is another one than what the session's rows before said last."""
        turn = self.requests["turn"]
        rows = np.arange(len(turn))
        latest = np.maximum.accumulate(np.where(turn > 0, rows, -1))
        before = np.concatenate([[-1], latest[:-1]])
        begin = np.repeat(self.starts, np.diff(self.starts, append=len(turn)))
        changed: NDArray[np.bool_] = (turn > 0) & (before >= begin) & (turn != turn[before])
        return changed


class SessionRows:
    """Takes a table's requests, and gives them back by session. `scratch`: as of `RecordGroups`."""

    def __init__(self, scratch: Path | None = None) -> None:
        self._numbers = NameNumbers()
        self._names = RecordGroups(scratch)
        self._requests = ColumnGroups(_REQUEST, scratch)
        self._models: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def append(self, columns: RequestColumns) -> None:
        """Take requests, in the order of the table."""
        records = np.zeros(len(columns.row), _REQUEST)
        sessions = columns.session.dictionary_encode()
        records["session"] = self._sessions(sessions.dictionary.to_pylist())[sessions.indices]
        models = columns.model.dictionary_encode()
        known = [
            self._models.setdefault(model, len(self._models))
            for model in models.dictionary.to_pylist()
        ]
        records["model"] = np.array([*known, -1])[models.indices.fill_null(len(known))]
        turns = columns.turn.dictionary_encode()
        keys = [name_key(turn) or 1 for turn in turns.dictionary.to_pylist()]
        records["turn"] = np.array([*keys, 0], np.uint64)[turns.indices.fill_null(len(keys))]
        for name in ("row", "input_tokens", "output_tokens", "start_s", "end_s"):
            records[name] = getattr(columns, name)
        for name in ("cached_tokens", "reasoning_tokens"):
            records[name] = getattr(columns, name).fill_null(-1)
        self._requests.append(records)

    def __iter__(self) -> Iterator[SessionBlock]:
        names = self._names.records()
        models = pa.array(list(self._models), pa.string())
        for requests in self._requests:
            starts = np.flatnonzero(np.diff(requests["session"], prepend=-1))
            ordered = requests[_by_time(requests, starts)]
            model = ordered["model"].astype(np.int64)
            yield SessionBlock(
                ordered,
                starts,
                [next(names)[1].decode("utf-8") for _ in starts],
                models.take(pa.array(model, mask=model < 0)),
            )

    def _sessions(self, names: list[str]) -> NDArray[np.int64]:
        numbers = np.zeros(len(names), np.int64)
        for place, name in enumerate(names):
            known = len(self._numbers)
            numbers[place] = number = self._numbers.of(name)
            if number == known:
                self._names.append(number, name.encode("utf-8"))
        return numbers


def _by_time(requests: Records, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order of requests within sessions: by time where every one of a session has one."""
    start_s = requests["start_s"]
    timed = np.logical_and.reduceat(~np.isnan(start_s), starts)
    timed = np.repeat(timed, np.diff(starts, append=len(requests)))
    return np.lexsort((np.where(timed, start_s, 0.0), requests["session"]))


def known_seconds(seconds: float) -> float | None:
    """A time of a record; None where there is none."""
    return None if np.isnan(seconds) else float(seconds)

"""The trace's columns as numpy arrays with global row indices, for checks over whole tables.

Ids within a session (request 3 of session a) become rows of their table; -1 where there is none.
Only valid once the tables' rows stand in the order of sessions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lachesis.errors import InputError
from lachesis.traces.trace import Trace

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class TraceView:
    """Numpy columns of a trace, and errors that say where in it something is wrong."""

    def __init__(self, trace: Trace, path: str) -> None:
        self.trace = trace
        self.path = path
        self.names = trace.sessions["session"].combine_chunks()
        self.session = {
            name: ints(pc.fill_null(pc.index_in(table["session"], value_set=self.names), -1))
            for name, table in trace.tables.items()
        }
        self.after_request = np.zeros(0, np.int64)
        self.after_of = np.zeros(0, np.int64)  # row of the request that waits

    def column(self, table: str, name: str) -> Ints:
        """An integer column; nulls as -1."""
        column = self.trace.tables[table][name]
        return ints(pc.fill_null(column, -1) if column.null_count else column)

    def is_any(self, table: str, name: str, *values: str) -> Bools:
        """Where a string column holds one of `values`."""
        found = pc.is_in(self.trace.tables[table][name], value_set=pa.array(values, pa.string()))
        return bools(found)

    def rows_of_requests(self, table: str, requests: Ints) -> Ints:
        """Rows in `requests` of request numbers that stand in rows of `table`."""
        return self.request_rows(self.session[table], requests)

    def request_rows(self, sessions: Ints, requests: Ints) -> Ints:
        """Rows in `requests` of (session code, request number), -1 where there is none."""
        starts = np.searchsorted(self.session["requests"], sessions, "left")
        ends = np.searchsorted(self.session["requests"], sessions, "right")
        rows = starts + requests
        return np.where((requests >= 0) & (rows < ends), rows, -1)

    def segment_rows(self, sessions: Ints, segments: Ints) -> Ints:
        """Rows in `segments` of (session code, segment id), -1 where there is none."""
        return lookup(
            pair_keys(self.session["segments"], self.column("segments", "segment")),
            pair_keys(sessions, segments),
        )

    def fail(self, table: str, row: int, field: str, rule: str, value: object = None) -> InputError:
        """The error for one row of a table, named by its ids."""
        content = self.trace.tables[table].slice(row, 1).to_pylist()[0]
        where = [table, f"session {content['session']}"]
        for key in ("request", "position", "segment", "agent"):
            if key in content and not (key in ("segment", "agent") and table == "requests"):
                if key == "segment" and table == "spans":
                    continue
                where.append(f"{key} {content[key]}")
        if value is None:
            value = content.get(field)
            value = "null" if value is None and field in content else value
        return InputError(rule, path=self.path, row=", ".join(where), field=field, value=value)

    def require(self, holds: Bools, table: str, field: str, rule: str) -> None:
        """Raise for the first row where `holds` is false."""
        if not holds.all():
            raise self.fail(table, int(np.argmin(holds)), field, rule)


def ints(column: pa.Array | pa.ChunkedArray) -> Ints:
    """An integer Arrow column (chunked or not) without nulls as int64."""
    return np.asarray(_chunked(column).to_numpy(), dtype=np.int64)


def bools(column: pa.Array | pa.ChunkedArray) -> Bools:
    """A boolean Arrow column (chunked or not) without nulls as numpy."""
    return np.asarray(_chunked(column).to_numpy(), dtype=np.bool_)


def floats(column: pa.Array | pa.ChunkedArray) -> Floats:
    """A float Arrow column, nulls as 0."""
    return np.asarray(pc.fill_null(_chunked(column), 0.0).to_numpy(), dtype=np.float64)


def _chunked(column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def pair_keys(high: Ints, low: Ints) -> Ints:
    """One sortable key of two ids below 2³¹; negative where the first is."""
    return (high << 32) + low


def lookup(sorted_keys: Ints, wanted: Ints) -> Ints:
    """Positions of `wanted` in `sorted_keys`, -1 where there is none."""
    if not len(sorted_keys):
        return np.full(len(wanted), -1, np.int64)
    found = np.minimum(np.searchsorted(sorted_keys, wanted), len(sorted_keys) - 1)
    return np.where(sorted_keys[found] == wanted, found, -1)

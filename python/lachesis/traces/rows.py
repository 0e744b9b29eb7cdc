"""Columns of the five tables while a batch grows, and the Arrow tables that they become."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lachesis.traces.schema import AFTER_TYPE, SESSIONS, TABLES

#: Columns that no list of values stands for: see `Rows`.
_MADE_OTHERWISE = ("session", "after", "tools")


class Rows:
    """One list a column (list columns: flat values and offsets) for the rows of some sessions.

    Sessions stand one after the other in every table, so that instead of the name in each row
    `rows_of_session` has, for every table but the first, how many rows each session has.
    """

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self.sessions: dict[str, list[Any]] = {name: [] for name in SESSIONS.names}
        self.requests = _columns("requests")
        self.after_offsets = [0]
        self.after_request: list[int] = []
        self.after_kind: list[str] = []
        self.after_delay_s: list[float | None] = []
        self.tools_offsets = [0]
        self.tools: list[str] = []
        self.spans = _columns("spans")
        self.segments = _columns("segments")
        self.spawns = _columns("spawns")
        self.spawns["tools"] = []
        self.rows_of_session: dict[str, list[int]] = {
            name: [] for name in TABLES if name != "sessions"
        }

    def counts(self) -> dict[str, int]:
        """Rows of each table so far."""
        return {
            "sessions": len(self.sessions["session"]),
            "requests": len(self.requests["request"]),
            "spans": len(self.spans["request"]),
            "segments": len(self.segments["segment"]),
            "spawns": len(self.spawns["agent"]),
        }

    def take(self) -> dict[str, pa.Table]:
        """The five tables, each in its schema; the lists are empty afterwards."""
        after = pa.ListArray.from_arrays(
            pa.array(self.after_offsets, pa.int32()),
            pa.StructArray.from_arrays(
                [
                    pa.array(self.after_request, pa.int32()),
                    pa.array(self.after_kind, pa.string()),
                    pa.array(self.after_delay_s, pa.float64()),
                ],
                fields=list(AFTER_TYPE),
            ),
        )
        tools = pa.ListArray.from_arrays(
            pa.array(self.tools_offsets, pa.int32()), pa.array(self.tools, pa.string())
        )
        tables = {
            "sessions": pa.Table.from_pydict(self.sessions, schema=SESSIONS),
            "requests": self._table("requests", {**self.requests, "after": after, "tools": tools}),
            "spans": self._table("spans", self.spans),
            "segments": self._table("segments", self.segments),
            "spawns": self._table("spawns", self.spawns),
        }
        self._start()
        return tables

    def _table(self, table: str, columns: dict[str, Any]) -> pa.Table:
        names = pa.array(self.sessions["session"], pa.string())
        counts = self.rows_of_session[table]
        session = names.take(pa.array(np.repeat(np.arange(len(counts)), counts)))
        return pa.Table.from_pydict({"session": session, **columns}, schema=TABLES[table])


def _columns(table: str) -> dict[str, list[Any]]:
    return {name: [] for name in TABLES[table].names if name not in _MADE_OTHERWISE}

"""Columns of the five tables while a batch grows, and the Arrow tables that they become."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lachesis.traces.schema import (
    AFTER_TYPE,
    REQUESTS,
    SEGMENTS,
    SESSIONS,
    SPANS,
    SPAWNS,
    TABLES,
)


class Rows:
    """One list a column (list columns: flat values and offsets) for the rows of some sessions."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self.sessions: dict[str, list[Any]] = {name: [] for name in SESSIONS.names}
        self.requests: dict[str, list[Any]] = {
            name: [] for name in REQUESTS.names if name not in ("after", "tools")
        }
        self.after_offsets = [0]
        self.after_request: list[int] = []
        self.after_kind: list[str] = []
        self.after_delay_s: list[float | None] = []
        self.tools_offsets = [0]
        self.tools: list[str] = []
        self.spans: dict[str, list[Any]] = {name: [] for name in SPANS.names}
        self.segments: dict[str, list[Any]] = {name: [] for name in SEGMENTS.names}
        self.spawns: dict[str, list[Any]] = {name: [] for name in SPAWNS.names}

    def counts(self) -> dict[str, int]:
        """Rows of each table so far."""
        return {name: len(getattr(self, name)["session"]) for name in TABLES}

    def take(self) -> dict[str, pa.Table]:
        """The five tables, each in its schema; the lists are empty afterwards."""
        tables = self._listed()
        self._start()
        return tables

    def _listed(self) -> dict[str, pa.Table]:
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
        lists = {"after": after, "tools": tools}
        requests = pa.Table.from_arrays(
            [
                lists[field.name]
                if field.name in lists
                else pa.array(self.requests[field.name], field.type)
                for field in REQUESTS
            ],
            schema=REQUESTS,
        )
        return {
            "sessions": pa.Table.from_pydict(self.sessions, schema=SESSIONS),
            "requests": requests,
            "spans": pa.Table.from_pydict(self.spans, schema=SPANS),
            "segments": pa.Table.from_pydict(self.segments, schema=SEGMENTS),
            "spawns": pa.Table.from_pydict(self.spawns, schema=SPAWNS),
        }

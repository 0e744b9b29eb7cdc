"""Columns of the five tables while they grow, and the Arrow tables that they become."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lachesis.traces.schema import AFTER_TYPE, REQUESTS, SEGMENTS, SESSIONS, SPANS, SPAWNS


class Rows:
    """One list a column; list columns as flat values and offsets."""

    def __init__(self) -> None:
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

    def tables(self) -> dict[str, pa.Table]:
        """The five tables, each in its schema."""
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

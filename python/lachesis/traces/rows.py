"""Columns of the five tables while they grow, and the Arrow tables that they become."""

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

_CHUNK_ROWS = 16_384


class Rows:
    """One list a column (list columns: flat values and offsets); long lists become Arrow chunks."""

    def __init__(self) -> None:
        self._chunks: dict[str, list[pa.Table]] = {name: [] for name in TABLES}
        self._counted = dict.fromkeys(TABLES, 0)
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
        return {name: self._counted[name] + len(getattr(self, name)["session"]) for name in TABLES}

    def truncate(self, counts: dict[str, int]) -> None:
        """Cut every table back to `counts` rows."""
        for name, table in self.tables().items():
            self._chunks[name] = [table.slice(0, counts[name])]
            self._counted[name] = counts[name]

    def fold(self) -> None:
        """Move the lists into Arrow chunks if they have grown long; call between sessions."""
        if max(len(self.spans["session"]), len(self.requests["session"])) >= _CHUNK_ROWS:
            self._fold()

    def tables(self) -> dict[str, pa.Table]:
        """The five tables, each in its schema."""
        self._fold()
        return {name: pa.concat_tables(chunks) for name, chunks in self._chunks.items()}

    def _fold(self) -> None:
        for name, table in self._listed().items():
            self._chunks[name].append(table)
            self._counted[name] += table.num_rows
        self._start()

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

"""Numpy columns of a generated workload, and the five Arrow tables made of them.

Rows are vectors over all sessions of a workload; ``session`` is the session's index. A generated
session has no log to recover anything from, so segments, edges and boundaries are written down
directly, by the same rules as the builder's; a test pushes generated sessions through the builder
as a log without text would give them, and compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lachesis.traces.generator.draws import Flags, Ints
from lachesis.traces.schema import AFTER_TYPE, TABLES, Boundary, EdgeKind, SegmentClass

CLASSES: tuple[str, ...] = tuple(SegmentClass)
BOUNDARIES: tuple[str, ...] = tuple(Boundary)
EDGES: tuple[str, ...] = tuple(EdgeKind)


def code(words: Sequence[str], word: str) -> int:
    """Position of a word of a closed set."""
    return words.index(word)


@dataclass
class Requests:
    """Requests, sorted by session and number."""

    session: Ints
    number: Ints
    turn: Ints
    agent: Ints
    segment: Ints
    output_tokens: Ints
    reasoning_tokens: Ints
    observations: Ints
    tool_counts: Ints
    """How many tool calls each request makes."""
    tools: NDArray[np.object_]
    """Tool classes of all calls in a row."""


@dataclass
class Edges:
    """Dependencies, in any order: ``request`` of ``session`` waits for ``earlier``."""

    session: Ints
    request: Ints
    earlier: Ints
    kind: Ints
    """Position in ``EDGES``."""
    drawn: Flags
    """Whether the delay is drawn at replay; it is 0 otherwise."""


@dataclass
class Spans:
    """Parts of inputs; ``place`` orders the spans of a request."""

    session: Ints
    request: Ints
    place: Ints
    segment: Ints
    tokens: Ints
    written: Flags


@dataclass
class Segments:
    """Segments, sorted by session and number."""

    session: Ints
    number: Ints
    kind: Ints
    """Position in ``CLASSES``."""
    agent: Ints
    closed_by: Ints
    """Position in ``BOUNDARIES``."""
    closed_after: Ints
    prefix: Ints
    """Position in the prefix keys, -1 for none."""
    prefix_keys: tuple[str, ...]


@dataclass
class Spawns:
    """Spawn records, sorted by session and agent."""

    session: Ints
    agent: Ints
    roles: list[str]
    spawned_by: Ints
    return_request: Ints
    instructions: list[str | None]
    contexts: list[str | None]
    instruction_tokens: list[int | None]
    context_tokens: list[int | None]
    tools: list[list[str]]
    position: Ints


@dataclass
class Columns:
    """One workload."""

    workload: str
    harness: str
    sessions: int
    requests: Requests
    edges: Edges
    spans: Spans
    segments: Segments
    spawns: Spawns | None = None
    names: pa.StringArray = field(init=False)

    def __post_init__(self) -> None:
        self.names = pa.array(
            [f"{self.workload}-{index:04d}" for index in range(self.sessions)], pa.string()
        )


def join_spans(parts: Sequence[Spans]) -> Spans:
    """Spans of several kinds in one, empty ones left out."""
    joined = [
        np.concatenate([np.broadcast_to(getattr(part, name), len(part.request)) for part in parts])
        for name in ("session", "request", "place", "segment", "tokens", "written")
    ]
    kept = joined[4] > 0
    return Spans(*(column[kept] for column in joined))


def join_edges(parts: Sequence[Edges]) -> Edges:
    """Edges of several kinds in one."""
    return Edges(
        *(
            np.concatenate(
                [np.broadcast_to(getattr(part, name), len(part.request)) for part in parts]
            )
            for name in ("session", "request", "earlier", "kind", "drawn")
        )
    )


def tables(columns: Columns) -> dict[str, pa.Table]:
    """The five tables of one workload."""
    count = columns.sessions
    sessions = {
        "session": columns.names,
        "workload": pa.array([columns.workload] * count, pa.string()),
        "harness": pa.array([columns.harness] * count, pa.string()),
        "source": pa.array(["generated"] * count, pa.string()),
        "starts_midway": pa.array(np.zeros(count, dtype=bool)),
        "ends_open": pa.array(np.zeros(count, dtype=bool)),
    }
    made = {
        "sessions": sessions,
        "requests": _requests(columns),
        "spans": _spans(columns),
        "segments": _segments(columns),
        "spawns": _spawns(columns),
    }
    return {
        name: pa.Table.from_arrays(
            [made[name][field].cast(TABLES[name].field(field).type) for field in schema.names],
            schema=schema,
        )
        for name, schema in TABLES.items()
    }


def _words(words: Sequence[str], codes: Ints) -> pa.StringArray:
    return pa.array(words, pa.string()).take(pa.array(codes))


def _requests(columns: Columns) -> dict[str, pa.Array]:
    rows = columns.requests
    count = len(rows.number)
    tool_offsets = np.concatenate(([0], np.cumsum(rows.tool_counts))).astype(np.int32)
    return {
        "session": columns.names.take(pa.array(rows.session)),
        "request": pa.array(rows.number),
        "turn": pa.array(rows.turn),
        "agent": pa.array(rows.agent),
        "model": pa.nulls(count, pa.string()),
        "status": pa.array(["ok"] * count, pa.string()),
        "after": _after(columns),
        "segment": pa.array(rows.segment),
        "output_tokens": pa.array(rows.output_tokens),
        "reasoning_tokens": pa.array(rows.reasoning_tokens),
        "observations": pa.array(rows.observations),
        "tools": pa.ListArray.from_arrays(
            pa.array(tool_offsets), pa.array(rows.tools.tolist(), pa.string())
        ),
        "reported_cached_tokens": pa.nulls(count, pa.int64()),
        "start_s": pa.nulls(count, pa.float64()),
        "end_s": pa.nulls(count, pa.float64()),
        "usage_source": pa.array(["inferred"] * count, pa.string()),
    }


def _after(columns: Columns) -> pa.ListArray:
    edges, rows = columns.edges, columns.requests
    order = np.lexsort((edges.kind, edges.earlier, edges.request, edges.session))
    bounds = np.concatenate(([0], np.cumsum(np.bincount(rows.session, minlength=columns.sessions))))
    row = bounds[edges.session] + edges.request
    counts = np.bincount(row, minlength=len(rows.number))
    drawn = edges.drawn[order]
    values = pa.StructArray.from_arrays(
        [
            pa.array(edges.earlier[order].astype(np.int32)),
            _words(EDGES, edges.kind[order]),
            pa.array(np.zeros(len(order)), mask=drawn),
        ],
        fields=list(AFTER_TYPE),
    )
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _spans(columns: Columns) -> dict[str, pa.Array]:
    spans = columns.spans
    order = np.lexsort((spans.place, spans.request, spans.session))
    session, request = spans.session[order], spans.request[order]
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (session[1:] != session[:-1]) | (request[1:] != request[:-1])
    index = np.arange(len(order))
    position = index - np.maximum.accumulate(np.where(fresh, index, 0))
    return {
        "session": columns.names.take(pa.array(session)),
        "request": pa.array(request),
        "position": pa.array(position),
        "segment": pa.array(spans.segment[order]),
        "tokens": pa.array(spans.tokens[order]),
        "written": pa.array(spans.written[order].astype(bool)),
    }


def _segments(columns: Columns) -> dict[str, pa.Array]:
    rows = columns.segments
    keys = pa.array(rows.prefix_keys, pa.string())
    return {
        "session": columns.names.take(pa.array(rows.session)),
        "segment": pa.array(rows.number),
        "class": _words(CLASSES, rows.kind),
        "agent": pa.array(rows.agent),
        "closed_by": _words(BOUNDARIES, rows.closed_by),
        "closed_after": pa.array(rows.closed_after),
        "prefix_key": keys.take(pa.array(rows.prefix, mask=rows.prefix < 0)),
    }


def _spawns(columns: Columns) -> dict[str, pa.Array]:
    rows = columns.spawns
    if rows is None:
        return {name: pa.array([], field.type) for name, field in _fields("spawns")}
    count = len(rows.agent)
    return {
        "session": columns.names.take(pa.array(rows.session)),
        "agent": pa.array(rows.agent),
        "role": pa.array(rows.roles, pa.string()),
        "agent_type": pa.nulls(count, pa.string()),
        "parent": pa.array(np.zeros(count, dtype=np.int32)),
        "spawned_by": pa.array(rows.spawned_by),
        "return_requests": pa.array(
            [[request] for request in rows.return_request.tolist()], pa.list_(pa.int32())
        ),
        "instruction": pa.array(rows.instructions, pa.string()),
        "context": pa.array(rows.contexts, pa.string()),
        "instruction_tokens": pa.array(rows.instruction_tokens, pa.int64()),
        "context_tokens": pa.array(rows.context_tokens, pa.int64()),
        "tools": pa.array(rows.tools, pa.list_(pa.string())),
        "model": pa.nulls(count, pa.string()),
        "position": pa.array(rows.position),
    }


def _fields(table: str) -> list[tuple[str, pa.Field]]:
    return [(column.name, column) for column in TABLES[table]]

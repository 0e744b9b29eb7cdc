"""The canonical trace: Arrow schemas of its five tables, and the closed sets of words in them.

Sizes are int64 tokens, ordinals int32, times float64 seconds. `start_s` and `end_s` of requests are
seconds on the log's own clock, the same for all sessions that were read together: since the epoch
where the log has calendar times, else from wherever its clock counts (a session's start, for logs
that know no more). `to_workload` subtracts the earliest start of a session.

Closed sets are stored as plain strings and exported here as `StrEnum`, so that
``segment["class"] == SegmentClass.WORKER`` works.

Example:
    >>> TABLES["spans"].names
    ['session', 'request', 'position', 'segment', 'tokens', 'written']
    >>> SegmentClass("reasoning-laden") is SegmentClass.LADEN
    True
"""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa

SCHEMA_VERSION = 1
TOKENS_MAX = 2**31 - 1


class SegmentClass(StrEnum):
    """What a segment holds; decided by what closes it."""

    PROMPT = "prompt"
    LADEN = "reasoning-laden"
    STRIPPED = "reasoning-stripped"
    LEAD = "lead"
    WORKER = "worker"
    REVIEWER = "reviewer"
    SUMMARY = "summary"


class Boundary(StrEnum):
    """What closes a segment."""

    TURN_END = "turn_end"
    SUBAGENT_RETURN = "subagent_return"
    SESSION_END = "session_end"
    COMPACTION = "compaction"
    REQUEST_END = "request_end"
    RESET = "reset"


class EdgeKind(StrEnum):
    """Why a request waits for an earlier one."""

    TOOL = "tool"
    SPAWN = "spawn"
    RETURN = "return"
    USER = "user"


class Status(StrEnum):
    """How a request ended."""

    OK = "ok"
    ABORTED = "aborted"
    ERROR = "error"


class UsageSource(StrEnum):
    """Where a request's token counts come from.

    `reported` by the provider; `recounted` from the content because the report is known to be
    wrong; `inferred` from lengths or neighbours because there is no report.
    """

    REPORTED = "reported"
    RECOUNTED = "recounted"
    INFERRED = "inferred"


class Role(StrEnum):
    """What a sub-agent is there for."""

    WORKER = "worker"
    REVIEWER = "reviewer"


class ToolClass(StrEnum):
    """Classes of tools that differ in latency (the classes of InferCept's Table 1, and two more).

    `spawn` starts a sub-agent: its latency is the sub-agent's own run. `other` is anything that no
    rule of `lachesis.traces.tool_classes` knows.
    """

    RETRIEVAL = "retrieval"
    ENVIRONMENT = "environment"
    CALCULATOR = "calculator"
    HUMAN = "human"
    IMAGE = "image"
    SPEECH = "speech"
    SPAWN = "spawn"
    OTHER = "other"


AFTER_TYPE = pa.struct(
    [
        pa.field("request", pa.int32(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("delay_s", pa.float64()),
    ]
)


def _table(*columns: tuple[str, pa.DataType, bool]) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=null) for name, kind, null in columns])


SESSIONS = _table(
    ("session", pa.string(), False),
    ("workload", pa.string(), False),
    ("harness", pa.string(), False),
    ("source", pa.string(), False),
    ("starts_midway", pa.bool_(), False),
    ("ends_open", pa.bool_(), False),
)

REQUESTS = _table(
    ("session", pa.string(), False),
    ("request", pa.int32(), False),
    ("turn", pa.int32(), False),
    ("agent", pa.int32(), False),
    ("model", pa.string(), True),
    ("status", pa.string(), False),
    ("after", pa.list_(AFTER_TYPE), False),
    ("segment", pa.int32(), False),
    ("output_tokens", pa.int64(), False),
    ("reasoning_tokens", pa.int64(), False),
    ("observations", pa.int32(), False),
    ("tools", pa.list_(pa.string()), False),
    ("reported_cached_tokens", pa.int64(), True),
    ("start_s", pa.float64(), True),
    ("end_s", pa.float64(), True),
    ("usage_source", pa.string(), False),
)

SPANS = _table(
    ("session", pa.string(), False),
    ("request", pa.int32(), False),
    ("position", pa.int32(), False),
    ("segment", pa.int32(), False),
    ("tokens", pa.int64(), False),
    ("written", pa.bool_(), False),
)

SEGMENTS = _table(
    ("session", pa.string(), False),
    ("segment", pa.int32(), False),
    ("class", pa.string(), False),
    ("agent", pa.int32(), False),
    ("closed_by", pa.string(), False),
    ("closed_after", pa.int32(), False),
    ("prefix_key", pa.string(), True),
)

SPAWNS = _table(
    ("session", pa.string(), False),
    ("agent", pa.int32(), False),
    ("role", pa.string(), False),
    ("agent_type", pa.string(), True),
    ("parent", pa.int32(), False),
    ("spawned_by", pa.int32(), False),
    ("return_requests", pa.list_(pa.int32()), False),
    ("instruction", pa.string(), True),
    ("context", pa.string(), True),
    ("instruction_tokens", pa.int64(), True),
    ("context_tokens", pa.int64(), True),
    ("tools", pa.list_(pa.string()), False),
    ("model", pa.string(), True),
    ("position", pa.int32(), False),
)

#: The five tables by name, in the order in which they are written and checked.
TABLES: dict[str, pa.Schema] = {
    "sessions": SESSIONS,
    "requests": REQUESTS,
    "spans": SPANS,
    "segments": SEGMENTS,
    "spawns": SPAWNS,
}

#: Columns whose values come from a closed set (list elements for list columns).
CLOSED_SETS: dict[tuple[str, str], frozenset[str]] = {
    ("requests", "status"): frozenset(Status),
    ("requests", "usage_source"): frozenset(UsageSource),
    ("requests", "tools"): frozenset(ToolClass),
    ("segments", "class"): frozenset(SegmentClass),
    ("segments", "closed_by"): frozenset(Boundary),
    ("spawns", "role"): frozenset(Role),
}

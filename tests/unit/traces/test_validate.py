"""Each rule of the canonical form, broken on purpose, is named with its place."""

import re

import pyarrow as pa
import pytest

from lachesis.errors import InputError
from lachesis.traces import TABLES, Role, Trace, TraceBuilder, validate


def good() -> Trace:
    """Two sessions; the first has a prompt, a worker that returns, and two turns."""
    builder = TraceBuilder(source="good")
    session = builder.session("a", workload="w", harness="h", stripping="off")
    by = session.request(
        input_tokens=100, prompt_tokens=60, prefix_key="p", output_tokens=10, tools=["spawn"],
        start_s=1.0, end_s=2.0, reasoning_tokens=4,
    )  # fmt: skip
    session.spawn("w", spawned_by=by, role=Role.WORKER, instruction_tokens=5)
    session.request(agent="w", input_tokens=40, prompt_tokens=30, output_tokens=8)
    to = session.request(input_tokens=130, output_tokens=5)
    session.returns("w", to=to)
    session.request(input_tokens=150, output_tokens=5, opens_turn=True)
    other = builder.session("b", workload="w", harness="h")
    other.request(input_tokens=70, prompt_tokens=60, prefix_key="p", output_tokens=3)
    return builder.build()


# Rows of `good`, for reading the cases below:
#   requests 0..3 of a (agents 0, 1, 0, 0), 4 = request 0 of b
#   segments of a: 0 prompt, 1 lead, 2 prompt (worker's), 3 worker; of b: 0 prompt, 1 lead
#   spans rows: 0,1 request 0 | 2,3 request 1 | 4,5,6 request 2 | 7,8,9 request 3 | 10,11 of b
def broken(table: str, changes: dict) -> Trace:
    trace = good()
    rows = trace.tables[table].to_pylist()
    for (row, column), value in changes.items():
        rows[row][column] = value
    tables = trace.tables | {table: pa.Table.from_pylist(rows, schema=TABLES[table])}
    return Trace(**tables, source="good")


def edge(request: int, kind: str = "tool", delay_s: float | None = None) -> dict:
    return {"request": request, "kind": kind, "delay_s": delay_s}


CASES = {
    "names unique": (
        "sessions", {(1, "session"): "a"},
        "sessions, session a: session = a, must be unique"),
    "sessions exist": (
        "spans", {(11, "session"): "c"},
        "spans, session c, request 0, position 1: session = c, no such session in the sessions"),
    "rows stand together": (
        "segments", {(0, "session"): "b"},
        "segments, session a, segment 1, agent 0: session = a, rows must stand together"),
    "no session without request": (
        "requests", {(4, "session"): "a", (4, "request"): 4},
        "sessions, session b: session = b, has no request"),
    "requests contiguous": (
        "requests", {(3, "request"): 4},
        "requests, session a, request 4: request = 4, numbers must be 0, 1, 2, … without a gap"),
    "segments unique": (
        "segments", {(1, "segment"): 0},
        "segments, session a, segment 0, agent 0: segment = 0, must be unique and ascending"),
    "span's request exists": (
        "spans", {(11, "request"): 7},
        "spans, session b, request 7, position 1: request = 7, no such request"),
    "positions contiguous": (
        "spans", {(1, "position"): 2},
        "position = 2, must be 0, 1, 2, … without a gap in each request"),
    "span's segment exists": (
        "spans", {(1, "segment"): 9}, "segment = 9, no such segment"),
    "output's segment exists": (
        "requests", {(0, "segment"): 9}, "requests, session a, request 0: segment = 9, no such"),
    "status is known": (
        "requests", {(1, "status"): "fine"},
        "requests, session a, request 1: status = fine, must be one of aborted, error, ok"),
    "usage source is known": (
        "requests", {(1, "usage_source"): "guess"}, "usage_source = guess, must be one of inf"),
    "tools are known": (
        "requests", {(2, "tools"): ["spawn", "hammer"]},
        "requests, session a, request 2: tools = hammer, must be one of calculator"),
    "class is known": (
        "segments", {(1, "class"): "main"}, "class = main, must be one of lead, prompt"),
    "boundary is known": (
        "segments", {(1, "closed_by"): "never"}, "closed_by = never, must be one of compaction"),
    "boundary fits the class": (
        "segments", {(1, "closed_by"): "turn_end"},
        "closed_by = turn_end, a lead segment is closed by session_end, compaction, reset"),
    "ok means output": (
        "requests", {(4, "output_tokens"): 0},
        "output_tokens = 0, must be at least 1 where the request is ok"),
    "output not negative": (
        "requests", {(4, "output_tokens"): -3},
        "requests, session b, request 0: output_tokens = -3, must not be negative"),
    "output not absurd": (
        "requests", {(4, "output_tokens"): 2**31}, "output_tokens = 2147483648, must be at most"),
    "cached not negative": (
        "requests", {(4, "reported_cached_tokens"): -1}, "reported_cached_tokens = -1, must not"),
    "span not negative": ("spans", {(0, "tokens"): -1}, "tokens = -1, must not be negative"),
    "span not empty": ("spans", {(0, "tokens"): 0}, "tokens = 0, must be at least 1"),
    "span not absurd": ("spans", {(0, "tokens"): 2**31}, "must be at most 2147483647"),
    "spawn's tokens not negative": (
        "spawns", {(0, "instruction_tokens"): -1}, "instruction_tokens = -1, must not be"),
    "reasoning is part of output": (
        "requests", {(0, "reasoning_tokens"): 11},
        "reasoning_tokens = 11, must be at most output_tokens"),
    "time is finite": (
        "requests", {(0, "start_s"): float("nan")}, "start_s = nan, must be a finite time"),
    "end is finite": (
        "requests", {(0, "end_s"): float("inf")}, "end_s = inf, must be a finite time"),
    "end not before start": (
        "requests", {(0, "end_s"): 0.5}, "end_s = 0.5, must not be before start_s"),
    "edge to itself": (
        "requests", {(3, "after"): [edge(3)]},
        "requests, session a, request 3: after.request = 3, must be an earlier request"),
    "edge to later": (
        "requests", {(2, "after"): [edge(3)]}, "after.request = 3, must be an earlier request"),
    "edge kind": (
        "requests", {(3, "after"): [edge(2, "idle")]}, "after.kind = idle, must be one of return"),
    "delay negative": (
        "requests", {(3, "after"): [edge(2, delay_s=-1.0)]},
        "after.delay_s = -1.0, must be finite and not negative"),
    "delay finite": (
        "requests", {(3, "after"): [edge(2, delay_s=float("nan"))]}, "must be finite and not"),
    "only the first waits for nothing": (
        "requests", {(3, "after"): []}, "after = [], is empty for the first request only"),
    "after whoever named it before": (
        "requests", {(3, "after"): [edge(1)]},
        "request 3: after = [{'request': 1, 'kind': 'tool', 'delay_s': None}], must lead back to "
        "request 2, which named segment 1 before"),
    "first mention is written": (
        "spans", {(0, "written"): False}, "a segment's first mention must be written"),
    "matches all live tokens": (
        "spans", {(5, "tokens"): 49}, "tokens = 49, must match all 50 live tokens of segment 1"),
    "matched before written": (
        "spans", {(4, "written"): True}, "written = False, matched spans come before written"),
    "matches before it writes": (
        "spans", {(5, "segment"): 3, (5, "tokens"): 18}, "writes to a segment of 50 live tokens"),
    "matches once": (
        "spans", {(5, "segment"): 0, (5, "tokens"): 60}, "a request matches a segment once"),
    "own segments": (
        "requests", {(1, "segment"): 1},
        "request 1: segment = 1, requests write only to their own agent's segments"),
    "own segments, spans": (
        "spans", {(3, "segment"): 1}, "requests write only to their own agent's segments"),
    "never written": (
        "spans", {(2, "segment"): 3}, "segment = 2, is never written"),
    "closed after a request": (
        "segments", {(1, "closed_after"): 9}, "closed_after = 9, no such request"),
    "boundary before its segment": (
        "segments", {(3, "closed_after"): 0},
        "segment 3, agent 1: closed_after = 0, a boundary must not be before its segment"),
    "named after it was closed": (
        "segments", {(1, "closed_after"): 2},
        "requests, session a, request 3: segment = 1, names a segment after it was closed (by "
        "session_end after request 2)"),
    "prefix key on prompts": (
        "segments", {(1, "prefix_key"): "x"}, "prefix_key = x, only a prompt has one"),
    "prefix key, same prompt": (
        "spans", {(10, "tokens"): 61}, "has 61 tokens here and 60 in another session"),
    "prefix key once a session": (
        "segments", {(0, "prefix_key"): "q", (2, "prefix_key"): "q"}, "has 30 tokens here and 60"),
    "agent has a spawn": (
        "requests", {(3, "agent"): 2}, "requests write only to their own agent's segments"),
    "lead is not spawned": (
        "spawns", {(0, "agent"): 0}, "agent = 0, the lead (0) is not spawned"),
    "spawned agent exists": (
        "spawns", {(0, "agent"): 2}, "requests, session a, request 1: agent = 1, no spawn names"),
    "spawned by a request": ("spawns", {(0, "spawned_by"): 9}, "spawned_by = 9, no such request"),
    "parent spawns": (
        "spawns", {(0, "parent"): 1}, "parent = 1, must be the agent of the request that spawned"),
    "spawned before": (
        "spawns", {(0, "spawned_by"): 2},
        "spawned_by = 2, the sub-agent's first request must be after it"),
    "returns exist": ("spawns", {(0, "return_requests"): [8]}, "return_requests = 8, no such"),
    "returns to the parent": (
        "spawns", {(0, "return_requests"): [1]}, "return_requests = 1, must be requests of the"),
    "returns by an edge": (
        "spawns", {(0, "return_requests"): [3]},
        "return_requests = 3, must be after a request of the sub-agent, by an edge of kind"),
    "role is known": ("spawns", {(0, "role"): "boss"}, "role = boss, must be one of reviewer"),
    "class is the role's": (
        "spawns", {(0, "role"): "reviewer"}, "class = worker, its agent is no worker"),
    "position": ("spawns", {(0, "position"): 1}, "position = 1, must be 0, 1, 2, … in each"),
    "lead's turns": (
        "requests", {(3, "turn"): 2}, "turn = 2, the lead's turns are 0, 1, 2, … in order"),
    "sub-agent's turn": (
        "requests", {(1, "turn"): 1}, "turn = 1, a sub-agent carries the turn of its spawn"),
    "lead class": (
        "segments", {(3, "class"): "lead", (3, "closed_by"): "session_end"},
        "class = lead, belongs to the lead (agent 0)"),
}  # fmt: skip


def test_the_unbroken_trace_is_valid():
    validate(good())


@pytest.mark.parametrize(("table", "changes", "message"), CASES.values(), ids=CASES.keys())
def test_a_broken_rule_is_named(table, changes, message):
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        validate(broken(table, changes), "some.trace")
    text = str(caught.value)
    assert text.startswith("some.trace: ")
    assert "\n" not in text


def test_repeated_prefix_key_in_one_session():
    trace = good()
    spans = trace.spans.to_pylist()
    segments = trace.segments.to_pylist()
    segments[2]["prefix_key"] = segments[0]["prefix_key"]
    spans[2]["tokens"] = 60
    tables = trace.tables | {
        "spans": pa.Table.from_pylist(spans, schema=TABLES["spans"]),
        "segments": pa.Table.from_pylist(segments, schema=TABLES["segments"]),
    }
    with pytest.raises(InputError, match="prefix_key = p/60, must be unique in its session"):
        validate(Trace(**tables, source="t"))


def test_an_empty_trace_is_refused():
    tables = {name: schema.empty_table() for name, schema in TABLES.items()}
    with pytest.raises(InputError, match=r"^nothing: holds no session$"):
        validate(Trace(**tables, source="nothing"))


def test_an_indirect_order_is_enough():
    """Request 3 leads back to request 2 through the worker's second request."""
    builder = TraceBuilder(source="t")
    session = builder.session("a", workload="w", harness="h")
    by = session.request(input_tokens=1, output_tokens=1)
    session.spawn("w", spawned_by=by)
    session.request(agent="w", input_tokens=1, output_tokens=1)
    session.returns("w", to=session.request(input_tokens=4, output_tokens=1))
    session.resume("w", resumed_by=2)
    session.request(agent="w", input_tokens=3, output_tokens=1)
    session.returns("w", to=session.request(input_tokens=9, output_tokens=1))
    trace = builder.build()
    rows = trace.requests.to_pylist()
    assert [e["request"] for e in rows[4]["after"]] == [2, 3]
    rows[4]["after"] = [e for e in rows[4]["after"] if e["request"] == 3]
    requests = pa.Table.from_pylist(rows, schema=TABLES["requests"])
    validate(Trace(**(trace.tables | {"requests": requests}), source="t"))

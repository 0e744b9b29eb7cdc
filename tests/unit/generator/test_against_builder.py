"""Generated tables equal what the builder recovers from the same sessions, logged without text.

The generator writes segments, edges and boundaries down directly; the builder recovers them from
counts. Where both can say a session (the builder knows no second prompt in one context, as BFCLv4
sessions have), they must say the same.
"""

from collections import defaultdict

import pytest

from lachesis.traces import Edge, EdgeKind, Role, TraceBuilder, UsageSource
from lachesis.traces.generator import generate


def by_session(table):
    grouped = defaultdict(list)
    for row in table.to_pylist():
        grouped[row["session"]].append(row)
    return grouped


def rebuild(trace, stripping):
    """Push every session's counts through the builder."""
    builder = TraceBuilder(source=trace.source, tokenizer=trace.tokenizer)
    requests, spans, segments, spawns = (
        by_session(table) for table in (trace.requests, trace.spans, trace.segments, trace.spawns)
    )
    for row in trace.sessions.to_pylist():
        session = builder.session(
            row["session"], workload=row["workload"], harness=row["harness"],
            source=row["source"], stripping=stripping, recorded_delays=False,
        )  # fmt: skip
        name = row["session"]
        kinds = {segment["segment"]: segment for segment in segments[name]}
        records = {spawn["agent"]: spawn for spawn in spawns[name]}
        of_request = defaultdict(list)
        for span in spans[name]:
            of_request[span["request"]].append(span)
        turns, seen, last = -1, set(), {}
        for request in requests[name]:
            agent, number = request["agent"], request["request"]
            push(session, request, of_request[number], kinds, records, turns, agent in seen)
            turns = request["turn"]
            seen.add(agent)
            last[agent] = number
            for edge in request["after"]:
                sender = requests[name][edge["request"]]["agent"]
                if edge["kind"] == "return" and agent == 0:
                    session.returns(sender, to=number)
    return builder.build()


def push(session, request, spans, kinds, records, previous_turn, known):
    agent = request["agent"]
    if agent and not known:
        record = records[agent]
        session.spawn(
            agent, spawned_by=record["spawned_by"], role=Role(record["role"]),
            instruction=record["instruction"], context=record["context"],
            instruction_tokens=record["instruction_tokens"],
            context_tokens=record["context_tokens"], tools=record["tools"],
        )  # fmt: skip

    def tokens(kind, written):
        return sum(
            span["tokens"]
            for span in spans
            if kinds[span["segment"]]["class"] == kind and span["written"] == written
        )

    prompt = next(span for span in spans if kinds[span["segment"]]["class"] == "prompt")
    key = kinds[prompt["segment"]]["prefix_key"].rsplit("/", 1)[0]
    reviewed = [
        Edge(edge["request"], EdgeKind.RETURN, edge["delay_s"])
        for edge in request["after"]
        if edge["kind"] == "return" and agent
    ]
    session.request(
        agent=agent,
        opens_turn=request["turn"] != previous_turn and agent == 0,
        input_tokens=sum(span["tokens"] for span in spans),
        prompt_tokens=None if known else prompt["tokens"],
        prefix_key=None if known else key,
        carried_tokens=tokens("reasoning-stripped", True) or None,
        appended_tokens=sum(
            tokens(kind, True) for kind in ("reasoning-laden", "lead", "worker", "reviewer")
        ),
        output_tokens=request["output_tokens"],
        reasoning_tokens=request["reasoning_tokens"],
        observations=request["observations"],
        tools=request["tools"],
        usage_source=UsageSource.INFERRED,
        after=reviewed,
    )


@pytest.mark.parametrize(
    ("name", "scale", "stripping"),
    [
        ("tau3-airline", 0.3, "turn"),
        ("tau3-telecom", 0.1, "turn"),
        ("appworld", 0.1, "off"),
        ("deepsearchqa", 0.1, "off"),
        ("multi-agent-no-reviewer", 0.05, "off"),
    ],
)
def test_generated_tables_equal_rebuilt_ones(name, scale, stripping):
    made = generate(name, scale=scale)
    rebuilt = rebuild(made, stripping)
    for table in ("sessions", "requests", "spans", "segments", "spawns"):
        ours, theirs = getattr(made, table).to_pylist(), getattr(rebuilt, table).to_pylist()
        assert len(ours) == len(theirs), table
        for row, other in zip(ours, theirs, strict=True):
            assert row == other, table

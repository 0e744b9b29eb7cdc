"""Agentic Mooncake: agents under agents, waits as edges, contexts from blocks."""

import json
from pathlib import Path

import pytest
from damaged_logs import check_damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from read_traces import column, edges, inputs, matched

from lachesis.errors import InputError
from lachesis.traces import read

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "traces" / "mooncake_agentic"


def write(tmp_path, *rows):
    file = tmp_path / "dag.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def row(name, session, *wait_for, **fields):
    return {
        "request_id": name, "session_id": session, "wait_for": list(wait_for),
        "input_length": 32, "output_length": 4, **fields,
    }  # fmt: skip


@pytest.fixture(scope="module")
def trace():
    return read([FIXTURE])


def test_agents_without_a_parent_lead_sessions(trace):
    assert trace.sessions["session"].to_pylist() == ["lead", "other"]
    (spawn,) = trace.spawns.to_pylist()
    assert (spawn["parent"], spawn["spawned_by"], spawn["return_requests"]) == (0, 0, [3])


def test_waits_are_edges_and_carry_the_delay(trace):
    assert edges(trace, 1, "lead") == [(0, "spawn", 0.0)]
    assert edges(trace, 2, "lead") == [(1, "tool", 0.25)]
    assert edges(trace, 3, "lead") == [(0, "tool", 0.0), (2, "return", 0.0)]
    assert edges(trace, 4, "lead") == [(3, "tool", 0.5)]


def test_tools_belong_to_the_request_before(trace):
    assert column(trace, "tools", "lead")[1] == ["environment"]
    assert column(trace, "observations", "lead") == [0, 0, 1, 0, 0]


def test_blocks_match_and_a_reset_starts_anew(trace):
    assert inputs(trace, "lead") == [64, 32, 48, 96, 48]
    assert matched(trace, "lead") == [0, 0, 38, 74, 0]


def test_a_delay_counts_after_the_last_of_all_waits(tmp_path):
    rows = [
        row("a", "lead"),
        row("b", "worker", "a"),
        row("c", "lead", "a", "b", delay=100, tool_wait_ms=400),
    ]
    assert edges(read([write(tmp_path, *rows)]), 2) == [(0, "tool", 0.5), (1, "return", 0.5)]


def test_requests_may_stand_in_any_order(tmp_path):
    rows = [
        row("c", "lead2", "b"),
        row("b", "worker", "a"),
        row("a", "lead", branches=["b"]),
    ]
    trace = read([write(tmp_path, *rows)])
    assert trace.sessions["session"].to_pylist() == ["lead"]
    assert trace.spawns["parent"].to_pylist() == [0, 1]


def test_a_wait_for_a_sibling_is_an_edge(tmp_path):
    rows = [row("a", "lead"), row("b", "w1", "a"), row("c", "w2", "a"), row("d", "w2", "c", "b")]
    trace = read([write(tmp_path, *rows)])
    assert edges(trace, 3) == [(1, "tool", 0.0), (2, "tool", None)]


def test_waits_across_sessions_are_dropped_and_counted(tmp_path):
    rows = [row("a", "one"), row("b", "two"), row("c", "one", "a", "b")]
    trace = read([write(tmp_path, *rows)])
    assert len(trace) == 2
    assert trace.quality.dropped == {"wait for a request of another session": 1}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row("a", "s"), row("a", "s")], r"jsonl:2: request_id = a, stands there twice"),
        ([row("a", "s", "b")], r"jsonl:1: wait_for = b, no request has this id"),
        (
            [row("a", "s", "b"), row("b", "s")],
            r"wait_for, requests wait for each other in a circle",
        ),
        ([row("a", "s", input_length=None)], "input_length = missing, is needed in every row"),
        (
            [{"schema": "dynamo.agentic_mooncake", "version": 2}],
            "version = 2, only version 1, which has no header, is read",
        ),
    ],
)
def test_broken_rows(tmp_path, rows, message):
    with pytest.raises(InputError, match=message):
        read([write(tmp_path, *rows)], format="mooncake-agentic")


def test_without_a_session_every_request_is_one(tmp_path):
    rows = [{**row("a", None)}, {**row("b", None, "a")}]
    trace = read([write(tmp_path, *rows)])
    assert trace.sessions["session"].to_pylist() == ["a"]
    assert trace.spawns.num_rows == 1


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_damaged(data):
    check_damaged(data, FIXTURE, "mooncake-agentic")

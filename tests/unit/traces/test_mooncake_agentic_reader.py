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


OF_VERSION_2 = FIXTURE.parent / "mooncake_agentic_version_2"
HEADER = {
    "schema": "dynamo.agentic_mooncake", "version": 2, "block_size": 16,
    "hash_id_scope": "local", "source": {"format": "test", "digest": "none"},
}  # fmt: skip


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
        ([{**HEADER, "version": 3}], "version = 3, must be 2"),
        ([{**HEADER, "hash_id_scope": "global"}], "hash_id_scope = global, must be local"),
        ([{**HEADER, "block_size": 0}], "block_size = 0, must be a number of tokens"),
        ([HEADER, HEADER], "jsonl:2: schema = dynamo.agentic_mooncake, a header stands in the fir"),
        (
            [HEADER, {**row("a", "s"), "play_id": "p"}],
            "jsonl:2: not_before_ms = missing",
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


@pytest.fixture(scope="module")
def of_version_2():
    return read([OF_VERSION_2])


def test_version_2_keeps_plays_apart(of_version_2):
    assert of_version_2.sessions["session"].to_pylist() == ["first/main", "second/main"]
    # The second play has the first one's names and block ids, and nothing of its context.
    assert matched(of_version_2, "second/main") == [0]
    assert set(column(of_version_2, "model")) == {"m"}


def test_version_2_has_a_relation_and_a_delay_for_each_wait(of_version_2):
    trace = of_version_2
    (spawn,) = trace.spawns.to_pylist()
    assert (spawn["parent"], spawn["spawned_by"], spawn["return_requests"]) == (0, 0, [3])
    assert edges(trace, 1, "first/main") == [(0, "spawn", 0.0)]  # from the dispatch on
    assert edges(trace, 2, "first/main") == [(1, "tool", 0.25)]
    assert edges(trace, 3, "first/main") == [(0, "tool", 0.1), (2, "return", 0.02)]
    # A barrier orders; it returns nothing.
    assert edges(trace, 4, "first/main") == [(2, "tool", 0.0), (3, "tool", 1.5)]
    assert column(trace, "start_s", "first/main") == [0.0, 0.03, 0.3, 0.4, 2.0]


def test_version_2_matches_blocks_of_its_own_size(of_version_2):
    assert inputs(of_version_2, "first/main") == [64, 32, 48, 96, 128]
    assert matched(of_version_2, "first/main") == [0, 0, 36, 74, 106]
    filled = of_version_2.quality.to_json()["filled"]["delay_s"]
    assert filled == {"after another request's start: taken from its end on": 1}


@settings(deadline=None, max_examples=80)
@given(st.data(), st.sampled_from([FIXTURE, OF_VERSION_2]))
def test_damaged(data, fixture):
    check_damaged(data, fixture, "mooncake-agentic")

"""Gemini CLI sessions in both shapes: tokens, sub-agents, rewinds, command lines."""

import json
from pathlib import Path

import pytest
from damaged_logs import check_damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from read_traces import column, edges, inputs, matched, requests

from lachesis.errors import InputError
from lachesis.traces import read

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "traces" / "gemini_cli"
FIRST, LINES = "0001", "0002"


@pytest.fixture(scope="module")
def trace():
    return read([FIXTURE])


def test_thoughts_are_output_and_tool_tokens_are_input(trace):
    assert inputs(trace, FIRST) == [5000, 900, 5122, 5146]
    assert column(trace, "output_tokens", FIRST)[:3] == [100, 9, 20]
    assert column(trace, "reasoning_tokens", FIRST)[:3] == [60, 0, 0]
    assert column(trace, "reported_cached_tokens", FIRST)[:3] == [4000, 0, 5000]
    assert column(trace, "usage_source", FIRST)[-1] == "inferred"


def test_turns_and_observations(trace):
    assert column(trace, "turn", FIRST) == [0, 0, 0, 1]
    assert column(trace, "observations", FIRST) == [0, 0, 2, 0]
    assert trace.quality.ignored["command line: no part of a request"] == 1
    assert trace.quality.ignored["info message: no part of a request"] == 1


def test_a_tool_that_runs_an_agent_is_its_spawn(trace):
    (spawn,) = trace.spawns.to_pylist()
    assert spawn["instruction"] == "What is the boat made of?"
    assert spawn["agent_type"] == "codebase_investigator"
    assert (spawn["spawned_by"], spawn["return_requests"]) == (0, [2])
    assert edges(trace, 2, FIRST) == [(0, "tool", 1.0), (1, "return", 2.0)]


def test_lines_are_gathered_and_rewinds_keep_what_stood_before(trace):
    assert inputs(trace, LINES) == [3000, 3060, 3055]
    assert column(trace, "output_tokens", LINES) == [40, 12, 15]
    assert matched(trace, LINES)[2] == 3040
    assert column(trace, "turn", LINES) == [0, 1, 2]


def test_a_broken_value_is_named(tmp_path):
    path = next(FIXTURE.rglob("*.json"))
    document = json.loads(path.read_text())
    document["messages"][2]["tokens"]["input"] = -4
    (tmp_path / "session.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"messages\[2\]\.tokens\.input = -4, expected `int` >= 0"):
        read([tmp_path / "session.json"])


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_damage(data):
    check_damaged(data, FIXTURE, "gemini-cli")


@pytest.mark.samples
def test_a_real_session_agrees_with_a_plain_count(samples_dir):
    path = samples_dir / "codex_gemini_agtrace" / "gemini_session.json"
    messages = json.loads(path.read_text())["messages"]
    calls = [message["tokens"] for message in messages if message["type"] == "gemini"]
    trace = read([path])
    assert inputs(trace) == [each["input"] for each in calls]
    outputs = column(trace, "output_tokens")
    assert outputs == [each["output"] + each["thoughts"] for each in calls]
    assert sum(inputs(trace)) + sum(outputs) == sum(each["total"] for each in calls)
    assert [row["turn"] for row in requests(trace)] == [0, 0, 0, 0, 1, 1, 1]
    # Thoughts go after every call: what is matched is the input before, and the visible output.
    for number in (2, 3, 6):
        before = inputs(trace)[number - 1]
        assert before <= matched(trace)[number] <= before + calls[number - 1]["output"]

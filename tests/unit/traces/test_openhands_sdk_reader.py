"""Conversations of OpenHands' SDK: a request per response, tasks as sub-agents, condensation."""

import json
import shutil
from pathlib import Path

import pytest
from damaged_logs import check_damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from read_traces import column, inputs

from lachesis.errors import InputError
from lachesis.traces import read

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "traces" / "openhands_sdk"


@pytest.fixture(scope="module")
def trace():
    return read([FIXTURE])


def plain_usage():
    """Input and output of every response that an event names, by a plain look at the files."""
    found = {}
    for state in FIXTURE.rglob("base_state.json"):
        named = set()
        for file in (state.parent / "events").iterdir():
            event = json.loads(file.read_text())
            if event["kind"] in ("ActionEvent", "MessageEvent"):
                named.add(event.get("llm_response_id"))
        for metrics in json.loads(state.read_text())["stats"]["usage_to_metrics"].values():
            for usage in metrics["token_usages"]:
                if usage["response_id"] in named:
                    counts = (usage["prompt_tokens"], usage["completion_tokens"])
                    found[usage["response_id"]] = counts
    return found


def test_a_request_for_each_response_with_its_usage(trace):
    assert trace.sessions["session"].to_pylist() == ["3f2a"]
    counts = sorted(zip(inputs(trace), column(trace, "output_tokens"), strict=True))
    assert counts == sorted(plain_usage().values())
    assert trace.quality.to_json()["reported"] == 8
    assert set(column(trace, "model")) == {"example/model"}


def test_tasks_are_sub_agents_that_are_resumed_and_return(trace):
    (spawn,) = trace.spawns.to_pylist()
    assert (spawn["agent_type"], spawn["instruction"]) == ("code-explorer", "Find the declaration.")
    assert (spawn["spawned_by"], spawn["return_requests"]) == (1, [4, 6])
    assert column(trace, "agent") == [0, 0, 1, 1, 0, 1, 0, 0]
    assert column(trace, "turn") == [0, 0, 0, 0, 0, 0, 0, 1]


def test_a_condensation_ends_the_context(trace):
    closed = trace.segments.to_pylist()
    assert any(segment["closed_by"] == "compaction" for segment in closed)
    assert any(segment["class"] == "summary" for segment in closed)
    left_out = trace.quality.to_json()["excluded_reasons"]
    assert left_out == {"call of the condenser, on a prompt of its own": 1}


def test_actions_of_one_response_are_its_calls(trace):
    assert column(trace, "tools")[0] == ["environment", "environment"]
    assert column(trace, "observations")[1] == 2
    assert column(trace, "reasoning_tokens")[6] == 12


def test_agents_with_equal_prompts_share_them(trace):
    keys = {segment["prefix_key"] for segment in trace.segments.to_pylist()} - {None}
    assert len(keys) == 2  # the lead's and the sub-agent's, by kind


def test_events_alone_bring_their_state_along(trace):
    files = sorted((FIXTURE / "3f2a" / "events").iterdir())
    assert read(files).quality.to_json()["reported"] == 5


def test_without_a_state_everything_is_weighed(tmp_path):
    shutil.copytree(FIXTURE / "3f2a" / "subagents" / "77c0", tmp_path / "c")
    (tmp_path / "c" / "base_state.json").unlink()
    trace = read([tmp_path])
    assert trace.quality.to_json()["inferred"] == 3
    assert trace.sessions["session"].to_pylist() == ["c"]


def test_a_broken_event_names_file_and_field(tmp_path):
    shutil.copytree(FIXTURE / "3f2a", tmp_path / "c")
    broken = next((tmp_path / "c" / "events").glob("event-00002-*"))
    broken.write_text(broken.read_text().replace('"tool_name":"terminal"', '"tool_name":7'))
    with pytest.raises(InputError, match=r"event-00002.*tool_name = 7, expected `str \| null`"):
        read(sorted((tmp_path / "c" / "events").iterdir()))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_damaged(data):
    check_damaged(data, FIXTURE, "openhands-sdk")

"""OpenHands event streams: responses of several calls, delegates, condensation, run metrics."""

import json
from pathlib import Path

import pytest
from damaged_logs import check_damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from read_traces import closures, column, edges, inputs, matched, plain_matched, requests

from lachesis.errors import InputError
from lachesis.traces import read

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "traces" / "openhands_events"


@pytest.fixture(scope="module")
def trace():
    return read([FIXTURE])


def test_actions_of_one_response_are_one_request(trace):
    assert inputs(trace, "voyage") == [3000, 3200, 1200, 1300, 3300, 900]
    assert requests(trace, "voyage")[0]["tools"] == ["environment", "environment"]
    assert column(trace, "observations", "voyage") == [0, 2, 0, 1, 1, 1]
    assert column(trace, "model", "voyage") == ["oh-test"] * 6


def test_a_delegate_is_a_worker_until_its_observation(trace):
    (spawn,) = trace.spawns.to_pylist()
    assert (spawn["agent_type"], spawn["instruction"]) == ("BrowsingAgent", "Find the tide table.")
    assert (spawn["spawned_by"], spawn["return_requests"]) == (1, [4])
    assert column(trace, "agent", "voyage") == [0, 0, 1, 1, 0, 0]
    assert edges(trace, 4, "voyage") == [(1, "tool", 0.0), (3, "return", 0.5)]


def test_text_while_a_tool_runs_opens_no_turn_and_condensation_closes_the_context(trace):
    assert column(trace, "turn", "voyage") == [0] * 6
    assert closures(trace, "voyage")["lead", "compaction"] == 1
    assert trace.quality.filled["compaction request"]


def test_metrics_have_the_usage_that_responses_lack(trace):
    assert inputs(trace, "sea-1") == [800, 850]
    assert column(trace, "output_tokens", "sea-1") == [30, 9]
    assert column(trace, "observations", "sea-1") == [0, 1]


def test_a_stream_without_sources_and_usage_is_weighed(trace):
    assert column(trace, "usage_source", "output:2") == ["inferred", "inferred"]
    assert column(trace, "observations", "output:2") == [0, 1]
    assert edges(trace, 1, "output:2") == [(0, "tool", None)]


def test_a_finished_session_does_not_end_open(trace, tmp_path):
    assert trace.sessions["ends_open"].to_pylist() == [False, False, False]
    events = json.loads((FIXTURE / "voyage.json").read_text())[:15]
    (tmp_path / "cut.json").write_text(json.dumps(events))
    assert read([tmp_path]).sessions["ends_open"].to_pylist() == [True]


def test_a_broken_value_is_named(tmp_path):
    events = json.loads((FIXTURE / "voyage.json").read_text())
    events[5]["tool_call_metadata"]["model_response"]["usage"]["prompt_tokens"] = -1
    (tmp_path / "a.json").write_text(json.dumps(events))
    with pytest.raises(InputError, match=r"events\[5\]: .*prompt_tokens = -1, expected `int` >= 0"):
        read([tmp_path / "a.json"])


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_damage(data):
    check_damaged(data, FIXTURE, "openhands-events")


@pytest.mark.samples
@pytest.mark.parametrize("name", ["basic", "basic_gui_mode", "wrong_initial_state"])
def test_a_real_stream_agrees_with_a_plain_count(samples_dir, name):
    path = samples_dir / "openhands" / f"tests__runtime__trajs__{name}.json"
    calls = {}
    for event in json.loads(path.read_text()):
        response = (event.get("tool_call_metadata") or {}).get("model_response")
        if response:
            usage = response["usage"]
            calls[response["id"]] = (usage["prompt_tokens"], usage["completion_tokens"])
    trace = read([path])
    known = sum(source == "reported" for source in column(trace, "usage_source"))
    ours = list(zip(inputs(trace), column(trace, "output_tokens"), strict=True))
    assert ours[:known] == list(calls.values())
    plain = plain_matched(calls.values())
    assert matched(trace)[1:known] == plain[1:]


@pytest.mark.samples
def test_real_runs_have_a_request_for_every_cost(samples_dir):
    path = samples_dir / "openhands" / "tests__unit__resolver__mock_output__output.jsonl"
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    trace = read([path])
    assert [len(requests(trace, f"output:{n}")) for n in (1, 2)] == [
        len(run["metrics"]["costs"]) for run in runs
    ]

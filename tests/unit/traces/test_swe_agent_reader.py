"""SWE-agent and mini-SWE-agent trajectories: totals, execution times, queries, demonstrations."""

import json
from pathlib import Path

import pytest
from damaged_logs import check_damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from read_traces import closures, column, edges, inputs, matched, requests

from lachesis.errors import InputError
from lachesis.traces import read
from lachesis.traces.token_count import estimate_tokens

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "traces" / "swe_agent"


@pytest.fixture(scope="module")
def trace():
    return read([FIXTURE])


def test_totals_are_shared_out(trace):
    assert sum(inputs(trace, "sail")) == 2000
    assert sum(column(trace, "output_tokens", "sail")) == 90
    assert set(column(trace, "usage_source", "sail")) == {"recounted"}
    # Every input holds the input and the output before it.
    calls = list(zip(inputs(trace, "sail"), column(trace, "output_tokens", "sail"), strict=True))
    assert matched(trace, "sail")[1:] == [sum(call) for call in calls[:-1]]


def test_execution_times_are_the_delays(trace):
    assert [edges(trace, n, "sail") for n in (1, 2, 3)] == [
        [(0, "tool", 0.25)], [(1, "tool", 0.5)], [(2, "tool", 1.25)],
    ]  # fmt: skip
    assert edges(trace, 1, "unfinished") == [(0, "tool", None)]


def test_demonstrations_belong_to_the_prompt(trace):
    prompts = {
        row["session"]: row for row in trace.segments.to_pylist() if row["class"] == "prompt"
    }
    of_prompt = [
        span["tokens"]
        for span in trace.spans.to_pylist()
        if span["session"] == "sail" and span["segment"] == prompts["sail"]["segment"]
    ]
    # What the totals leave over the visible text is tool schemas, which the log does not have.
    assert of_prompt[0] == inputs(trace, "sail")[0] - estimate_tokens("Mend sail.py. " * 6)
    assert trace.quality.ignored["message of another agent than the main one"] == 2


def test_a_query_shows_what_was_rewritten(trace):
    assert closures(trace, "unfinished")["lead", "reset"] > 0
    assert trace.quality.excluded["step without a response"] == 1
    assert len(requests(trace, "unfinished")) == 4


def test_mini_trajectories_with_and_without_usage(trace):
    assert inputs(trace, "mast-usage") == [150, 190]
    assert column(trace, "usage_source", "mast-usage") == ["reported", "reported"]
    assert column(trace, "usage_source", "mast") == ["inferred", "inferred"]
    assert column(trace, "observations", "mast") == [0, 1]


def test_a_session_that_did_not_submit_ends_open(trace):
    rows = {row["session"]: row["ends_open"] for row in trace.sessions.to_pylist()}
    assert rows == {"mast-usage": False, "mast": False, "sail": False, "sail-unfinished": True}


def test_totals_of_other_calls_are_left_alone(tmp_path):
    document = json.loads((FIXTURE / "sail.traj").read_text())
    document["info"]["model_stats"]["api_calls"] = 9
    (tmp_path / "a.traj").write_text(json.dumps(document))
    assert set(column(read([tmp_path]), "usage_source")) == {"inferred"}


def test_a_broken_value_is_named(tmp_path):
    document = json.loads((FIXTURE / "sail.traj").read_text())
    document["trajectory"][1]["execution_time"] = "slow"
    (tmp_path / "a.traj").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"trajectory\[1\]\.execution_time = slow, expected"):
        read([tmp_path / "a.traj"])


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_damage(data):
    check_damaged(data, FIXTURE, "swe-agent")


@pytest.mark.samples
def test_real_trajectories_have_a_request_a_step(samples_dir):
    for path in sorted((samples_dir / "swe_agent").glob("*.traj")):
        document = json.loads(path.read_text())
        steps = document["trajectory"]
        trace = read([path])
        assert len(trace.requests) == len(steps)
        outputs = [estimate_tokens(step["response"]) for step in steps]
        assert column(trace, "output_tokens") == outputs
        seen = [0, *(estimate_tokens(step["observation"]) for step in steps)]
        grown = [sum(seen[: n + 1]) + sum(outputs[:n]) for n in range(len(steps))]
        assert [given - inputs(trace)[0] for given in inputs(trace)] == grown
        delays = [step.get("execution_time") for step in steps[:-1]]
        ours = [edges(trace, n)[0][2] for n in range(1, len(steps))]
        assert ours == delays


@pytest.mark.samples
def test_real_mini_trajectories_have_a_request_an_answer(samples_dir):
    for path in sorted((samples_dir / "swe_agent").glob("*.traj.json")):
        messages = json.loads(path.read_text())
        answers = [each for each in messages if each["role"] == "assistant"]
        assert len(read([path]).requests) == len(answers)

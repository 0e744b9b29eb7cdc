"""OpenHands completion logs: files gathered by prefix, missing files, calls written as text."""

import json
import shutil
from pathlib import Path

import pytest
from damaged_logs import check_damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from read_traces import closures, column, edges, inputs, matched

from lachesis.errors import InputError
from lachesis.traces import read

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "traces" / "openhands_completions"


@pytest.fixture(scope="module")
def trace():
    return read([FIXTURE])


def test_files_are_gathered_into_sessions_by_their_prefix(trace):
    assert sorted(trace.sessions["session"].to_pylist()) == ["bee-1", "conversation", "walk-1"]
    assert inputs(trace, "bee-1") == [400, 445, 540]
    assert inputs(trace, "walk-1") == [300, 340]
    assert column(trace, "output_tokens", "bee-1") == [30, 25, 20]
    assert column(trace, "reported_cached_tokens", "bee-1") == [0, 400, 470]


def test_a_call_whose_file_is_missing_is_counted(trace):
    reason = "call that only later inputs show: its log is missing"
    assert trace.quality.excluded == {reason: 1}
    assert column(trace, "observations", "bee-1") == [0, 1, 2]
    # What the missing call wrote comes with the next one that is there.
    assert matched(trace, "bee-1")[2] == 445 + 25


def test_reasoning_that_is_gone_was_stripped(trace):
    assert column(trace, "reasoning_tokens", "bee-1")[0] > 0
    assert closures(trace, "bee-1")["reasoning-laden", "request_end"] == 1
    assert matched(trace, "bee-1")[1] == 400


def test_an_answer_with_calls_written_out_is_matched_where_it_stands(trace):
    assert matched(trace, "walk-1") == [0, 322]
    assert column(trace, "observations", "walk-1") == [0, 1]
    assert column(trace, "turn", "walk-1") == [0, 0]


def test_times_and_ends(trace):
    assert edges(trace, 1, "bee-1") == [(0, "tool", 3.0)]
    ends = dict(zip(trace.sessions["session"].to_pylist(),
                    trace.sessions["ends_open"].to_pylist(), strict=True))  # fmt: skip
    assert ends == {"bee-1": False, "walk-1": False, "conversation": True}


def test_a_conversation_without_usage_is_counted_from_its_text(trace):
    assert column(trace, "usage_source", "conversation") == ["inferred", "inferred"]
    assert column(trace, "turn", "conversation") == [0, 1]


def test_a_repeated_completion_counts_once(tmp_path):
    shutil.copytree(FIXTURE, tmp_path / "logs")
    shutil.copy(FIXTURE / "bee-2.json", tmp_path / "logs" / "bee-2-again.json")
    again = read([tmp_path])
    assert len(again.requests) == 7
    assert again.quality.excluded["completion that was logged before"] == 1


def test_a_broken_value_is_named(tmp_path):
    log = json.loads((FIXTURE / "bee-1.json").read_text())
    log["response"]["usage"]["completion_tokens"] = "many"
    (tmp_path / "a.json").write_text(json.dumps(log))
    with pytest.raises(InputError, match=r"response\.usage\.completion_tokens = many, expected"):
        read([tmp_path / "a.json"])


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_damage(data):
    check_damaged(data, FIXTURE, "openhands-completions")


@pytest.mark.samples
def test_real_completions_agree_with_a_plain_count(samples_dir):
    folder = samples_dir / "openhands" / "sdk_llm_logs"
    logs = [json.loads(path.read_text()) for path in sorted(folder.glob("litellm*.json"))]
    logs.sort(key=lambda log: log["timestamp"])
    usages = [log["response"]["usage"] for log in logs]
    trace = read(sorted(folder.glob("litellm*.json")))
    assert len(trace) == 2
    assert inputs(trace) == [usage["prompt_tokens"] for usage in usages]
    assert column(trace, "output_tokens") == [usage["completion_tokens"] for usage in usages]
    # Every later input begins with the input and the output before it.
    calls = list(zip(inputs(trace), column(trace, "output_tokens"), strict=True))
    assert matched(trace) == [0, sum(calls[0]), sum(calls[1]), 0, sum(calls[3])]

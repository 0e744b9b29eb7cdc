"""BFCL message files: turns and calls without any text of the assistant."""

import json
from pathlib import Path

import pytest
from damaged_logs import check_damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from read_traces import column, edges, inputs, matched, requests

from lachesis.errors import InputError
from lachesis.traces import ReadOptions, read

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "traces" / "bfcl"
CHARACTERS = ReadOptions(count_tokens=len, tokenizer="characters")


def test_turns_calls_and_observations():
    trace = read([FIXTURE], options=CHARACTERS)
    assert trace.sessions["session"].to_pylist() == ["kitchen_0", "kitchen_1"]
    assert column(trace, "turn") == [0, 1, 0]
    assert column(trace, "observations") == [0, 2, 0]
    assert column(trace, "tools") == [["retrieval"] * 2, ["retrieval"], ["retrieval"]]
    assert edges(trace, 1, "kitchen_0") == [(0, "user", None)]
    assert set(column(trace, "usage_source")) == {"inferred"}


def test_every_message_is_counted_and_what_was_there_matches():
    trace = read([FIXTURE], options=CHARACTERS)
    calls = len("set_table(people=4)") + len("open(cupboard='blue')")
    assert column(trace, "output_tokens")[0] == calls
    assert matched(trace)[1] == inputs(trace)[0] + calls


def test_what_is_missing_is_counted():
    trace = read([FIXTURE])
    assert trace.quality.filled == {
        "request": {"missing: the answer that ends a turn": 3},
        "prompt_tokens": {"none: the file has neither system prompt nor schemas": 2},
    }


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([{"turn": 0, "role": "robot"}], r"messages\[0\].role = robot, invalid enum value 'robot'"),
        ([{"role": "user"}], r"messages\[0\].turn, is missing"),
        (
            [
                {"turn": 1, "role": "assistant", "tool_calls": [{"call": "f()"}]},
                {"turn": 0, "role": "assistant", "tool_calls": [{"call": "f()"}]},
            ],
            r"a\.jsonl:1: messages\[1\].turn = 0, must not fall",
        ),
    ],
)
def test_broken_messages(tmp_path, messages, message):
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"id": "x", "involved_classes": [], "messages": messages}))
    with pytest.raises(InputError, match=message):
        read([file])


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_damaged(data):
    check_damaged(data, FIXTURE, "bfcl")


@pytest.mark.samples
def test_real_sessions_agree_with_a_plain_count(samples_dir):
    for path in sorted((samples_dir / "bfcl_replay").glob("*.jsonl")):
        trace = read([path], options=CHARACTERS)
        count = total_in = total_out = total_matched = 0
        for line in path.read_text().splitlines():
            held = at_last_call = 0
            for message in json.loads(line)["messages"]:
                if message["role"] == "assistant":
                    made = sum(len(call["call"]) for call in message["tool_calls"])
                    count += 1
                    total_in += held
                    total_out += made
                    total_matched += at_last_call
                    held += made
                    at_last_call = held
                else:
                    held += len(message["content"])
        assert len(requests(trace)) == count
        assert sum(inputs(trace)) == total_in
        assert sum(column(trace, "output_tokens")) == total_out
        assert sum(matched(trace)) == total_matched

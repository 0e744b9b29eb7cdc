"""LMCache agent traces: prompts as text, answers put back, lines out of time order."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from damaged_logs import check_damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from read_traces import column, edges, inputs, matched, requests

from lachesis.errors import InputError
from lachesis.traces import ReadOptions, read

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "traces" / "lmcache"
CHARACTERS = ReadOptions(count_tokens=len, tokenizer="characters")


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(tmp_path, *rows):
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def row(at, prompt, output="fine", session="s"):
    return {"timestamp": at, "input": prompt, "output": output, "session_id": session}


def test_answers_that_prompts_leave_out_are_put_back():
    trace = read([FIXTURE / "bare.jsonl"], options=CHARACTERS)
    first, third, second = rows(FIXTURE / "bare.jsonl")
    made = [len(each["output"]) for each in (first, second, third)]
    assert column(trace, "output_tokens") == made
    assert inputs(trace) == [
        len(first["input"]),
        len(second["input"]) + made[0],
        len(third["input"]) + made[0] + made[1],
    ]
    assert matched(trace) == [
        0, len(first["input"]) + made[0], len(second["input"]) + made[0] + made[1]
    ]  # fmt: skip
    how = "answers that the prompt leaves out, put back in"
    assert trace.quality.filled["input_tokens"] == {how: 2}
    assert column(trace, "start_s") == [1.76e9, 1.76e9 + 4, 1.76e9 + 9]


def test_rendered_prompts_hold_their_answers():
    trace = read([FIXTURE / "chat.jsonl"], options=CHARACTERS)
    first, _, _, last = rows(FIXTURE / "chat.jsonl")
    label = len("\n\nassistant: ")
    assert inputs(trace)[2] == len(last["input"])
    # The label between belongs to what is new; what matches is prompt and answer.
    assert matched(trace)[2] == len(first["input"]) + len(first["output"])
    assert len(last["input"]) > matched(trace)[2] + label
    assert trace.quality.dropped == {"request whose prompt was not logged": 1}


def test_another_system_prompt_is_another_agent():
    trace = read([FIXTURE / "chat.jsonl"])
    assert column(trace, "agent") == [0, 1, 0]
    assert edges(trace, 2) == [(0, "tool", 0.0), (1, "return", 0.0)]
    assert trace.spawns["instruction_tokens"].to_pylist() == [15]


def test_prompts_agree_up_to_the_first_character_that_differs(tmp_path):
    file = write(tmp_path, row(0, "user: abcdef"), row(9, "user: abcXYZ"), row(19, "user: abcX"))
    trace = read([file], options=CHARACTERS)
    assert matched(trace) == [0, 9, 10]


def test_a_divergence_after_answers_were_put_back(tmp_path):
    prompts = ("aaaa", "aaaabbbb", "aaaabbXX")
    file = write(tmp_path, *(row(at, prompt) for at, prompt in enumerate(prompts)))
    trace = read([file], options=CHARACTERS)
    assert inputs(trace) == [4, 4 + 4 + 4, 4 + 4 + 4]
    assert matched(trace) == [0, 8, 4 + 4 + 2]


def test_sessions_may_interleave(tmp_path):
    lines = [row(at, f"user: {'x' * at}", session=f"s{at % 2}") for at in range(1, 7)]
    trace = read([write(tmp_path, *lines)])
    assert trace.sessions["session"].to_pylist() == ["s1", "s0"]
    assert len(requests(trace)) == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"timestamp": -1}, "timestamp = -1, expected `int` >= 0"),
        ({"input": None}, "input.*expected `str`, got `null`"),
        ({"session_id": 3}, "session_id = 3, expected `str`, got `int`"),
    ],
)
def test_broken_rows(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        read([write(tmp_path, {**row(0, "user: a"), **change})], format="lmcache")


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_damaged(data):
    check_damaged(data, FIXTURE, "lmcache")


@pytest.mark.samples
def test_real_miniswe_runs_agree_with_a_plain_count(samples_dir):
    for path in sorted((samples_dir / "lmcache_agent_trace" / "miniswe").glob("*.jsonl")):
        trace = read([path], options=CHARACTERS)
        calls = sorted(rows(path), key=lambda each: each["timestamp"])
        held = 0
        plain_inputs, plain_matched = [], [0]
        for call, following in pairwise([*calls, None]):
            plain_inputs.append(len(call["input"]) + held)
            held += len(call["output"])
            if following is not None:
                assert following["input"].startswith(call["input"])
                plain_matched.append(len(call["input"]) + held)
        assert inputs(trace) == plain_inputs
        assert matched(trace) == plain_matched


@pytest.mark.samples
def test_real_chats_agree_with_a_plain_count(samples_dir):
    for path in sorted((samples_dir / "lmcache_agent_trace" / "magagent").glob("*.jsonl")):
        trace = read([path], options=CHARACTERS)
        logged = rows(path)
        calls = [call for call in logged if call["input"]]
        assert len(requests(trace)) == len(calls)
        assert sum(inputs(trace)) == sum(len(call["input"]) for call in calls)
        assert sum(column(trace, "output_tokens")) == sum(len(call["output"]) for call in calls)
        left_out = trace.quality.dropped["request whose prompt was not logged"]
        assert left_out == len(logged) - len(calls)

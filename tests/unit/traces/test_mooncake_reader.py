"""Mooncake traces: sessions from chains of blocks, prompts that first inputs share."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from damaged_logs import check_damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from read_traces import column, edges, inputs, matched, requests

from lachesis.errors import InputError
from lachesis.traces import read

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "traces" / "mooncake"


def write(tmp_path, *rows):
    file = tmp_path / "trace.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def row(given_tokens=16, made=4, ids=(1,), **fields):
    return {
        "input_length": given_tokens, "output_length": made, "hash_ids": list(ids), **fields
    }  # fmt: skip


def test_requests_continue_the_session_whose_blocks_they_start_with():
    trace = read([FIXTURE])
    assert [row["session"] for row in requests(trace)] == [
        "request-1", "request-1", "request-2", "request-2", "request-5"
    ]  # fmt: skip
    assert inputs(trace) == [1300, 1600, 1200, 1290, 300]
    assert matched(trace) == [0, 1400, 0, 1250, 0]
    assert column(trace, "start_s") == [0.0, 2.0, 1.0, 3.0, 4.0]
    assert trace.quality.filled["session"] == {"recovered from chains of block hashes": 3}
    assert trace.quality.excluded == {"request without output": 1}


def test_what_first_inputs_share_is_one_prompt():
    trace = read([FIXTURE])
    keys = [row["prefix_key"] for row in trace.segments.to_pylist() if row["class"] == "prompt"]
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert trace.quality.filled["prompt_tokens"] == {"whole blocks that first inputs share": 2}


def test_session_ids_and_delays_are_taken_where_given(tmp_path):
    file = write(
        tmp_path,
        row(600, 10, [1, 2], session_id="a", timestamp=500),
        row(400, 10, [9], session_id="a", delay=2500),
        row(1100, 5, [9, 8, 7], session_id="b", timestamp=900),
    )
    trace = read([file])
    assert trace.sessions["session"].to_pylist() == ["a", "b"]
    assert matched(trace) == [0, 0, 0]
    assert edges(trace, 1, "a") == [(0, "tool", 2.5)]
    assert "session" not in trace.quality.filled


def test_without_hashes_every_request_stands_alone(tmp_path):
    rows = [{"timestamp": t, "input_length": 10, "output_length": 2} for t in (0, 5)]
    trace = read([write(tmp_path, *rows)])
    assert len(trace) == 2
    how = "none in the log: each request is one of its own"
    assert trace.quality.filled["session"] == {how: 2}


def test_without_lengths_blocks_are_whole(tmp_path):
    trace = read([write(tmp_path, {"output_length": 3, "hash_ids": [1, 2], "timestamp": 0})])
    assert inputs(trace) == [1024]
    assert column(trace, "usage_source") == ["inferred"]


def test_another_block_size_is_seen_from_the_lengths(tmp_path):
    file = write(tmp_path, row(60, 4, [1, 2, 3, 4]), row(80, 4, [1, 2, 3, 5, 6]))
    assert matched(read([file])) == [0, 64]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row(-1)], r"jsonl:1: input_length = -1, expected `int` >= 0"),
        ([row(made=None)], r"output_length = missing, is needed in every row"),
        ([row(2000), row(600, 1, [1, 2])], "no size of block fits the lengths"),
        ([row(ids=["x"])], r"hash_ids\[0\] = x, expected `int`, got `str`"),
        ([row(timestamp="now")], r"timestamp = now, expected `float"),
    ],
)
def test_broken_rows(tmp_path, rows, message):
    with pytest.raises(InputError, match=message):
        read([write(tmp_path, *rows)], format="mooncake")


def test_a_row_far_down_with_too_few_hashes(tmp_path):
    rows = [row(513 + t % 500, 1, [3 * t, 3 * t + 1]) for t in range(1001)]
    with pytest.raises(InputError, match=r":1002: hash_ids = 1 ids, must hold an id for each of t"):
        read([write(tmp_path, *rows, row(1600, 1, [7]))])


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_damaged(data):
    check_damaged(data, FIXTURE, "mooncake")


@pytest.mark.samples
def test_real_conversations_agree_with_a_plain_count(samples_dir):
    (path,) = (samples_dir / "mooncake").glob("*.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    trace = read([path])
    assert len(requests(trace)) == len(rows) == 3000
    assert sum(inputs(trace)) == sum(each["input_length"] for each in rows)
    assert sum(column(trace, "output_tokens")) == sum(each["output_length"] for each in rows)

    # Who continues whom, by walking over all sessions for every request.
    sessions, first_of = [], {}
    for each in rows:
        blocks = each["hash_ids"][: each["input_length"] // 512]
        fitting = [
            (len(held), -order, session)
            for order, (held, tokens, session, open_) in enumerate(sessions)
            if open_ and held and blocks[: len(held)] == held and tokens <= each["input_length"]
            and first_of[held[-1]] == session
        ]  # fmt: skip
        if fitting:
            session = max(fitting)[2]
            for old in sessions:
                old[3] = old[3] and old[2] != session
        else:
            session = len({old[2] for old in sessions})
        for block in blocks:
            first_of.setdefault(block, session)
        held_tokens = each["input_length"] + each["output_length"]
        sessions.append([blocks, held_tokens, session, True])
    assert len(trace) == len({session for *_, session, _ in sessions})
    by_session = {}
    for each, (*_, session, _) in zip(rows, sessions, strict=True):
        by_session.setdefault(session, []).append(each["input_length"] + each["output_length"])
    plain = sum(held for tokens in by_session.values() for held, _ in pairwise(tokens))
    assert sum(matched(trace)) == plain

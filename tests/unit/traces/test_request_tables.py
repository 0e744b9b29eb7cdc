"""Serving traces as tables of single requests: Azure, BurstGPT, Frontier and vidur."""

import csv
from pathlib import Path

import pytest
from damaged_tables import check_damaged_tables
from hypothesis import given, settings
from hypothesis import strategies as st
from read_traces import column, edges, inputs, matched, requests

from lachesis.errors import InputError
from lachesis.traces import read

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "traces"
ALONE = {"none in the log: each request is one of its own": 2}


def test_azure_requests_stand_alone():
    trace = read([FIXTURES / "azure_llm"])
    assert len(trace) == 2
    assert inputs(trace) == [480, 31]
    assert column(trace, "output_tokens") == [10, 8]
    assert column(trace, "start_s") == [1_700_158_623.5, 1_700_158_624.0]
    assert trace.quality.filled["session"] == ALONE
    assert trace.quality.excluded == {"request without output": 1}


def test_burstgpt_without_ids():
    trace = read([FIXTURES / "burstgpt" / "plain.csv"])
    assert column(trace, "model") == ["ChatGPT", "GPT-4"]
    assert trace.quality.filled["session"] == ALONE


def test_burstgpt_conversations():
    trace = read([FIXTURES / "burstgpt" / "sessions.csv"])
    assert trace.sessions["session"].to_pylist() == ["b", "a"]
    assert column(trace, "turn", "a") == [0, 1]
    assert column(trace, "end_s", "a") == [7.5, 64.0]
    assert matched(trace, "a") == [0, 48]
    assert edges(trace, 1, "a") == [(0, "user", 52.5)]


def test_frontier_with_hashes():
    trace = read([FIXTURES / "frontier" / "prefix.csv"])
    assert trace.sessions["session"].to_pylist() == ["7", "8"]
    assert matched(trace, "7") == [0, 40]
    assert edges(trace, 1, "7") == [(0, "tool", 2.5)]


def test_frontier_gives_only_what_is_new_in_session_mode():
    trace = read([FIXTURES / "frontier" / "session.csv"])
    assert inputs(trace) == [32, 56]
    assert matched(trace) == [0, 48]
    how = "what is new and what the session held"
    assert trace.quality.filled["input_tokens"] == {how: 1}


def test_whole_inputs_are_taken_as_they_are(tmp_path):
    file = tmp_path / "whole.csv"
    file.write_text(
        "arrived_at,num_prefill_tokens,num_decode_tokens,session_id\n0,32,16,7\n9,60,8,7\n"
    )
    assert inputs(read([file])) == [32, 60]


def test_sessions_are_recovered_from_hashes_alone(tmp_path):
    file = tmp_path / "chains.csv"
    file.write_text(
        "arrived_at,num_prefill_tokens,num_decode_tokens,block_hash_ids\n"
        "0,32,4,1|2\n1,32,4,5|6\n2,48,4,1|2|3\n"
    )
    trace = read([file])
    assert len(trace) == 2
    assert trace.quality.filled["session"] == {"recovered from chains of block hashes": 2}


def test_vidur_requests_stand_alone():
    trace = read([FIXTURES / "frontier" / "vidur.csv"])
    assert inputs(trace) == [2000, 310]
    assert trace.quality.filled["session"] == ALONE


@pytest.mark.parametrize(
    ("format", "text", "message"),
    [
        ("azure-llm", "TIMESTAMP,ContextTokens,GeneratedTokens\n1,-3,1\n",
         r"t\.csv:2: ContextTokens = -3, must not be negative"),
        ("azure-llm", f"TIMESTAMP,ContextTokens,GeneratedTokens\n1,{2**63},1\n",
         f"ContextTokens = {2**63}, must be at most 2147483647"),
        ("azure-llm", "TIMESTAMP,ContextTokens,GeneratedTokens\n\ufeff,3,1\n",
         "TIMESTAMP = .*, must be seconds or a date and time"),
        ("azure-llm", "TIMESTAMP,ContextTokens,GeneratedTokens\nsoon,3,1\n",
         "TIMESTAMP = soon, must be seconds or a date and time"),
        ("azure-llm", "TIMESTAMP,ContextTokens,GeneratedTokens\n1,,1\n",
         "ContextTokens = missing, is needed in every row"),
        ("azure-llm", "TIMESTAMP,ContextTokens,GeneratedTokens\n1,1.5,1\n",
         "ContextTokens = 1.5, must be a whole number"),
        ("burstgpt", "Timestamp,Request tokens,Response tokens,Elapsed time\n1,2,3,-1\n",
         "Elapsed time = -1, must not be negative"),
        ("burstgpt", "Timestamp,Session ID,Request tokens,Response tokens\n1,,2,3\n",
         "Session ID = missing, is needed in every row"),
        ("frontier", "num_prefill_tokens,num_decode_tokens,block_hash_ids\n32,1,a|b\n",
         r"block_hash_ids = a\|b, must be whole numbers between bars"),
        ("frontier", "num_prefill_tokens,num_decode_tokens,session_id\n32,inf,1\n",
         "num_decode_tokens = inf, must be a finite number"),
        ("frontier", "num_prefill_tokens,num_decode_tokens,session_id,session_id\n3,1,1,1\n",
         "column session_id, stands there twice"),
    ],
)  # fmt: skip
def test_broken_cells(tmp_path, format, text, message):
    file = tmp_path / "t.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read([file], format=format)


def test_columns_without_a_meaning_are_counted(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("arrived_at,num_prefill_tokens,num_decode_tokens,priority\n0,3,1,2\n")
    assert read([file]).quality.ignored == {"column priority": 1}


@pytest.mark.parametrize(
    ("folder", "format"),
    [("azure_llm", "azure-llm"), ("burstgpt", "burstgpt"), ("frontier", "frontier")],
)
@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_damaged(folder, format, data):
    check_damaged_tables(data, FIXTURES / folder, format)


@pytest.mark.samples
def test_real_azure_requests(samples_dir):
    (path,) = (samples_dir / "azure_llm").glob("*.csv")
    with path.open() as stream:
        rows = list(csv.DictReader(stream))
    trace = read([path])
    assert len(requests(trace)) == len(rows) == len(trace)
    assert sum(inputs(trace)) == sum(int(row["ContextTokens"]) for row in rows)
    assert sum(column(trace, "output_tokens")) == sum(int(row["GeneratedTokens"]) for row in rows)
    assert sum(matched(trace)) == 0

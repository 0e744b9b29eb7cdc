"""pi sessions: aborted and failed calls, compaction, branches in files and in trees, sub-agents."""

import json
from pathlib import Path

import pytest
from damaged_logs import check_damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from read_traces import closures, column, edges, inputs, matched, plain_matched, requests

from lachesis.errors import InputError
from lachesis.traces import read

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "traces" / "pi"
ORIGIN, BRANCH, TREE = "0001", "0002", "0003"


@pytest.fixture(scope="module")
def trace():
    return read([FIXTURE])


def test_usage_includes_what_the_cache_held(trace):
    assert inputs(trace, ORIGIN) == [2010, 2095, 2148, 2154, 2214, 2266, 2202]
    assert column(trace, "output_tokens", ORIGIN) == [60, 20, 4, 0, 30, 12, 9]
    assert column(trace, "reported_cached_tokens", ORIGIN)[:3] == [0, 2010, 2115]
    assert column(trace, "reasoning_tokens", ORIGIN)[0] == 4
    assert matched(trace, ORIGIN)[1:3] == [2070, 2115]


def test_aborted_calls_are_kept_and_refused_ones_left_out(trace):
    assert column(trace, "status", ORIGIN) == ["ok", "ok", "aborted", "aborted", "ok", "ok", "ok"]
    assert column(trace, "usage_source", ORIGIN)[3] == "inferred"
    assert trace.quality.excluded["failed call that wrote nothing"] == 1


def test_steering_opens_no_turn(trace):
    assert column(trace, "turn", ORIGIN) == [0, 0, 1, 2, 3, 3, 4]
    assert edges(trace, 5, ORIGIN) == [(4, "tool", 4.0)]


def test_compaction_leaves_a_summary(trace):
    found = closures(trace, ORIGIN)
    assert found["lead", "compaction"] == found["summary", "session_end"] == 1


def test_a_branch_repeats_nothing(trace):
    assert inputs(trace, BRANCH) == [2148]
    assert trace.quality.excluded["call repeated by a branched session"] == 2
    assert len(read([FIXTURE / "2026-04-02_branch.jsonl"]).requests) == 3


def test_a_tree_rewinds_to_where_the_branch_begins(trace):
    assert inputs(trace, TREE) == [1510, 700, 1572, 1594, 1589]
    assert matched(trace, TREE)[4] == 1582
    assert closures(trace, TREE)["lead", "reset"] == 1


def test_sub_agents_in_tool_details(trace):
    (spawn,) = trace.spawns.to_pylist()
    assert (spawn["agent_type"], spawn["instruction"]) == ("scout", "Find stones.")
    assert (spawn["spawned_by"], spawn["return_requests"]) == (0, [2])


def test_a_broken_value_is_named(tmp_path):
    text = (FIXTURE / "2026-04-02_origin.jsonl").read_text().replace('"output": 60', '"output": []')
    (tmp_path / "s.jsonl").write_text(text)
    with pytest.raises(InputError, match=r"jsonl:3: message\.usage\.output = \[\], expected `int`"):
        read([tmp_path / "s.jsonl"])


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_damage(data):
    check_damaged(data, FIXTURE, "pi")


@pytest.mark.samples
def test_a_real_session_agrees_with_a_plain_count(samples_dir):
    path = samples_dir / "pi_coding_agent" / "before-compaction.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    messages = [row["message"] for row in rows if row["type"] == "message"]
    calls = [
        (sum(message["usage"][key] for key in ("input", "cacheRead", "cacheWrite")),
         message["usage"]["output"], message["stopReason"])
        for message in messages if message["role"] == "assistant"
    ]  # fmt: skip
    counted = [(given, made) for given, made, _ in calls if given]
    trace = read([path])
    ours = [
        (given, row["output_tokens"])
        for given, row in zip(inputs(trace), requests(trace), strict=True)
        if row["usage_source"] == "reported"
    ]
    assert ours == counted
    assert len(trace.requests) == sum(why != "error" for *_, why in calls)
    assert column(trace, "status").count("aborted") == sum(why == "aborted" for *_, why in calls)
    assert closures(trace)["lead", "compaction"] == 2
    known = [row for row in requests(trace) if row["usage_source"] == "reported"]
    ours_matched = [matched(trace)[row["request"]] for row in known]
    held = plain_matched(counted)
    agree = sum(
        mine == plain for mine, plain in zip(ours_matched, held, strict=True) if plain is not None
    )
    # They differ where a call without usage wrote the input first, which the plain rule misses.
    assert agree >= len(known) - 2 * column(trace, "usage_source").count("inferred")
    # Taking the provider's hits for the matched prefix, far more would count as written.
    written = sum(inputs(trace)) - sum(matched(trace))
    by_cache = sum(
        given - row["reported_cached_tokens"]
        for given, row in zip(inputs(trace), requests(trace), strict=True)
        if row["reported_cached_tokens"] is not None
    )
    assert by_cache > 1.5 * written

"""Codex rollouts: usages, sub-agents, reviews, aborts, rollbacks, compaction; forks; old orders."""

import json
from pathlib import Path

import pytest
from damaged_logs import check_damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from read_traces import closures, column, edges, inputs, matched, plain_matched, requests

from lachesis.errors import InputError
from lachesis.traces import read

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "traces" / "codex"
LEAD = FIXTURE / "rollout-2026-04-02T08-00-00-lead.jsonl"
SESSION = "0001"


@pytest.fixture(scope="module")
def trace():
    return read([FIXTURE])


def test_a_usage_is_a_request_and_its_repeat_is_none(trace):
    assert inputs(trace, SESSION) == [
        4000, 4200, 4480, 2000, 2100, 4600, 4633, 4700, 4650, 4700, 4300, 1500, 4400,
    ]  # fmt: skip
    assert column(trace, "agent", SESSION) == [0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 2, 0]
    assert column(trace, "output_tokens", SESSION)[:6] == [120, 200, 40, 60, 30, 30]
    assert column(trace, "reasoning_tokens", SESSION)[:4] == [64, 0, 0, 20]
    assert column(trace, "reported_cached_tokens", SESSION)[:3] == [0, 4000, 4200]
    assert trace.quality.ignored["token_count that repeats an earlier one"] == 4
    assert trace.quality.ignored["token_count without counts"] == 1


def test_turns_are_opened_by_people_and_tools_are_recorded(trace):
    assert column(trace, "turn", SESSION) == [0, 0, 0, 0, 0, 0, 1, 2, 3, 3, 4, 4, 5]
    assert column(trace, "observations", SESSION) == [0, 1, 2, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert requests(trace, SESSION)[1]["tools"] == ["spawn", "spawn"]
    assert edges(trace, 1, SESSION) == [(0, "tool", 1.0)]


def test_sub_agents_hang_under_the_call_that_started_them_and_return(trace):
    explorer, review = trace.spawns.to_pylist()
    assert explorer["instruction"] == "Look at the liner and say where it leaks."
    assert (explorer["agent_type"], explorer["role"]) == ("explorer", "worker")
    assert (explorer["spawned_by"], explorer["return_requests"]) == (1, [5])
    assert (review["role"], review["instruction"]) == ("reviewer", "Review the mended liner.")
    assert (review["spawned_by"], review["return_requests"]) == (10, [12])
    assert trace.quality.orphan_subagents == 0
    assert len(trace) == 2


def test_boundaries(trace):
    aborted = requests(trace, SESSION)[6]
    assert (aborted["status"], aborted["output_tokens"]) == ("aborted", 0)
    assert aborted["usage_source"] == "inferred"
    found = closures(trace, SESSION)
    assert found["lead", "reset"] == 1  # the turn that was rolled back
    assert found["lead", "compaction"] == 1
    assert found["summary", "session_end"] == 1
    assert found["worker", "subagent_return"] == found["reviewer", "subagent_return"] == 1
    # The call after the rollback keeps what stood before the turn that was taken back.
    assert matched(trace, SESSION)[8] == 4633
    # After the compaction: the prompt, and the summary is the compacting call's output.
    assert trace.segments.filter(trace.segments["class"].to_numpy(False) == "summary")


def test_usage_that_comes_before_its_items_is_theirs(trace):
    assert inputs(trace, "0004") == [1000, 1150]
    assert column(trace, "observations", "0004") == [0, 2]
    assert requests(trace, "0004")[0]["tools"] == ["environment", "environment"]


def test_the_sub_agents_alone_are_orphans():
    alone = read([path for path in sorted(FIXTURE.glob("*.jsonl")) if path != LEAD])
    assert alone.quality.orphan_subagents == 2
    assert len(alone) == 3


def test_a_fork_counts_copied_calls_once(tmp_path):
    rows = [json.loads(line) for line in LEAD.read_text().splitlines()]
    origin = tmp_path / "rollout-a.jsonl"
    origin.write_text("\n".join(json.dumps(row) for row in rows))
    meta = json.loads(json.dumps(rows[0]))
    meta["payload"] |= {"id": "fork", "forked_from_id": rows[0]["payload"]["id"]}
    meta["timestamp"] = "2026-04-02T09:00:00.000Z"
    (tmp_path / "rollout-b.jsonl").write_text("\n".join(json.dumps(r) for r in [meta, *rows]))
    both = read([tmp_path])
    assert both.quality.excluded["call that a fork copied from its origin"] == 9
    assert both.quality.ignored["session_meta of the thread that was forked"] == 1


def test_a_response_without_items_is_known_by_its_usage(tmp_path):
    rows = LEAD.read_text().splitlines()
    kept = [row for row in rows if '"assistant"' not in row]
    (tmp_path / "rollout.jsonl").write_text("\n".join(kept))
    trace = read([tmp_path])
    assert inputs(trace)[3] == 4600
    assert trace.quality.filled["request"]


def test_the_first_version_without_envelope_reads(tmp_path):
    lines = [
        {"id": "old", "timestamp": "2025-06-01T08:00:00Z", "instructions": "Mend."},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go"}]},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "a"},
        {"type": "function_call_output", "call_id": "a", "output": "done"},
        {"type": "message", "role": "assistant", "content": "It is mended."},
    ]
    (tmp_path / "rollout-old.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    trace = read([tmp_path])
    assert column(trace, "usage_source") == ["inferred", "inferred"]
    assert column(trace, "observations") == [0, 1]


def test_a_broken_value_is_named(tmp_path):
    text = LEAD.read_text().replace('"input_tokens": 4000', '"input_tokens": "4k"', 1)
    (tmp_path / "rollout.jsonl").write_text(text)
    with pytest.raises(InputError, match=r"jsonl:11: payload\.info\..*input_tokens = 4k, expec"):
        read([tmp_path / "rollout.jsonl"])
    (tmp_path / "rollout.jsonl").write_text(LEAD.read_text()[:-40])
    assert read([tmp_path]).quality.dropped["truncated last line"] == 1


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_damage(data):
    check_damaged(data, FIXTURE, "codex")


def _raw_calls(path):
    seen, calls = set(), []
    for line in path.read_text().splitlines():
        info = json.loads(line)["payload"].get("info")
        if info and (key := json.dumps(info["total_token_usage"])) not in seen:
            seen.add(key)
            last = info["last_token_usage"]
            calls.append((last["input_tokens"], last["output_tokens"]))
    return calls


@pytest.mark.samples
def test_a_real_session_agrees_with_a_plain_count(samples_dir):
    path = samples_dir / "codex_gemini_agtrace" / "codex_session.jsonl"
    calls = _raw_calls(path)
    trace = read([path])
    assert len(calls) == 7
    assert list(zip(inputs(trace), column(trace, "output_tokens"), strict=True)) == calls
    for ours, theirs in zip(matched(trace), plain_matched(calls), strict=True):
        assert theirs is None or ours == theirs
    # Not what the provider's cache held, which is a third less.
    assert sum(matched(trace)) > sum(column(trace, "reported_cached_tokens")[1:])


@pytest.mark.samples
def test_real_reviews_are_matched_or_orphans(samples_dir):
    folder = samples_dir / "codex_gemini_agtrace"
    trace = read(sorted(folder.glob("codex_*.jsonl")) + sorted(folder.glob("rollout-*.jsonl")))
    assert trace.spawns["agent_type"].to_pylist() == ["review", "review"]
    assert trace.quality.orphan_subagents == 1
    assert len(trace) == 3

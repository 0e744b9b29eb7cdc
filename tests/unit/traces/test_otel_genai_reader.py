"""OpenTelemetry GenAI spans: plain and OTLP, parallel agents, retries, reported and counted."""

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

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "traces" / "otel_genai"
SYSTEM = {"role": "system", "content": "You are brief."}


def user(text):
    return {"role": "user", "content": text}


def said(text):
    return {"role": "assistant", "content": text}


def span(name, start, end, messages=None, output="done", **attributes):
    attributes = {
        "gen_ai.operation.name": "chat", "session.id": "s", "gen_ai.output.text": output,
        **attributes,
    }  # fmt: skip
    if messages is not None:
        attributes["gen_ai.input.messages"] = json.dumps(messages)
    return {
        "trace_id": "t", "span_id": name, "start_time": f"2026-05-01T10:00:{start:06.3f}",
        "end_time": f"2026-05-01T10:00:{end:06.3f}", "attributes": attributes,
        "status": {"code": 1},
    }  # fmt: skip


def write(tmp_path, *spans, name="trace.json"):
    file = tmp_path / name
    file.write_text(json.dumps({"trace_id": "t", "spans": list(spans)}))
    return file


@pytest.fixture(scope="module")
def trace():
    return read([FIXTURE])


def test_usage_is_reported(trace):
    assert inputs(trace, "conv") == [40, 20, 22, 66, 66]
    assert column(trace, "output_tokens", "conv") == [9, 7, 8, 0, 10]
    assert column(trace, "reported_cached_tokens", "conv")[4] == 40


def test_services_are_agents_that_return_to_the_first(trace):
    assert column(trace, "agent", "conv") == [0, 1, 2, 0, 0]
    assert trace.spawns["agent_type"].to_pylist() == ["catalogue", "archive"]
    assert trace.spawns["return_requests"].to_pylist() == [[3], [3]]
    assert [edge[:2] for edge in edges(trace, 3, "conv")] == [
        (0, "user"), (1, "return"), (2, "return"),
    ]  # fmt: skip


def test_a_retry_is_one_more_request_and_opens_no_turn(trace):
    assert column(trace, "status", "conv") == ["ok", "ok", "ok", "error", "ok"]
    assert column(trace, "turn", "conv") == [0, 0, 0, 1, 1]
    assert matched(trace, "conv") == [0, 0, 0, 49, 66]


def test_otlp_lines_with_conventional_parts(trace):
    assert column(trace, "tools", "feed") == [["retrieval"], []]
    assert column(trace, "reasoning_tokens", "feed") == [6, 0]
    assert matched(trace, "feed") == [0, 44]
    assert column(trace, "start_s", "feed") == [1_777_600_001.0, 1_777_600_005.0]
    assert trace.quality.ignored["span of operation invoke_agent"] == 1


def test_requests_that_overlap_are_contexts_apart(tmp_path):
    first = [SYSTEM, user("a")]
    spans = [
        span("1", 0, 1, first, "x"),
        span("2", 2, 4, [*first, said("x"), user("b")], "y"),
        span("3", 3, 5, [*first, said("x"), user("c")], "z"),
        span("4", 6, 7, [*first, said("x"), user("b"), said("y"), user("z, then?")], "w"),
    ]
    trace = read([write(tmp_path, *spans)])
    assert column(trace, "agent") == [0, 0, 1, 0]
    assert trace.spawns["spawned_by"].to_pylist() == [0]
    assert trace.spawns["return_requests"].to_pylist() == [[3]]
    assert set(column(trace, "usage_source")) == {"inferred"}


def test_fan_in_of_requests_with_nothing_in_common(tmp_path):
    spans = [
        span("1", 0, 1, [user("one")], "uno"),
        span("2", 2, 4, [user("two")], "due"),
        span("3", 3, 5, [user("three")], "tre"),
        span("4", 6, 7, [user("one"), said("uno"), user("two: due, three: tre")], "sei"),
    ]
    trace = read([write(tmp_path, *spans)])
    assert column(trace, "agent") == [0, 1, 2, 0]
    assert [edge[:2] for edge in edges(trace, 3)] == [(0, "user"), (1, "return"), (2, "return")]


def test_a_rewritten_context_stays_the_leads(tmp_path):
    spans = [
        span("1", 0, 1, [SYSTEM, user("long story")], "x"),
        span("2", 2, 3, [SYSTEM, user("summary of it all")], "y"),
    ]
    trace = read([write(tmp_path, *spans)])
    assert column(trace, "agent") == [0, 0]
    assert trace.quality.adjusted


def test_the_agent_may_stand_above(tmp_path):
    above = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "scout"}
    spans = [
        span("1", 0, 1, [user("go")], "x", **{"gen_ai.agent.name": "lead"}),
        {**span("up", 2, 5), "attributes": above},
        {**span("2", 3, 4, [user("look")], "seen"), "parent_span_id": "up"},
    ]
    trace = read([write(tmp_path, *spans)])
    assert trace.spawns["agent_type"].to_pylist() == ["scout"]


def test_an_agent_that_is_asked_again_is_resumed(tmp_path):
    asked = [{"role": "system", "content": "scout"}, user("look")]
    spans = [
        span("1", 0, 1, [user("go")], "x", **{"gen_ai.agent.name": "lead"}),
        span("2", 2, 3, asked, "seen", **{"gen_ai.agent.name": "scout"}),
        span("3", 4, 5, [user("go"), said("x"), user("seen")], "more",
             **{"gen_ai.agent.name": "lead"}),
        span("4", 6, 7, [*asked, said("seen"), user("again")], "gone",
             **{"gen_ai.agent.name": "scout"}),
        span("5", 8, 9, [user("go"), said("x"), user("seen"), said("more"), user("gone")], "end",
             **{"gen_ai.agent.name": "lead"}),
    ]  # fmt: skip
    trace = read([write(tmp_path, *spans)])
    assert trace.spawns["return_requests"].to_pylist() == [[2, 4]]
    assert [edge[:2] for edge in edges(trace, 3)] == [(1, "tool"), (2, "spawn")]


def test_requests_before_any_parent_are_orphans(tmp_path):
    spans = [
        span("1", 0, 9, [user("go")], **{"gen_ai.agent.name": "lead"}),
        span("2", 1, 3, [user("look")], **{"gen_ai.agent.name": "scout"}),
    ]
    trace = read([write(tmp_path, *spans)])
    assert trace.sessions["session"].to_pylist() == ["s", "s/scout"]
    assert trace.quality.orphan_subagents == 1


def test_a_hit_beyond_the_input_is_added_to_it(tmp_path):
    usage = {
        "gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 2,
        "gen_ai.usage.cache_read.input_tokens": 100,
    }  # fmt: skip
    trace = read([write(tmp_path, span("1", 0, 1, [user("go")], **usage))])
    assert inputs(trace) == [105]
    assert column(trace, "usage_source") == ["recounted"]


def test_numbered_attributes(tmp_path):
    attributes = {
        "session.id": "s", "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "go",
        "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.tool_calls.0.name": "Bash",
        "gen_ai.completion.0.tool_calls.0.arguments": "{}",
    }  # fmt: skip
    trace = read([write(tmp_path, {**span("1", 0, 1), "attributes": attributes})])
    assert column(trace, "tools") == [["environment"]]
    assert column(trace, "usage_source") == ["inferred"]


def test_a_span_that_stands_there_twice_is_dropped(tmp_path):
    one = span("1", 0, 1, [user("go")])
    assert read([write(tmp_path, one, one)]).quality.dropped == {"span that stands there twice": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start_time": "noon"}, r"spans\[0\]: start_time = noon, must be an ISO 8601 time"),
        ({"start_time": None}, r"spans\[0\]: start_time, is missing"),
        ({"end_time": "2026-05-01T09:00:00"}, "end_time = .*, must not be before the start"),
        ({"attributes": 3}, r"attributes = 3, must be an object or a list"),
    ],
)
def test_broken_spans(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        read([write(tmp_path, {**span("1", 0, 1), **change})], format="otel-genai")


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("gen_ai.usage.input_tokens", -3, "input_tokens = -3, must be a whole number from 0"),
        ("gen_ai.input.messages", "[{", r"gen_ai.input.messages, not valid JSON"),
        ("gen_ai.input.messages", [3], "must be a list of messages"),
    ],
)
def test_broken_attributes(tmp_path, attribute, value, message):
    with pytest.raises(InputError, match=message):
        read([write(tmp_path, span("1", 0, 1, **{attribute: value}))])


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_damaged(data):
    check_damaged(data, FIXTURE, "otel-genai")


@pytest.mark.samples
def test_real_spans_agree_with_a_plain_count(samples_dir):
    folder = samples_dir / "otel_genai_spans"
    trace = read([folder])
    total_in = total_out = count = chained = 0
    for path in sorted(folder.glob("*.json")):
        spans = json.loads(path.read_text())["spans"]
        for each in spans:
            messages = json.loads(each["attributes"]["gen_ai.input.messages"])
            total_in += sum(-(-len(message["content"]) // 4) for message in messages)
            total_out += -(-len(each["attributes"]["gen_ai.output.text"]) // 4)
            count += 1
        if path.stem == "simple_chain_alt":
            for before, after in pairwise(spans):
                held = json.loads(before["attributes"]["gen_ai.input.messages"])
                held.append({"content": before["attributes"]["gen_ai.output.text"]})
                assert len(json.loads(after["attributes"]["gen_ai.input.messages"])) > len(held)
                chained += sum(-(-len(message["content"]) // 4) for message in held)
    assert len(requests(trace)) == count == 42
    assert sum(inputs(trace)) == total_in
    assert sum(column(trace, "output_tokens")) == total_out
    assert sum(matched(read([folder / "simple_chain_alt.json"]))) == chained

"""Contexts of Claude Code sessions: compactions, rewinds, and sessions that resume others."""

from collections import Counter

from claude_code_log import Transcript, closures, one_call, requests, text

from lachesis.traces.readers.registry import read


def compacted(tmp_path, *, with_call: bool):
    log = Transcript()
    one_call(log)
    log.user("more", 10.0)
    before = log.call("m2", 11.0, [text("word " * 50)], given=(900, 0, 0), output=60)
    boundary = log.row(
        "system", 30.0, subtype="compact_boundary", parent=None, logicalParentUuid=before
    )
    log.user(
        "This session is being continued from a previous conversation. Summary: …",
        30.0,
        parent=boundary,
        isCompactSummary=True,
    )
    log.call("m3", 31.0, [text("on")], given=(300, 0, 0), output=5)
    if with_call:
        agent = Transcript(agent="acompact-1")
        agent.user("Your task is to create a detailed summary", 20.0, parent=before)
        agent.call("c1", 25.0, [text("s" * 350)], given=(990, 0, 0), output=2, stop=None)
        agent.write(tmp_path / "s1" / "subagents" / "agent-acompact-1.jsonl")
    return log.write(tmp_path / "s1.jsonl")


def test_a_compaction_call_is_a_request_of_the_agent_that_it_compacts(tmp_path):
    trace = read([compacted(tmp_path, with_call=True)])
    rows = requests(trace)
    assert [row["agent"] for row in rows] == [0, 0, 0, 0]
    assert [row["turn"] for row in rows] == [0, 1, 1, 1]
    assert rows[2]["output_tokens"] == 103
    assert len(trace.spawns) == 0
    closed = Counter(closures(trace))
    assert closed["lead", "compaction"] == 1
    assert closed["summary", "session_end"] == 1
    (summary,) = [
        span
        for span in trace.spans.to_pylist()
        if trace.segments.to_pylist()[span["segment"]]["class"] == "summary"
    ]
    assert (summary["request"], summary["tokens"], summary["written"]) == (3, 103, True)


def test_a_compaction_without_its_call_is_seen_from_the_summary_and_counted(tmp_path):
    trace = read([compacted(tmp_path, with_call=False)])
    assert len(requests(trace)) == 3
    assert ("lead", "compaction") in closures(trace)
    assert sum(trace.quality.filled["compaction request"].values()) == 1


def test_a_rewind_is_a_reset_where_the_input_shrank(tmp_path):
    log = Transcript()
    log.user("one", 0.0)
    first = log.call("m1", 1.0, [text("a")], given=(100, 0, 0), output=20)
    log.user("two", 10.0)
    log.call("m2", 11.0, [text("b")], given=(125, 0, 0), output=55)
    log.user("instead", 60.0, parent=first)
    log.call("m3", 61.0, [text("c")], given=(170, 0, 0), output=30)
    trace = read([log.write(tmp_path / "s1.jsonl")])
    assert "reset" in trace.segments.column("closed_by").to_pylist()
    matched = [
        span["tokens"]
        for span in trace.spans.to_pylist()
        if span["request"] == 2 and not span["written"]
    ]
    assert sum(matched) == 120  # what stood there when the first request had ended


def test_a_session_resumed_in_another_file_repeats_no_request(tmp_path):
    log = Transcript()
    one_call(log)
    log.write(tmp_path / "s1.jsonl")
    log.user("more", 100.0, sessionId="s2")
    log.call("m9", 101.0, [text("ok")], given=(150, 0, 120), output=3, sessionId="s2")
    log.write(tmp_path / "s2.jsonl")
    trace = read([tmp_path])
    assert [row["session"] for row in requests(trace)] == ["s1", "s2"]
    assert trace.sessions.column("starts_midway").to_pylist() == [False, True]
    assert trace.quality.dropped["row repeated by a resumed or forked session"] == 2

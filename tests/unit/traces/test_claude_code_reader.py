"""The Claude Code reader on transcripts written for one question each."""

import json
from collections import Counter

import pytest
from claude_code_log import Transcript, text, thinking, use

from lachesis.errors import InputError
from lachesis.traces.readers.protocol import ReadOptions
from lachesis.traces.readers.registry import read

START_S = 1_772_355_600.0  # 2026-03-01T09:00:00Z, where every transcript written here begins


def requests(trace, session=None):
    rows = trace.requests.to_pylist()
    return [row for row in rows if session is None or row["session"] == session]


def inputs(trace):
    """Input tokens of every request, from the spans."""
    found = Counter()
    for span in trace.spans.to_pylist():
        found[span["session"], span["request"]] += span["tokens"]
    return [found[row["session"], row["request"]] for row in trace.requests.to_pylist()]


def closures(trace):
    """Class and closing boundary of every segment."""
    return [(row["class"], row["closed_by"]) for row in trace.segments.to_pylist()]


def one_call(log: Transcript, at: float = 1.0, **options) -> None:
    log.user("mend it", 0.0)
    log.call("m1", at, [text("done")], given=(10, 90, 0), output=20, **options)


def test_lines_of_a_message_are_one_request_with_the_largest_output(tmp_path):
    log = Transcript()
    log.user("mend it", 0.0)
    log.call(
        "m1",
        2.0,
        [thinking("hm"), text("I look"), use("t1", command="ls")],
        given=(3, 50, 1000),
        output=[2, 180, 2],
        stop=None,
    )
    trace = read([log.write(tmp_path / "s1.jsonl")])
    (row,) = requests(trace)
    assert inputs(trace) == [1053]
    assert row["output_tokens"] == 180
    assert row["reported_cached_tokens"] == 1000
    assert row["usage_source"] == "reported"
    assert row["tools"] == ["environment"]
    assert (row["start_s"], row["end_s"]) == (START_S, START_S + 4.0)


def test_a_placeholder_output_is_recounted_from_the_content(tmp_path):
    log = Transcript()
    log.user("mend it", 0.0)
    log.call("m1", 1.0, [text("x" * 700)], given=(100, 0, 0), output=2, stop=None)
    trace = read([log.write(tmp_path / "s1.jsonl")])
    (row,) = requests(trace)
    assert row["output_tokens"] == 203  # 700 bytes at 3.5 a token, and 3 for the message
    assert row["usage_source"] == "recounted"
    assert sum(trace.quality.filled["output_tokens"].values()) == 1
    counted = read(
        [tmp_path / "s1.jsonl"], options=ReadOptions(count_tokens=lambda said: len(said))
    )
    assert requests(counted)[0]["output_tokens"] == 703


def test_a_small_output_stands_where_the_message_was_stopped(tmp_path):
    log = Transcript()
    log.user("mend it", 0.0)
    log.call("m1", 1.0, [text("x" * 700)], given=(100, 0, 0), output=2, stop="max_tokens")
    (row,) = requests(read([log.write(tmp_path / "s1.jsonl")]))
    assert (row["output_tokens"], row["usage_source"]) == (2, "reported")


def test_a_recount_does_not_exceed_the_growth_of_the_next_input(tmp_path):
    log = Transcript()
    log.user("mend it", 0.0)
    log.call("m1", 1.0, [text("x" * 700)], given=(100, 0, 0), output=2, stop=None)
    log.user("and that", 50.0)
    log.call("m2", 51.0, [text("done")], given=(250, 0, 0), output=3)
    trace = read([log.write(tmp_path / "s1.jsonl")])
    assert requests(trace)[0]["output_tokens"] == 150
    assert "reset" not in trace.segments.column("closed_by").to_pylist()


def test_reasoning_is_weighed_or_what_hidden_thinking_leaves(tmp_path):
    log = Transcript()
    log.user("mend it", 0.0)
    log.call("m1", 1.0, [thinking("y" * 70), text("z" * 35)], given=(100, 0, 0), output=40)
    log.user("again", 9.0)
    log.call("m2", 10.0, [thinking(""), text("z" * 35)], given=(200, 0, 0), output=40)
    first, second = requests(read([log.write(tmp_path / "s1.jsonl")]))
    assert first["reasoning_tokens"] == 20
    assert second["reasoning_tokens"] == 40 - 13  # 10 for the text, 3 for the message


@pytest.mark.parametrize(
    ("said", "opens"),
    [
        ("go on", True),
        ([text("<ide_opened_file>a.py</ide_opened_file>"), text("go on")], True),
        ("<command-name>/init</command-name>", True),
        ("<task-notification><task-id>b1</task-id></task-notification>", False),
        ("[Request interrupted by user for tool use]", False),
        ("<local-command-stdout>ok</local-command-stdout>", False),
        ("<system-reminder>careful</system-reminder>", False),
        ([text("<ide_selection>line 3</ide_selection>")], False),
    ],
)
def test_only_what_a_person_typed_opens_a_turn(tmp_path, said, opens):
    log = Transcript()
    one_call(log)
    log.user(said, 60.0)
    log.call("m2", 61.0, [text("yes")], given=(150, 0, 0), output=2)
    rows = requests(read([log.write(tmp_path / "s1.jsonl")]))
    assert [row["turn"] for row in rows] == [0, int(opens)]
    (edge,) = rows[1]["after"]
    assert edge["kind"] == ("user" if opens else "tool")
    assert edge["delay_s"] == 59.0


def test_meta_rows_and_output_of_local_commands_open_no_turn(tmp_path):
    log = Transcript()
    one_call(log)
    log.user("<command-name>/cost</command-name>", 20.0)
    log.user("<local-command-stdout>1 $</local-command-stdout>", 20.0)
    log.user("Continue with the hook's findings", 30.0, isMeta=True)
    log.call("m2", 31.0, [text("yes")], given=(150, 0, 0), output=2)
    rows = requests(read([log.write(tmp_path / "s1.jsonl")]))
    assert [row["turn"] for row in rows] == [0, 0]


def test_tool_results_are_observations_and_their_wait_is_the_delay(tmp_path):
    log = Transcript()
    log.user("mend it", 0.0)
    log.call("m1", 1.0, [use("t1"), use("t2", "Grep")], given=(100, 0, 0), output=150)
    log.result("t1", "a", 2.5)
    log.result("t2", "b", 4.5)
    log.call("m2", 6.0, [text("done")], given=(300, 0, 0), output=5)
    first, second = requests(read([log.write(tmp_path / "s1.jsonl")]))
    assert first["tools"] == ["environment", "environment"]
    assert (first["observations"], second["observations"]) == (0, 2)
    assert second["after"] == [{"request": 0, "kind": "tool", "delay_s": 2.5}]


def with_subagent(tmp_path, *, layout="new", noted=True, background=False):
    log = Transcript()
    log.user("mend it", 0.0)
    spawn = use("t1", "Task", prompt="look around", subagent_type="Explore", description="d")
    log.call("m1", 1.0, [spawn], given=(100, 0, 0), output=90, stop="tool_use")
    agent = Transcript(agent="a1")
    agent.user("look around", 1.5)
    agent.call("n1", 3.0, [use("u1")], given=(40, 0, 0), output=60, stop="tool_use")
    agent.result("u1", "x", 4.0)
    agent.call("n2", 6.0, [text("found")], given=(130, 0, 0), output=7)
    about = {"agentId": "a1", "status": "completed"} if noted else None
    if background:
        about = {"agentId": "a1", "isAsync": True, "status": "async_launched"}
        log.result("t1", "Async agent launched successfully.\nagentId: a1", 2.0, about)
        log.call("m2", 3.0, [text("meanwhile")], given=(250, 0, 0), output=9)
        log.user(
            "<task-notification><task-id>a1</task-id><status>completed</status>"
            "</task-notification>",
            6.5,
        )
    else:
        log.result("t1", "found", 6.5, about)
    log.call("m3", 8.0, [text("done")], given=(300, 0, 0), output=5)
    main = log.write(tmp_path / "s1.jsonl")
    place = tmp_path / "s1" / "subagents" if layout == "new" else tmp_path
    agent.write(place / "agent-a1.jsonl")
    return main


@pytest.mark.parametrize("layout", ["new", "old"])
def test_a_subagent_is_brought_along_and_hangs_between_spawn_and_return(tmp_path, layout):
    trace = read([with_subagent(tmp_path, layout=layout)])
    rows = requests(trace)
    assert [row["agent"] for row in rows] == [0, 1, 1, 0]
    assert rows[1]["after"] == [{"request": 0, "kind": "spawn", "delay_s": 0.5}]
    kinds = {(edge["request"], edge["kind"]): edge["delay_s"] for edge in rows[3]["after"]}
    assert kinds == {(0, "tool"): 0.0, (2, "return"): 0.5}
    (spawn,) = trace.spawns.to_pylist()
    assert spawn["instruction"] == "look around"
    assert spawn["agent_type"] == "Explore"
    assert (spawn["spawned_by"], spawn["return_requests"]) == (0, [3])
    assert rows[0]["tools"] == ["spawn"]
    assert trace.quality.orphan_subagents == 0


def test_without_a_note_the_prompt_ties_a_subagent_to_its_call(tmp_path):
    with_subagent(tmp_path, noted=False)
    trace = read([tmp_path])
    assert trace.spawns.column("spawned_by").to_pylist() == [0]
    assert len(trace.sessions) == 1


def test_a_background_agent_returns_with_its_notification(tmp_path):
    trace = read([with_subagent(tmp_path, background=True)])
    rows = requests(trace)
    (spawn,) = trace.spawns.to_pylist()
    last = max(row["request"] for row in rows if row["agent"] == 0)
    assert spawn["return_requests"] == [last]
    launch = next(row for row in rows if row["agent"] == 0 and row["request"] not in (0, last))
    assert all(edge["kind"] != "return" for edge in launch["after"])
    assert len({row["turn"] for row in rows}) == 1


def test_a_resumed_agent_waits_for_both_calls_and_returns_twice(tmp_path):
    log = Transcript()
    log.user("mend it", 0.0)
    done = {"agentId": "a1", "status": "completed"}
    log.call("m1", 1.0, [use("t1", "Agent", prompt="first")], given=(100, 0, 0), output=90)
    log.result("t1", "one", 10.0, done)
    log.call(
        "m2", 11.0, [use("t2", "Agent", prompt="second", resume="a1")], given=(250, 0, 0), output=90
    )
    log.result("t2", "two", 20.0, done)
    log.call("m3", 21.0, [text("done")], given=(400, 0, 0), output=4)
    agent = Transcript(agent="a1")
    agent.user("first", 2.0)
    agent.call("n1", 3.0, [text("one")], given=(40, 0, 0), output=6)
    agent.user("second", 12.0)
    agent.call("n2", 13.0, [text("two")], given=(60, 0, 0), output=6)
    main = log.write(tmp_path / "s1.jsonl")
    agent.write(tmp_path / "s1" / "subagents" / "agent-a1.jsonl")
    trace = read([main])
    rows = requests(trace)
    assert [row["agent"] for row in rows] == [0, 1, 0, 1, 0]
    assert {(edge["request"], edge["kind"]) for edge in rows[3]["after"]} >= {(2, "spawn")}
    (spawn,) = trace.spawns.to_pylist()
    assert spawn["return_requests"] == [2, 4]


def test_agents_of_a_workflow_hang_under_the_call_that_ran_it(tmp_path):
    log = Transcript()
    log.user("review it", 0.0)
    log.call("m1", 1.0, [use("t1", "Workflow", script="…")], given=(100, 0, 0), output=90)
    noted = {"isAsync": True, "status": "async_launched", "runId": "wf_1", "taskId": "task_1"}
    log.result("t1", "Workflow launched in background.", 1.5, noted)
    log.call("m2", 2.0, [text("wait")], given=(250, 0, 0), output=4)
    log.user("<task-notification><task-id>task_1</task-id><status>completed</status>", 20.0)
    log.call("m3", 21.0, [text("done")], given=(300, 0, 0), output=4)
    main = log.write(tmp_path / "s1.jsonl")
    for number in (1, 2):
        agent = Transcript(session="s1#x", agent=f"g{number}")
        agent.user(f"part {number}", 3.0 + number)
        agent.call(f"n{number}", 6.0, [text("ok")], given=(40, 0, 0), output=3)
        run = tmp_path / "s1" / "subagents" / "workflows" / "wf_1"
        agent.write(run / f"agent-g{number}.jsonl")
        (run / f"agent-g{number}.meta.json").write_text('{"agentType": "code-reviewer"}')
    trace = read([main])
    assert len(trace.sessions) == 1
    last = len(requests(trace)) - 1
    for spawn in trace.spawns.to_pylist():
        assert (spawn["spawned_by"], spawn["return_requests"]) == (0, [last])
        assert (spawn["role"], spawn["agent_type"]) == ("reviewer", "code-reviewer")


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


def test_what_is_no_request_is_left_out_and_counted(tmp_path):
    log = Transcript()
    log.row("progress", 0.0, data={"type": "hook_progress"})
    one_call(log)
    log.call("m2", 5.0, [text("No response requested.")], model="<synthetic>", stop="stop_sequence")
    log.call("m3", 6.0, [text("API Error: 500")], isApiErrorMessage=True)
    log.row("queue-operation", 7.0, operation="enqueue", content="check again")
    main = log.write(tmp_path / "s1.jsonl")
    warm = Transcript(agent="w1")
    warm.user("Warmup", 0.0)
    warm.call("w", 1.0, [text("ready")], given=(50, 0, 0), output=5)
    warm.write(tmp_path / "agent-w1.jsonl")
    bare = Transcript(agent="w2")
    bare.call("v", 1.0, [text("ready")], given=(50, 0, 0), output=5)
    bare.write(tmp_path / "agent-w2.jsonl")
    (tmp_path / "empty.jsonl").write_text("")
    trace = read([tmp_path])
    assert len(requests(trace)) == 1
    assert trace.quality.excluded == {
        "synthetic message": 1,
        "API error": 1,
        "warm-up": 1,
        "warm-up (an answer to no logged prompt)": 1,
    }
    assert trace.quality.dropped == {
        "progress row: no part of a request": 1,
        "queue-operation row: no part of a request": 1,
    }
    assert [name.endswith("empty.jsonl") for name in trace.quality.skipped] == [True]
    assert main.exists()


def test_an_interrupted_answer_is_aborted_and_keeps_what_it_wrote(tmp_path):
    log = Transcript()
    log.user("mend it", 0.0)
    log.call("m1", 1.0, [text("x" * 70)], given=(100, 0, 0), output=1, stop=None)
    log.user([text("[Request interrupted by user]")], 3.0)
    log.user("no, that", 9.0)
    log.call("m2", 10.0, [text("yes")], given=(150, 0, 0), output=2)
    rows = requests(read([log.write(tmp_path / "s1.jsonl")]))
    assert [row["status"] for row in rows] == ["aborted", "ok"]
    assert rows[0]["output_tokens"] == 23
    assert [row["turn"] for row in rows] == [0, 1]


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


def test_an_orphan_is_a_session_of_its_own(tmp_path):
    agent = Transcript(session="gone", agent="a1")
    agent.user("look around", 0.0)
    agent.call("n1", 1.0, [text("found")], given=(40, 0, 0), output=6)
    trace = read([agent.write(tmp_path / "agent-a1.jsonl")])
    assert trace.sessions.column("session").to_pylist() == ["gone/a1"]
    assert trace.quality.orphan_subagents == 1


def test_inline_side_chains_are_subagents(tmp_path):
    log = Transcript()
    log.user("mend it", 0.0)
    spawn = use("t1", "Task", prompt="look around")
    after = log.call("m1", 1.0, [spawn], given=(100, 0, 0), output=90)
    log.user("look around", 2.0, parent=None, isSidechain=True)
    log.call("n1", 3.0, [text("found")], given=(40, 0, 0), output=6, isSidechain=True)
    log.result("t1", "found", 5.0, parent=after)
    log.call("m2", 6.0, [text("done")], given=(250, 0, 0), output=4)
    trace = read([log.write(tmp_path / "s1.jsonl")])
    assert [row["agent"] for row in requests(trace)] == [0, 1, 0]
    assert trace.spawns.column("spawned_by").to_pylist() == [0]


def test_prompt_length_is_the_first_hit_else_what_visible_text_leaves(tmp_path):
    hit = Transcript(session="s1")
    hit.user("x" * 350, 0.0)
    hit.call("m1", 1.0, [text("a")], given=(10, 100, 700), output=5)
    hit.write(tmp_path / "s1.jsonl")
    miss = Transcript(session="s2")
    miss.user("x" * 350, 0.0)
    miss.call("m2", 1.0, [text("a")], given=(10, 790, 0), output=5)
    miss.write(tmp_path / "s2.jsonl")
    trace = read([tmp_path])
    prompts = {}
    for span in trace.spans.to_pylist():
        segment = next(
            s
            for s in trace.segments.to_pylist()
            if (s["session"], s["segment"]) == (span["session"], span["segment"])
        )
        if segment["class"] == "prompt":
            prompts[span["session"]] = span["tokens"]
    assert prompts == {"s1": 700, "s2": 700}
    assert trace.quality.filled["prompt_tokens"] == {
        "the first cache hit": 1,
        "input less visible text": 1,
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda u: u.update(output_tokens=-3), "output_tokens = -3, expected `int` >= 0"),
        (lambda u: u.update(input_tokens="7"), "input_tokens = 7, expected"),
        (lambda u: u.update(input_tokens=2**31), "expected `int` <= 2147483647"),
        (lambda u: u.update(cache_read_input_tokens=1.5), "expected `int"),
    ],
)
def test_a_wrong_count_names_file_line_field_and_rule(tmp_path, change, said):
    log = Transcript()
    one_call(log)
    change(log.rows[1]["message"]["usage"])
    path = log.write(tmp_path / "s1.jsonl")
    with pytest.raises(InputError) as fault:
        read([path])
    assert f"{path}:2: message.usage." in str(fault.value)
    assert said in str(fault.value)
    assert "\n" not in str(fault.value)


def test_a_truncated_last_line_is_dropped_and_one_before_it_is_an_error(tmp_path):
    log = Transcript()
    one_call(log)
    log.user("more", 9.0)
    lines = log.lines()
    path = tmp_path / "s1.jsonl"
    path.write_text("\n".join([*lines[:2], lines[2][:40]]))
    trace = read([path])
    assert trace.quality.dropped == {f"truncated last line ({path}:3)": 1}
    path.write_text("\n".join([lines[0], lines[1][:60], lines[2]]))
    with pytest.raises(InputError, match=r"s1\.jsonl:2: not valid JSON"):
        read([path])


def test_text_that_comes_with_tool_results_was_queued_and_opens_no_turn(tmp_path):
    log = Transcript()
    log.user("mend it", 0.0)
    log.call("m1", 1.0, [use("t1")], given=(100, 0, 0), output=90)
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
    log.user([result, text("and hurry")], 3.0)
    log.call("m2", 4.0, [text("done")], given=(250, 0, 0), output=4)
    rows = requests(read([log.write(tmp_path / "s1.jsonl")]))
    assert [row["turn"] for row in rows] == [0, 0]
    assert rows[1]["observations"] == 1


def test_an_instruction_that_comes_wrapped_still_ties_a_subagent_to_its_call(tmp_path):
    log = Transcript()
    log.user("mend it", 0.0)
    log.call("m1", 1.0, [use("t1", "Task", prompt="look around")], given=(100, 0, 0), output=90)
    log.result("t1", "found", 9.0)
    log.call("m2", 10.0, [text("done")], given=(250, 0, 0), output=4)
    agent = Transcript(agent="a1")
    agent.user('<teammate-message teammate_id="lead">look around</teammate-message>', 2.0)
    agent.call("n1", 3.0, [text("found")], given=(40, 0, 0), output=6)
    main = log.write(tmp_path / "s1.jsonl")
    agent.write(tmp_path / "s1" / "subagents" / "agent-a1.jsonl")
    trace = read([main])
    assert trace.spawns.column("spawned_by").to_pylist() == [0]


def test_a_notification_that_was_only_queued_returns_with_the_next_call(tmp_path):
    main = with_subagent(tmp_path, background=True)
    lines = [json.loads(line) for line in main.read_text().splitlines()]
    notice = next(row for row in lines if "<task-notification>" in str(row["message"]["content"]))
    queued = {
        "type": "queue-operation",
        "operation": "enqueue",
        "timestamp": notice["timestamp"],
        "content": notice["message"]["content"],
    }
    typed = {**notice, "message": {"role": "user", "content": "and now?"}}
    typed["timestamp"] = "2026-03-01T09:00:07Z"
    at = lines.index(notice)
    lines[at : at + 1] = [queued, typed]
    main.write_text("".join(json.dumps(row) + "\n" for row in lines))
    trace = read([main])
    (spawn,) = trace.spawns.to_pylist()
    assert spawn["return_requests"] == [len(trace.requests) - 1]
    assert {row["turn"] for row in requests(trace)} == {0, 1}


def test_side_calls_of_the_harness_are_left_out(tmp_path):
    log = Transcript()
    one_call(log)
    main = log.write(tmp_path / "s1.jsonl")
    side = Transcript(agent="aprompt_suggestion-1")
    side.user("suggest", 5.0)
    side.call("p1", 6.0, [text("try that")], given=(120, 0, 0), output=4)
    side.write(tmp_path / "s1" / "subagents" / "agent-aprompt_suggestion-1.jsonl")
    trace = read([main])
    assert len(requests(trace)) == 1
    assert trace.quality.excluded == {"side call of the harness on a copy of the context": 1}


def test_a_spawned_agent_without_a_log_is_counted_and_its_run_is_the_delay(tmp_path):
    main = with_subagent(tmp_path)
    (tmp_path / "s1" / "subagents" / "agent-a1.jsonl").unlink()
    trace = read([main])
    assert trace.quality.excluded == {"sub-agent that was spawned but has no log": 1}
    assert requests(trace)[1]["after"] == [{"request": 0, "kind": "tool", "delay_s": 5.5}]


def test_agents_that_spawn_each_other_stand_for_themselves(tmp_path):
    for name, other in (("a1", "a2"), ("a2", "a1")):
        agent = Transcript(session="s1", agent=name)
        agent.user("look", 0.0)
        spawn = use(f"t-{name}", "Task", prompt="look")
        agent.call(f"n-{name}", 1.0, [spawn], given=(40, 0, 0), output=60)
        agent.result(f"t-{name}", "x", 2.0, {"agentId": other, "status": "completed"})
        agent.call(f"k-{name}", 3.0, [text("ok")], given=(140, 0, 0), output=2)
        agent.write(tmp_path / f"agent-{name}.jsonl")
    trace = read([tmp_path])
    assert len(trace.requests) == 4
    assert trace.quality.orphan_subagents >= 1


def test_reading_twice_gives_the_same_tables(tmp_path):
    main = with_subagent(tmp_path, background=True)
    first, second = read([main]), read([main])
    for table in ("sessions", "requests", "spans", "segments", "spawns"):
        assert getattr(first, table).equals(getattr(second, table))

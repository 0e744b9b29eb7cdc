"""Sub-agents of Claude Code: who started them, where they return, and who has no lead."""

import json

import pytest
from claude_code_log import Transcript, requests, text, use, with_subagent

from lachesis.traces.readers.registry import read


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

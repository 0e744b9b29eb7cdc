"""Turns of Claude Code transcripts: what a person typed, what waits, what is left out."""

import pytest
from claude_code_log import Transcript, one_call, requests, text, use

from lachesis.traces.readers.registry import read


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

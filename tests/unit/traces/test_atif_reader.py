"""The ATIF reader: sub-agents in three shapes, continuations, a converted transcript."""

import json
from pathlib import Path

import pytest

from lachesis.errors import InputError
from lachesis.traces.readers.registry import read

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "traces"
ATIF = FIXTURES / "atif"
BIRDHOUSE = FIXTURES / "claude_code" / "projects" / "-work-birdhouse"


def rows(trace):
    return trace.requests.to_pylist()


def write(folder, steps, *, name="x.trajectory.json", agent="tester", **fields):
    document = {
        "schema_version": "ATIF-v1.7",
        "session_id": "x",
        "agent": {"name": agent, "version": "1"},
        "steps": steps,
        **fields,
    }
    path = folder / name
    path.write_text(json.dumps(document))
    return path


def step(message="ok", given=100, output=10, **fields):
    metrics = {"prompt_tokens": given, "completion_tokens": output}
    return {"source": "agent", "message": message, "metrics": metrics, **fields}


def user(message="go on", **fields):
    return {"source": "user", "message": message, **fields}


def test_embedded_and_referenced_subagents_and_a_continuation_are_one_session():
    trace = read([ATIF / "lamp.trajectory.json"])
    assert trace.sessions.column("session").to_pylist() == ["lamp"]
    assert [row["agent"] for row in rows(trace)] == [0, 1, 2, 0, 0]
    assert [row["turn"] for row in rows(trace)] == [0, 0, 0, 0, 1]
    for spawn, instruction in zip(
        trace.spawns.to_pylist(),
        ["Look at the north side.", "Look at the south side."],
        strict=True,
    ):
        assert (spawn["spawned_by"], spawn["return_requests"]) == (0, [3])
        assert spawn["instruction"] == instruction
        assert spawn["agent_type"] == "helper"
    assert rows(trace)[0]["reasoning_tokens"] == 12
    assert rows(trace)[3]["reported_cached_tokens"] == 400
    assert trace.quality.excluded == {"copied step": 1, "step without a model call": 1}


def test_files_of_one_session_given_together_are_read_once():
    trace = read([ATIF])
    assert sorted(trace.sessions.column("session").to_pylist()) == [
        "0b1c2d3e-0000-4000-8000-000000000001",
        "lamp",
    ]


def test_a_converted_transcript_gives_the_same_requests_as_the_transcript():
    original = read([BIRDHOUSE / "0b1c2d3e-0000-4000-8000-000000000001.jsonl"])
    converted = read([ATIF / "birdhouse.trajectory.json"])
    lost = {"start_s", "end_s", "after", "source"}
    for table in ("sessions", "requests", "spans", "segments", "spawns"):
        ours, theirs = getattr(original, table), getattr(converted, table)
        for column in set(ours.column_names) - lost:
            assert ours.column(column).to_pylist() == theirs.column(column).to_pylist(), column
    for ours, theirs in zip(rows(original), rows(converted), strict=True):
        edges = [
            [(edge["request"], edge["kind"]) for edge in row["after"]] for row in (ours, theirs)
        ]
        assert edges[0] == edges[1]
    assert (
        original.quality.requests == converted.quality.requests == {"reported": 5, "recounted": 3}
    )


def test_a_session_that_is_there_in_both_formats_is_read_once():
    trace = read([FIXTURES / "atif", BIRDHOUSE])
    assert sorted(trace.sessions.column("session").to_pylist()) == [
        "0b1c2d3e-0000-4000-8000-000000000001",
        "lamp",
    ]
    assert "its session was read from the transcript" in trace.quality.skipped.values()
    assert any(edge["delay_s"] for row in rows(trace) for edge in row["after"])


def test_delays_of_tools_are_drawn_and_those_of_users_recorded(tmp_path):
    call = {"tool_call_id": "c", "function_name": "bash", "arguments": {}}
    answered = {"results": [{"source_call_id": "c", "content": "x"}]}
    path = write(
        tmp_path,
        [
            user(timestamp="2026-03-01T09:00:00Z"),
            step(timestamp="2026-03-01T09:00:02Z", tool_calls=[call], observation=answered),
            step(given=150, timestamp="2026-03-01T09:00:09Z"),
            user(timestamp="2026-03-01T09:01:09Z"),
            step(given=200, timestamp="2026-03-01T09:01:12Z"),
        ],
    )
    first, second, third = rows(read([path]))
    nine_s = 1_772_355_600.0  # 2026-03-01T09:00:00Z
    assert (first["start_s"], first["end_s"]) == (nine_s, nine_s + 2.0)
    assert second["after"] == [{"request": 0, "kind": "tool", "delay_s": None}]
    assert second["start_s"] is None
    assert third["after"] == [{"request": 1, "kind": "user", "delay_s": 60.0}]


def test_an_empty_result_that_was_left_out_is_restored_and_counted(tmp_path):
    calls = [
        {"tool_call_id": name, "function_name": "bash", "arguments": {}} for name in ("c1", "c2")
    ]
    answered = {"results": [{"source_call_id": "c2", "content": "x"}]}
    path = write(tmp_path, [user(), step(tool_calls=calls, observation=answered), step(given=150)])
    trace = read([path])
    assert rows(trace)[1]["observations"] == 2
    assert sum(trace.quality.filled["observations"].values()) == 1


def test_steps_that_repeat_a_call_or_have_no_usage_of_their_own_are_no_requests(tmp_path):
    call = {"tool_call_id": "c1", "function_name": "bash", "arguments": {}}
    again = {
        "source": "agent",
        "message": "",
        "tool_calls": [call],
        "observation": {"results": [{"source_call_id": "c1", "content": "x"}]},
    }
    bare = {"source": "agent", "message": "thinking aloud"}
    path = write(tmp_path, [user(), step(tool_calls=[call]), again, bare, step(given=140)])
    trace = read([path])
    assert [row["observations"] for row in rows(trace)] == [0, 1]
    assert trace.quality.excluded == {
        "step that repeats a call": 1,
        "step without usage among steps with usage": 1,
    }


def test_a_trajectory_without_any_usage_is_inferred_from_its_texts(tmp_path):
    bare = {"source": "agent", "message": "y" * 350}
    path = write(tmp_path, [user("x" * 700), bare, user("z" * 70), bare])
    trace = read([path])
    assert [row["usage_source"] for row in rows(trace)] == ["inferred", "inferred"]
    assert [row["output_tokens"] for row in rows(trace)] == [103, 103]
    totals = [0, 0]
    for span in trace.spans.to_pylist():
        totals[span["request"]] += span["tokens"]
    assert totals == [200, 200 + 103 + 20]


def test_a_summarisation_by_helpers_compacts_the_lead(tmp_path):
    write(tmp_path, [user("Summarise"), step(given=60)], name="s.json", session_id="s")
    refs = [{"session_id": "s", "trajectory_path": "s.json"}]
    handoff = {
        "source": "system",
        "message": "Performed context summarization and handoff to continue task.",
        "observation": {"results": [{"subagent_trajectory_ref": refs}]},
    }
    path = write(
        tmp_path, [user(), step(given=900), handoff, user("Here is the summary"), step(given=120)]
    )
    trace = read([path])
    assert [row["agent"] for row in rows(trace)] == [0, 1, 0]
    assert [row["turn"] for row in rows(trace)] == [0, 0, 0]
    closed = [(row["class"], row["closed_by"]) for row in trace.segments.to_pylist()]
    assert ("lead", "compaction") in closed
    assert ("worker", "subagent_return") in closed
    (spawn,) = trace.spawns.to_pylist()
    assert (spawn["spawned_by"], spawn["return_requests"]) == (0, [2])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(schema_version="ATIF-v2.0"), "schema_version = ATIF-v2.0, must be"),
        (lambda d: d.update(steps={}), "steps = {}, expected `array`"),
        (
            lambda d: d["steps"][1]["metrics"].update(prompt_tokens=-1),
            "steps[1].metrics.prompt_tokens = -1, expected `int` >= 0",
        ),
        (lambda d: d["steps"][0].update(source="robot"), "steps[0].source = robot, invalid enum"),
        (lambda d: d["steps"][0].pop("source"), "steps[0].source, is missing"),
        (lambda d: d["steps"][0].update(timestamp="noon"), "steps[0].timestamp = noon"),
    ],
)
def test_a_broken_field_is_named_with_its_place_value_and_rule(tmp_path, change, said):
    path = write(tmp_path, [user(), step()])
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(InputError) as fault:
        read([path])
    assert str(path) in str(fault.value)
    assert said in str(fault.value)


def test_a_truncated_document_is_an_error_with_its_line(tmp_path):
    content = (ATIF / "birdhouse.trajectory.json").read_text()
    path = tmp_path / "cut.trajectory.json"
    path.write_text(content[: len(content) // 2])
    line = path.read_text().count("\n") + 1
    with pytest.raises(InputError, match=rf"cut\.trajectory\.json:{line}: not valid JSON"):
        read([path])

"""Damaged transcripts and trajectories end in a trace or in one clear line of error."""

import tempfile
from pathlib import Path

import pytest
from claude_code_log import Transcript, one_call, text, use
from damaged_logs import damaged_document, damaged_lines, reads_or_says_why
from hypothesis import given, settings
from hypothesis import strategies as st

from lachesis.errors import InputError
from lachesis.traces.readers.registry import read

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "traces"
PROJECT = FIXTURES / "claude_code" / "projects" / "-work-birdhouse"
FILES = {
    str(path.relative_to(PROJECT)): path.read_text().splitlines()
    for path in sorted(PROJECT.rglob("*.jsonl"))
}
TRAJECTORIES = [path.read_text() for path in sorted((FIXTURES / "atif").glob("*.json"))]


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_a_damaged_project_folder(data):
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in FILES.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(data.draw(damaged_lines(lines), label=name)))
        reads_or_says_why(folder)


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_a_damaged_trajectory(data):
    with tempfile.TemporaryDirectory() as folder:
        for number, content in enumerate(TRAJECTORIES):
            content = data.draw(damaged_document(content), label=str(number))
            (Path(folder) / f"{number}.trajectory.json").write_text(content)
        reads_or_says_why(folder)


@settings(deadline=None, max_examples=60)
@given(st.permutations(range(len(FILES["0b1c2d3e-0000-4000-8000-000000000001.jsonl"]))))
def test_rows_in_any_order_lose_no_request(order):
    name = "0b1c2d3e-0000-4000-8000-000000000001.jsonl"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_text("\n".join(FILES[name][index] for index in order))
        trace = read([folder])
    assert len(trace.requests) == 6
    assert trace.quality.excluded["API error"] == 1


@pytest.mark.parametrize("place", ["arguments", "result", "noted"])
def test_broken_letters_in_what_is_decoded_late_are_an_error_of_their_row(tmp_path, place):
    marked = {key: "@" if key == place else "" for key in ("arguments", "result", "noted")}
    log = Transcript()
    log.user("mend it", 0.0)
    log.call("m1", 1.0, [use("t1", "Task", prompt=marked["arguments"])], output=90)
    log.result("t1", marked["result"], 2.0, {"agentId": "a1", "status": marked["noted"]})
    log.call("m2", 3.0, [text("done")], given=(200, 0, 0), output=5)
    path = log.write(tmp_path / "s1.jsonl")
    path.write_bytes(path.read_bytes().replace(b"@", b"\xff"))
    row = 2 if place == "arguments" else 3
    with pytest.raises(InputError, match=rf"s1\.jsonl:{row}: not valid JSON: Invalid UTF-8"):
        read([path])


def test_a_field_of_another_shape_is_an_error_only_where_it_is_used(tmp_path):
    log = Transcript()
    one_call(log)
    log.row("progress", 2.0, message=3, version=4, toolUseResult={}, operation=[], attachment="a")
    log.row("from-a-later-version", 2.0, message=None, content={"a": 1}, isMeta="no")
    trace = read([log.write(tmp_path / "s1.jsonl")])
    assert sum(trace.quality.dropped.values()) == 2
    log.row("attachment", 3.0, attachment="a")
    with pytest.raises(InputError, match=r"s1\.jsonl:5: attachment = a, expected `object"):
        read([log.write(tmp_path / "s1.jsonl")])
    log.rows[-1] = {**log.rows[0], "uuid": "again", "message": None}
    with pytest.raises(InputError, match=r"s1\.jsonl:5: message, expected `object`, got `null`"):
        read([log.write(tmp_path / "s1.jsonl")])
    del log.rows[-1]["message"]
    with pytest.raises(InputError, match=r"s1\.jsonl:5: message, is missing"):
        read([log.write(tmp_path / "s1.jsonl")])

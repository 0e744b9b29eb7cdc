"""Damaged transcripts and trajectories end in a trace or in one clear line of error."""

import tempfile
from pathlib import Path

from damaged_logs import damaged_document, damaged_lines, reads_or_says_why
from hypothesis import given, settings
from hypothesis import strategies as st

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

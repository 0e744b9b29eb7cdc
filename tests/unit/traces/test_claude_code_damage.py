"""Damaged transcripts and trajectories end in a trace or in one clear line of error."""

import contextlib
import json
import tempfile
from pathlib import Path

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

junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.just([]),
    st.just({}),
    st.just([{"type": "text"}, {"type": "tool_result"}]),
    st.just({"agentId": "d4e5f6", "task": 3}),
)


def places(value, path=()):
    """Every place in a JSON value, inner ones included."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += places(inner, (*path, index))
    return found


def replaced(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@st.composite
def damaged_lines(draw, lines):
    lines = list(lines)
    for _ in range(draw(st.integers(0, 4))):
        if not lines:
            break
        index = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["drop", "repeat", "move", "cut", "change", "change"])):
            case "drop":
                del lines[index]
            case "repeat":
                lines.insert(draw(st.integers(0, len(lines))), lines[index])
            case "move":
                lines.insert(draw(st.integers(0, len(lines) - 1)), lines.pop(index))
            case "cut":
                lines[index] = lines[index][: draw(st.integers(0, len(lines[index])))]
            case _:
                try:
                    row = json.loads(lines[index])
                except ValueError:
                    continue
                if found := places(row):
                    row = replaced(row, draw(st.sampled_from(found)), draw(junk))
                    lines[index] = json.dumps(row)
    return lines


def reads_or_says_why(folder):
    with contextlib.suppress(InputError):
        assert len(read([folder]).requests) > 0


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
            document = json.loads(content)
            for _ in range(data.draw(st.integers(0, 3))):
                if not isinstance(document, (dict, list)) or not (found := places(document)):
                    break
                place = data.draw(st.sampled_from(found))
                document = replaced(document, place, data.draw(junk))
            content = json.dumps(document)
            if data.draw(st.integers(0, 9)) == 0:
                content = content[: data.draw(st.integers(0, len(content)))]
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

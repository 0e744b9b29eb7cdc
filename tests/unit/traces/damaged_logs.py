"""Damages logs at random: the ways in which files break, for the readers of all formats."""

import contextlib
import json
import tempfile
from pathlib import Path

from hypothesis import strategies as st

from lachesis.errors import InputError
from lachesis.traces.readers.registry import read

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
    """`value` with `new` at a place."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def _at(value, path):
    for step in path:
        value = value[step]
    return value


def _lists(value):
    return [path for path in [(), *places(value)] if isinstance(_at(value, path), list)]


@st.composite
def damaged_lines(draw, lines, changed=None):
    """`lines` with some dropped, repeated, moved, cut off, or changed in a value.

    `changed` draws a line in which a value is another; for lines of JSON if not given.
    """
    changed = changed_json if changed is None else changed
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
                lines[index] = draw(changed(lines[index]))
    return lines


@st.composite
def changed_json(draw, line):
    """A line of JSON with another value at one place; any other line as it is."""
    try:
        row = json.loads(line)
    except ValueError:
        return line
    found = places(row)
    return json.dumps(replaced(row, draw(st.sampled_from(found)), draw(junk))) if found else line


@st.composite
def damaged_document(draw, content):
    """A JSON document with values changed, elements of lists dropped, repeated or moved, or cut."""
    document = json.loads(content)
    for _ in range(draw(st.integers(0, 3))):
        if not isinstance(document, dict | list) or not (found := places(document)):
            break
        how = draw(st.sampled_from(["change", "change", "drop", "repeat", "move"]))
        lists = [path for path in _lists(document) if _at(document, path)]
        if how == "change" or not lists:
            document = replaced(document, draw(st.sampled_from(found)), draw(junk))
            continue
        path = draw(st.sampled_from(lists))
        items = list(_at(document, path))
        index = draw(st.integers(0, len(items) - 1))
        if how == "drop":
            del items[index]
        elif how == "repeat":
            items.insert(draw(st.integers(0, len(items))), items[index])
        else:
            items.insert(draw(st.integers(0, len(items) - 1)), items.pop(index))
        document = replaced(document, path, items)
    content = json.dumps(document)
    if draw(st.integers(0, 9)) == 0:
        content = content[: draw(st.integers(0, len(content)))]
    return content


def reads_or_says_why(*paths, format=None):
    """Read; anything but a trace or an error of one line fails the test."""
    with contextlib.suppress(InputError):
        assert len(read(paths, format=format).requests) > 0


def check_damaged(data, fixture, format):
    """Damage the files of a fixture's folder, and read what is left of them.

    All as `format`, whatever is left of their heads, and as a folder whose strangers are skipped.
    """
    with tempfile.TemporaryDirectory() as place:
        targets = []
        for path in sorted(file for file in fixture.rglob("*") if file.is_file()):
            name = str(path.relative_to(fixture))
            content = path.read_text()
            if path.suffix == ".jsonl":
                lines = data.draw(damaged_lines(content.splitlines()), label=name)
                content = "\n".join(lines)
            else:
                content = data.draw(damaged_document(content), label=name)
            target = Path(place) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
            targets.append(target)
        reads_or_says_why(*targets, format=format)
        reads_or_says_why(place)

"""Damages CSV files at random, for the readers of request tables."""

import tempfile
from pathlib import Path

from damaged_logs import reads_or_says_why
from hypothesis import strategies as st

cells = st.one_of(st.integers(-(2**40), 2**40).map(str), st.text(max_size=6), st.just("nan"))


@st.composite
def damaged_table(draw, content):
    """`content` with rows dropped, repeated, moved, cut off, or changed in a cell."""
    lines = content.splitlines()
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
                row = lines[index].split(",")
                row[draw(st.integers(0, len(row) - 1))] = draw(cells)
                lines[index] = ",".join(row)
    return "\n".join(lines)


def check_damaged_tables(data, fixture, format):
    """Damage every table of a folder, and read what is left: as `format`, and as a folder."""
    with tempfile.TemporaryDirectory() as place:
        targets = []
        for path in sorted(fixture.glob("*.csv")):
            target = Path(place) / path.name
            damaged = data.draw(damaged_table(path.read_text()), label=path.name)
            target.write_bytes(damaged.encode("utf-8", "surrogatepass"))
            targets.append(target)
        reads_or_says_why(*targets, format=format)
        reads_or_says_why(place)

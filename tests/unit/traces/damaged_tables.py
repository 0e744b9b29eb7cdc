"""Damages CSV files at random, for the readers of request tables."""

import tempfile
from pathlib import Path

from damaged_logs import damaged_lines, reads_or_says_why
from hypothesis import strategies as st

cells = st.one_of(st.integers(-(2**40), 2**40).map(str), st.text(max_size=6), st.just("nan"))


@st.composite
def changed_cell(draw, line):
    """A row of a CSV file with something else in one cell."""
    row = line.split(",")
    row[draw(st.integers(0, len(row) - 1))] = draw(cells)
    return ",".join(row)


def check_damaged_tables(data, fixture, format):
    """Damage every table of a folder, and read what is left: as `format`, and as a folder."""
    with tempfile.TemporaryDirectory() as place:
        targets = []
        for path in sorted(fixture.glob("*.csv")):
            target = Path(place) / path.name
            damaged = "\n".join(
                data.draw(
                    damaged_lines(path.read_text().splitlines(), changed_cell), label=path.name
                )
            )
            target.write_bytes(damaged.encode("utf-8", "surrogatepass"))
            targets.append(target)
        reads_or_says_why(*targets, format=format)
        reads_or_says_why(place)

"""Digests by columns are those of what Python writes for each session's rows."""

from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lachesis.traces import digests, read
from lachesis.traces.digests import digests_by_session

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "traces"


def plain(tables):
    """The definition, session by session."""
    found = {}
    for name in tables["sessions"]["session"].to_pylist():
        digest = sha256()
        for table_name, table in tables.items():
            own = table.filter(pc.equal(table["session"], name))
            if own.num_rows:
                columns = [
                    repr(own[column].to_pylist())
                    for column in own.schema.names
                    if column not in ("session", "source")
                ]
                digest.update((table_name + "".join(columns)).encode())
        found[name] = digest.digest()
    return found


@pytest.mark.parametrize("block_rows", [16_384, 7, 1])
@pytest.mark.parametrize("folder", ["codex", "mooncake", "otel_genai", "pi"])
def test_they_are_over_what_python_writes(monkeypatch, folder, block_rows):
    monkeypatch.setattr(digests, "_BLOCK_ROWS", block_rows)
    tables = read([FIXTURES / folder]).tables
    assert digests_by_session(tables) == plain(tables)


def test_rows_out_of_order_count_run_by_run():
    tables = read([FIXTURES / "codex"]).tables
    swapped = {**tables, "requests": pa.concat_tables(
        [tables["requests"].slice(5), tables["requests"].slice(0, 5)]
    )}  # fmt: skip
    assert digests_by_session(swapped) != digests_by_session(tables)
    assert list(digests_by_session(swapped)) == list(digests_by_session(tables))


def test_rows_of_no_session_have_no_digest():
    tables = read([FIXTURES / "codex"]).tables
    with pytest.raises(KeyError):
        digests_by_session({**tables, "sessions": tables["sessions"].slice(1)})

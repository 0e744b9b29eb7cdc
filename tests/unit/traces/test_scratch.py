"""What is kept on disk while a log is read: names, grouped records, batches, blocks of tables."""

import random
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lachesis.errors import InputError
from lachesis.traces import (
    TraceBuilder,
    builder,
    digests,
    read,
    record_groups,
    session_names,
    spool,
)
from lachesis.traces.digests import TraceDigest
from lachesis.traces.readers import csv_blocks, tolerance
from lachesis.traces.readers.protocol import SourceFile
from lachesis.traces.readers.request_rows import LoneColumns, RequestRow
from lachesis.traces.record_groups import NameNumbers, RecordGroups
from lachesis.traces.session_names import SessionNames

HEADER = "session,input_tokens,output_tokens\n"


def finish(made, name, **request):
    session = made.session(name, workload="w", harness="h")
    session.request(**{"input_tokens": 5, "output_tokens": 1, **request})
    made.finish(session)


@given(st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=9))))
def test_records_come_back_by_number_and_in_order(records):
    groups = RecordGroups()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_groups, "_RUN_BYTES", 20)
        patch.setattr(record_groups, "_READ_RECORDS", 2)
        patch.setattr(record_groups, "_READ_BYTES", 5)
        for number, record in records:
            groups.append(number, record)
        for _ in range(2):
            found = dict(groups)
            assert list(found) == sorted({number for number, _ in records})
            assert found == {n: [r for m, r in records if m == n] for n in found}


@given(st.lists(st.text(max_size=2)))
def test_names_have_one_number_each(names):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_groups, "_RECENT", 3)
        numbers = NameNumbers()
        found = [numbers.of(name) for name in names]
    first = list(dict.fromkeys(names))
    assert found == [first.index(name) for name in names]


@given(
    st.lists(st.sampled_from(["a", "a~2", "b", "request-3", "request-03", "request-70000"])),
    st.integers(0, 9),
)
def test_names_of_sessions_are_unique_and_can_be_taken_back(names, kept):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_names, "_RECENT", 2)
        taken, again = SessionNames(), SessionNames()
        before = [taken.unique(name) for name in names[:kept]]
        assert before == [again.unique(name) for name in names[:kept]]
        taken.mark()
        first = [taken.unique(name) for name in names[kept:]]
        assert len({*before, *first}) == len(names)
        taken.take_back()
        assert [taken.unique(name) for name in names[kept:]] == first
        assert [again.unique(name) for name in names[kept:]] == first


def test_numbered_names_are_those_that_one_by_one_gives():
    names, single = SessionNames(), SessionNames()
    for numbers in ([1, 5, 70_000], [5, 6], [5]):
        assert names.numbered(np.array(numbers)) == [
            single.unique(f"request-{number}") for number in numbers
        ]
    names.mark()
    names.numbered(np.array([8]))
    names.take_back()
    assert names.unique("request-8") == "request-8"


def test_what_a_broken_file_gave_is_taken_back_from_disk_too(monkeypatch):
    monkeypatch.setattr(builder, "_BATCH_ROWS", 2)
    monkeypatch.setattr(spool, "_MEMORY_BYTES", 0)
    made = TraceBuilder(source="s")
    for name in "abc":
        finish(made, name)
    mark = made.mark()
    for name in "defgh":
        finish(made, name)
    made.take_back(mark)
    finish(made, "d")
    trace = made.build()
    assert trace.sessions["session"].to_pylist() == ["a", "b", "c", "d"]
    assert trace.requests["session"].to_pylist() == ["a", "b", "c", "d"]


def test_a_full_disk_is_one_clear_line(monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spool, "_MEMORY_BYTES", 0)
    monkeypatch.setattr(spool.Spool, "_write", full)
    made = TraceBuilder(source="s")
    finish(made, "a")
    with pytest.raises(InputError, match="cannot hold what is read until it is written: No space"):
        made.build()


def test_a_sequence_of_digests_is_sorted_on_disk(monkeypatch):
    draw = random.Random(3)
    found = [draw.randbytes(32) for _ in range(2000)]
    found += [bytes(32), bytes(31) + b"\1", b"\1" + bytes(31), b"\1\0\1" + bytes(29)]
    monkeypatch.setattr(digests, "_BUCKET_BYTES", 64)
    on_disk = TraceDigest()
    for each in found:
        on_disk.add(each)
    assert on_disk.hex() == sha256(b"".join(sorted(found))).hexdigest()


cells = st.one_of(
    st.integers(-3, 2**31).map(str),
    st.sampled_from(
        ["", " 7 ", "1.0", "1.5", "nan", "1e3", '"4"', '"4\n"', "x", "2024-05-10 00:00:00.0099301",
         "2024-05-10T01:00:00+01:00", "é", "1\r2", "-0", "+5", "1_0"]
    ),
)  # fmt: skip
LONE = LoneColumns("in", "out", "at", "took", "model")


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(cells, min_size=5, max_size=5), min_size=1, max_size=6), st.booleans())
def test_columns_say_what_rows_say(tmp_path_factory, rows, windows):
    """A block that is read as columns gives exactly what its rows give one by one."""
    path = tmp_path_factory.mktemp("blocks") / "t.csv"
    end = "\r\n" if windows else "\n"
    lines = ["at,in,out,took,model", *(",".join(row) for row in rows)]
    path.write_bytes(end.join(lines).encode())
    file = SourceFile(str(path), "t.csv")
    for block in csv_blocks.CsvFile(file, ["at", "in", "out", "took", "model"], ","):
        found = LONE.requests(block)
        if found is None:
            assert not all(cell.isdigit() and int(cell) < 2**31 for row in rows for cell in row)
            list_or_fault(block)
            continue
        single = [(n, LONE.request(RequestRow(file, n, values))) for n, values in block.rows()]
        assert found.numbers.tolist() == [number for number, _ in single]
        for name in ("input_tokens", "output_tokens", "start_s", "end_s", "model"):
            column = getattr(found, name)
            values = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
            assert values == [getattr(request, name) for _, request in single]


def list_or_fault(block):
    try:
        return list(block.rows())
    except InputError:
        return None


def test_broken_files_of_a_folder_are_not_read_again_and_again(tmp_path, monkeypatch):
    for number in range(30):
        text = HEADER + "s,5,1\n" + ("s,x,1\n" if number % 2 else "")
        (tmp_path / f"{number:02}.csv").write_text(text)
    assert len(read([tmp_path]).quality.skipped) == 15
    calls = []

    class Joining:
        name, description, joins_files = "joining", "", True

        def read(self, files, made, options):
            for file in files:
                calls.append(file.name)
                tolerance_reader.read([file], made, options)

    from lachesis.traces.readers.protocol import ReadOptions
    from lachesis.traces.readers.table import READER as tolerance_reader  # noqa: N811

    files = [SourceFile(str(path), path.name) for path in sorted(tmp_path.iterdir())]
    made = TraceBuilder(source="s")
    tolerance.read_files(Joining(), files, made, ReadOptions(), found={f.name for f in files})
    assert len(made.build()) == 15
    assert len(made.quality.skipped) == 15
    assert len(calls) < 3 * len(files)

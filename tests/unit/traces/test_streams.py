"""Files as streams: cut off, damaged, nested, named twice, or no files at all."""

import datetime
import gzip
import os
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from lachesis.errors import InputError
from lachesis.traces import read
from lachesis.traces.readers.zstd_stream import ZstdStream

HEADER = "session,input_tokens,output_tokens\n"
TABLE = (HEADER + "".join(f"s{n},{100 + n},{1 + n % 7}\n" for n in range(20_000))).encode()
COMPRESS = {"gz": gzip.compress, "zst": zstandard.ZstdCompressor().compress}


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("part", [0.3, 0.9, 0.999])
def test_a_compressed_file_that_is_cut_off_is_refused(tmp_path, ending, part):
    whole = COMPRESS[ending](TABLE)
    file = tmp_path / f"log.csv.{ending}"
    file.write_bytes(whole)
    assert len(read([file])) == 20_000
    file.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(InputError, match=f"log.csv.{ending}"):
        read([file])


@pytest.mark.parametrize("ending", COMPRESS)
def test_damaged_bytes_are_an_input_error_or_the_same_table(tmp_path, ending):
    whole, draw = COMPRESS[ending](TABLE), random.Random(7)
    file = tmp_path / f"log.csv.{ending}"
    refused = 0
    for _ in range(40):
        damaged = bytearray(whole)
        damaged[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        file.write_bytes(damaged)
        try:
            read([file])
        except InputError:
            refused += 1
    assert refused > 0


@pytest.mark.parametrize("sizes", [[0], [1], [3, 200_000, 1, 70_000]])
def test_frames_one_after_the_other_are_one_stream(tmp_path, sizes):
    draw = random.Random(3)
    frames = [draw.randbytes(size) for size in sizes]
    file = tmp_path / "frames.zst"
    file.write_bytes(b"".join(COMPRESS["zst"](frame) for frame in frames))
    with ZstdStream(file.open("rb")) as stream:
        assert stream.readall() == b"".join(frames)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    pipe = tmp_path / "log.csv"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="cannot be read twice"):
        read([pipe])


def test_a_name_that_no_file_system_takes_is_an_input_error():
    with pytest.raises(InputError, match="cannot be read: File name too long"):
        read(["x" * 5000 + ".csv"])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "+02:00"])
def test_timestamps_of_parquet_in_any_unit_and_zone(tmp_path, unit, zone):
    start = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
    seconds = [int(start.timestamp()), int(start.timestamp()) + 30]
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    # One more than a whole microsecond, which no datetime holds.
    stamps = [second * per_second + (unit == "ns") for second in seconds]
    file = tmp_path / "log.parquet"
    columns = {
        "session": ["a", "a"],
        "input_tokens": [10, 40],
        "output_tokens": [5, 5],
        "timestamp": pa.array(stamps, pa.timestamp(unit, zone)),
    }
    pq.write_table(pa.table(columns), file, coerce_timestamps=None, version="2.6")
    trace = read([file])
    assert trace.requests["start_s"].to_pylist() == pytest.approx(seconds, abs=1e-5)


def test_damaged_pages_of_parquet_are_an_input_error_or_are_read(tmp_path):
    file = tmp_path / "log.parquet"
    rows = 5_000
    columns = {
        "session": [f"s{n}" for n in range(rows)],
        "input_tokens": list(range(rows)),
        "output_tokens": [1] * rows,
    }
    pq.write_table(pa.table(columns), file)
    whole, draw = file.read_bytes(), random.Random(5)
    refused = 0
    for _ in range(60):
        damaged = bytearray(whole)
        start = draw.randrange(4, len(whole) - 40)
        damaged[start : start + 32] = draw.randbytes(32)
        file.write_bytes(damaged)
        try:
            read([file])
        except InputError:
            refused += 1
    assert refused > 0


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "log.json"])
def test_json_nested_without_end_is_an_input_error(tmp_path, name):
    file = tmp_path / name
    file.write_text('{"a": ' + "[" * 200_000)
    with pytest.raises(InputError):
        read([file])


def test_half_a_surrogate_pair_in_a_table_becomes_a_question_mark(tmp_path):
    file = tmp_path / "log.jsonl"
    row = '{"session": "a\\ud83d", "input_tokens": 10, "output_tokens": 5}\n'
    file.write_text(row)
    assert read([file]).sessions["session"].to_pylist() == ["a?"]

"""What an observer of reading is told: bytes on disk, of every file, and never less than before."""

import gzip
import json
import shutil

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import zstandard

from lachesis.traces import ReadOptions, ReadWatcher, open_trace

TABLE = "session,input_tokens,output_tokens\n" + "".join(
    f"s{n},{100 + n},{1 + n % 7}\n" for n in range(3000)
)


class Told(ReadWatcher):
    def __init__(self):
        self.found = []
        self.steps = []
        self.ends = 0

    def files_found(self, files):
        self.found.append(files)

    def bytes_read(self, file, files, read_bytes, total_bytes):
        self.steps.append((file, files, read_bytes, total_bytes))

    def all_read(self):
        self.ends += 1


def told(*paths):
    watcher = Told()
    trace = open_trace(*paths, options=ReadOptions(watcher=watcher))
    assert watcher.ends == 1
    return trace, watcher


def write_parquet(path, content):
    pq.write_table(pyarrow.csv.read_csv(pyarrow.BufferReader(content)), path, row_group_size=1000)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("log.csv", lambda path, content: path.write_bytes(content)),
        ("log.csv.gz", lambda path, content: path.write_bytes(gzip.compress(content))),
        (
            "log.csv.zst",
            lambda path, content: path.write_bytes(zstandard.ZstdCompressor().compress(content)),
        ),
        ("log.parquet", write_parquet),
    ],
)
def test_a_file_is_told_up_to_its_size_on_disk(tmp_path, name, write):
    file = tmp_path / name
    write(file, TABLE.encode())
    trace, watcher = told(file)
    assert len(trace) == 3000
    assert watcher.steps[-1] == (1, 1, file.stat().st_size, file.stat().st_size)


def test_large_files_are_told_in_steps_that_never_fall(tmp_path):
    row = {"id": "x", "involved_classes": [], "messages": [
        {"turn": 0, "role": "user", "content": "w" * 30_000},
        {"turn": 0, "role": "assistant", "tool_calls": [{"call": "f()"}]},
    ]}  # fmt: skip
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text((json.dumps(row) + "\n") * 120)
    _, watcher = told(tmp_path)
    read = [step[2] for step in watcher.steps]
    size = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert read == sorted(read)
    assert len(set(read)) > 4
    assert watcher.steps[-1] == (2, 2, size, size)
    assert watcher.found == [1, 2]


def test_a_file_that_is_read_again_is_counted_once(tmp_path):
    """A broken file in a folder makes the reader start over with the others."""
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text(TABLE)
    (tmp_path / "b.csv").write_text(TABLE + "s,broken,1\n")
    trace, watcher = told(tmp_path)
    assert trace.quality.skipped
    size = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert watcher.steps[-1][1:] == (3, size, size)
    assert max(step[2] for step in watcher.steps) == size


def test_files_that_a_reader_brings_along_are_told(samples_dir, tmp_path):
    name = "fa812bfe-b295-4cca-9c2f-fdf01028cb46"
    source = samples_dir / "claude_code_spotter"
    shutil.copytree(source / name, tmp_path / name)
    shutil.copy(source / f"{name}.jsonl", tmp_path)
    _, watcher = told(tmp_path / f"{name}.jsonl")
    size = sum(file.stat().st_size for file in tmp_path.rglob("*.jsonl"))
    assert watcher.steps[-1] == (4, 4, size, size)

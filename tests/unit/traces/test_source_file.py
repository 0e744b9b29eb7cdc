"""A file whose head was looked at gives the same bytes, whether or not the head is all of it."""

import gzip
from codecs import BOM_UTF8

import pytest

from lachesis.errors import InputError
from lachesis.traces import ReadWatcher
from lachesis.traces.read_watcher import ReadLedger
from lachesis.traces.readers.protocol import HEAD_BYTES, SourceFile


def written(path, content):
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz"])
@pytest.mark.parametrize("mark", [b"", BOM_UTF8])
@pytest.mark.parametrize("more_bytes", [-HEAD_BYTES + 1, -4, -3, -1, 0, 1, 3, 4, HEAD_BYTES])
def test_lines_are_those_of_the_file(tmp_path, ending, mark, more_bytes):
    text = (b'{"a": "\r"}\n\n  \n' * HEAD_BYTES)[: HEAD_BYTES + more_bytes]
    path = written(tmp_path / f"log.{ending}", mark + text)
    file = SourceFile.looked_at(str(path), "log")
    assert file.head == text[:HEAD_BYTES]
    assert file.size_bytes == path.stat().st_size
    assert file.read_bytes() == text
    assert list(file.lines()) == list(SourceFile(str(path), "log").lines())
    assert b"".join(line for _, line in file.lines()).split() == text.split()


def test_a_file_that_is_its_head_is_told_as_read(tmp_path):
    path = written(tmp_path / "log.jsonl.gz", b"{}\n" * 100)
    ledger = ReadLedger(ReadWatcher())
    looked_at = SourceFile.looked_at(str(path), "log")
    file = SourceFile(str(path), "log", looked_at.head, ledger, None, looked_at.size_bytes)
    assert ledger.read_bytes == 0
    assert len(list(file.lines())) == 100
    assert ledger.read_bytes == ledger.total_bytes == path.stat().st_size


def test_what_cannot_be_looked_at_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="log: cannot be read: No such file"):
        SourceFile.looked_at(str(tmp_path / "log.jsonl"), "log")
    with pytest.raises(InputError, match="log: cannot be read: Is a directory"):
        SourceFile.looked_at(str(tmp_path), "log")
    with pytest.raises(InputError, match="log: cannot be read: Not a gzipped file"):
        SourceFile.looked_at(str(written(tmp_path / "x", b"{}").rename(tmp_path / "x.gz")), "log")

"""Files as no one should write them: read, or skipped with the reason, or one clear line."""

import gzip
import json
import os

import pytest
from claude_code_log import Transcript, one_call

from lachesis.errors import InputError
from lachesis.traces import read

TABLE = "session,input_tokens,output_tokens\ns,10,2\n"


@pytest.fixture
def log(tmp_path):
    """A transcript of one request."""
    transcript = Transcript()
    one_call(transcript)
    return transcript.write(tmp_path / "good" / "s1.jsonl").read_bytes()


def skipped(trace):
    """Why each file was skipped, by the last part of its name."""
    return {name.rsplit("/", 1)[-1]: why for name, why in trace.quality.skipped.items()}


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz"])
def test_a_byte_order_mark_is_no_part_of_the_log(tmp_path, log, ending):
    content = b"\xef\xbb\xbf" + log
    file = tmp_path / f"marked.{ending}"
    file.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    assert read([file]).requests.num_rows == 1


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (TABLE.encode("utf-16"), "is text in UTF-16; convert it to UTF-8"),
        (gzip.compress(TABLE.encode()), r"is compressed by gzip; its name must end in \.gz"),
    ],
)
def test_what_no_reader_can_read_a_letter_of_is_named(tmp_path, log, content, rule):
    (tmp_path / "good" / "x.log").write_bytes(content)
    with pytest.raises(InputError, match=rule):
        read([tmp_path / "good" / "x.log"])
    assert skipped(read([tmp_path / "good"])) == {"x.log": rule.replace("\\", "")}


def test_empty_lines_and_line_ends_of_windows_mean_nothing(tmp_path, log):
    file = tmp_path / "blank.jsonl"
    file.write_bytes(b"\n  \r\n" + log.replace(b"\n", b"\r\n\r\n"))
    assert read([file]).requests.num_rows == 1


def test_zeros_that_a_crash_left_at_the_end_are_a_cut_off_line(tmp_path, log):
    file = tmp_path / "crash.jsonl"
    file.write_bytes(log + b"\0" * 5000)
    trace = read([file])
    assert trace.requests.num_rows == 1
    assert any("truncated last line" in reason for reason in trace.quality.dropped)


def test_a_folder_of_everything_keeps_what_it_can(tmp_path, log):
    folder = tmp_path / "good"
    (folder / "t.csv").write_text(TABLE)
    (folder / "picture.png").write_bytes(bytes(range(256)) * 40)
    for name, content in (("object", "{}"), ("list", "[]"), ("null", "null"), ("cut", '{"a":')):
        (folder / f"{name}.json").write_text(content)
    (folder / "deep.json").write_text("[" * 200_000)
    trace = read([folder])
    assert trace.requests.num_rows == 2
    assert len(skipped(trace)) == 6


def test_lines_of_millions_of_characters_are_read(tmp_path, log):
    first, rest = log.split(b"\n", 1)
    row = json.loads(first)
    row["padding"] = "z" * 5_000_000
    file = tmp_path / "wide.jsonl"
    file.write_bytes(json.dumps(row).encode() + b"\n" + rest)
    assert read([file]).requests.num_rows == 1


def test_nesting_without_end_is_no_crash(tmp_path, log):
    row = b'{"type":"user","uuid":"u","parentUuid":null,"message":' + b'{"a":' * 100_000
    file = tmp_path / "deep.jsonl"
    file.write_bytes(row + b"1" + b"}" * 100_001 + b"\n" + log)
    with pytest.raises(InputError, match=r"deep\.jsonl:1: not valid JSON"):
        read([file])


def test_links_in_circles_pipes_and_links_to_nothing_are_passed_by(tmp_path, log):
    folder = tmp_path / "good"
    (folder / "up").symlink_to("..")
    (folder / "self.jsonl").symlink_to("self.jsonl")
    (folder / "gone.jsonl").symlink_to("/nowhere/at/all")
    (folder / "again.jsonl").symlink_to("s1.jsonl")
    os.mkfifo(folder / "pipe.jsonl")
    trace = read([folder])
    assert trace.requests.num_rows == 1
    assert skipped(trace) == {"s1.jsonl": "was given before"}


def test_files_that_may_not_be_read_are_skipped(tmp_path, log):
    locked = tmp_path / "good" / "locked.csv"
    locked.write_text(TABLE)
    locked.chmod(0)
    if os.access(locked, os.R_OK):
        pytest.skip("this user may read everything")
    assert "Permission denied" in skipped(read([tmp_path / "good"]))["locked.csv"]


def test_copies_of_a_session_add_no_request(tmp_path, log):
    folder = tmp_path / "good"
    (folder / "copy.jsonl").write_bytes(log)
    (folder / "t1.csv").write_text(TABLE)
    (folder / "t2.csv").write_text(TABLE)
    trace = read([folder])
    # A table has no ids by which a copy would show: its sessions stay apart.
    assert sorted(trace.sessions["session"].to_pylist()) == ["copy", "s", "s~2"]
    assert trace.requests.num_rows == 3


@pytest.mark.parametrize(
    "name", [b"new\nline.csv", b"\xff\xe9.csv", b"\x1b[31mred\xe2\x80\xae.csv", b"-rf [bold].csv"]
)
def test_any_name_is_written_and_shown_on_one_line(tmp_path, name):
    folder = os.fsencode(tmp_path)
    file = os.path.join(folder, name)  # noqa: PTH118 - a name that is no text
    with open(file, "wb") as stream:  # noqa: PTH123
        stream.write(TABLE.encode())
    (tmp_path / "broken.csv").write_text(TABLE + "s,x,2\n")
    trace = read([tmp_path, os.fsdecode(file)])
    trace.save(tmp_path / "out.trace")
    again = read([tmp_path / "out.trace"])
    assert again.sha256 == trace.sha256
    shown = [again.source, *again.sessions["source"].to_pylist(), *again.quality.skipped]
    assert all(each.isprintable() for each in shown)
    with open(file, "ab") as stream:  # noqa: PTH123
        stream.write(b"s,x,2\n")
    with pytest.raises(InputError) as fault:
        read([os.fsdecode(file)])
    assert str(fault.value).isprintable()

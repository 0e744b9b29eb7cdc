"""Broken files among others are skipped and counted; strict reading allows no repair."""

import shutil

import pytest

from lachesis.errors import InputError
from lachesis.traces import ReadOptions, TraceBuilder, read
from lachesis.traces.readers.registry import READERS
from lachesis.traces.readers.weka import READER as WEKA

HEADER = "session,input_tokens,output_tokens,turn\n"
STRICT = ReadOptions(strict=True)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.csv").write_text(HEADER + "a,5,1,0\n")
    (tmp_path / "b.csv").write_text(HEADER + "b,5,1,0\nc,5,1,0\nb,-3,1,0\n")
    (tmp_path / "c.csv").write_text(HEADER + "b,5,1,0\na,5,1,0\n")
    return tmp_path


def test_a_broken_file_among_others_is_skipped_with_its_reason(folder):
    trace = read([folder])
    assert trace.sessions["session"].to_pylist() == ["a", "b", "a~2"]
    assert trace.quality.skipped == {
        str(folder / "b.csv"): "4: input_tokens = -3, must not be negative"
    }
    assert trace.quality.filled["stripping"] == {"recognised: off": 3}


def test_a_broken_file_that_was_named_is_an_error(folder):
    with pytest.raises(InputError, match=r"b\.csv:4: input_tokens = -3"):
        read([folder / "b.csv", folder])


def test_nothing_but_broken_files_is_an_error(folder):
    (folder / "a.csv").unlink()
    (folder / "c.csv").unlink()
    with pytest.raises(InputError, match=r"no request remains \(left out: .*b\.csv: 4: input_tok"):
        read([folder])


def test_a_session_that_contradicts_itself_is_skipped_alone():
    builder = TraceBuilder(source="s")
    builder.may_skip(["found"])
    for name, source in (("good", "found"), ("bad", "found")):
        session = builder.session(name, workload="w", harness="h", source=source)
        session.request(input_tokens=5, output_tokens=1 if name == "good" else 0, row=7)
    trace = builder.build()
    assert trace.sessions["session"].to_pylist() == ["good"]
    assert list(trace.quality.skipped.values()) == ["7: must be at least 1 where the request is ok"]


def test_a_broken_transcript_does_not_take_its_neighbours_along(fixtures_dir, tmp_path):
    source = fixtures_dir / "traces" / "claude_code"
    shutil.copytree(source, tmp_path / "logs")
    whole = read([source])
    victim = sorted((tmp_path / "logs").rglob("agent-*.jsonl"))[0]
    victim.write_text('{"type": "user", "isSidechain": true, "sessionId": 3}\n' * 2)
    trace = read([tmp_path / "logs"])
    assert list(trace.quality.skipped)[-1].endswith(victim.name)
    assert 0 < trace.requests.num_rows < whole.requests.num_rows


def test_taking_back_leaves_nothing():
    builder = TraceBuilder(source="s")
    session = builder.session("kept", workload="w", harness="h")
    session.request(input_tokens=5, output_tokens=1)
    builder.finish(session)
    mark = builder.mark()
    for name in ("kept", "gone"):
        session = builder.session(name, workload="w", harness="h")
        session.request(input_tokens=5, output_tokens=1)
        builder.finish(session)
    builder.session("open", workload="w", harness="h")
    builder.drop("row")
    builder.take_back(mark)
    again = builder.session("kept", workload="w", harness="h")
    assert again.name == "kept~2"
    trace = builder.build()
    assert trace.sessions["session"].to_pylist() == ["kept"]
    assert trace.requests.num_rows == 1
    assert not trace.quality.dropped


@pytest.mark.parametrize(
    ("text", "repair"),
    [
        (HEADER + "a,5,1,0\na,,,0\n", "dropped: 1 × row without token counts"),
        (HEADER + "a,50,9,0\na,20,1,0\n", "adjusted: 1 × context reset: the input was shorter"),
        (
            "session,input_tokens,output_tokens,agent,parent\na,5,1,x,gone\na,7,1,main,\n",
            "1 sub-agents without a lead",
        ),
    ],
)
def test_strict_names_the_first_repair(tmp_path, text, repair):
    (tmp_path / "a.csv").write_text(text)
    assert len(read([tmp_path / "a.csv"])) > 0
    with pytest.raises(InputError, match=f"strict reading allows no repair: {repair}"):
        read([tmp_path / "a.csv"], options=STRICT)


def test_strict_allows_a_log_that_says_everything(tmp_path):
    (tmp_path / "a.csv").write_text(HEADER + "a,5,1,0\na,9,1,1\n")
    assert len(read([tmp_path / "a.csv"], options=STRICT)) == 1


def test_strict_makes_every_broken_file_an_error(folder):
    with pytest.raises(InputError, match=r"b\.csv:4: input_tokens = -3"):
        read([folder], options=STRICT)
    (folder / "b.csv").unlink()
    (folder / "d.gz").write_bytes(b"no gzip")
    with pytest.raises(InputError, match=r"d\.gz: cannot be read"):
        read([folder], options=STRICT)


def test_strict_takes_a_tokenizers_count_and_no_estimate(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"timestamp": 1, "input": "user: go", "output": "gone", "session_id": "s"}\n')
    with pytest.raises(InputError, match="no repair: 1 requests inferred"):
        read([file], options=STRICT)
    counted = ReadOptions(strict=True, count_tokens=len, tokenizer="characters")
    assert len(read([file], options=counted)) == 1


def test_heads_are_read_again_where_they_were_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("lachesis.traces.readers.registry._HEADS_KEPT_BYTES", 0)
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text(HEADER + f"s{number},5,1,0\n")
    assert len(read([tmp_path])) == 3


def test_every_format_is_read_by_name():
    assert WEKA in READERS
    assert len({reader.name for reader in READERS}) == len(READERS)

"""Which reader gets which file; folders, compression, saved traces, names of corpora."""

import gzip
import json
import shutil

import pytest

from lachesis.errors import InputError
from lachesis.traces import Trace, open_trace, read
from lachesis.traces.readers.registry import READERS

CSV = "session,input_tokens,output_tokens\na,5,1\n"


def test_a_folder_is_searched_and_strangers_in_it_are_counted(fixtures_dir, tmp_path):
    deep = tmp_path / "logs" / "deep"
    deep.mkdir(parents=True)
    shutil.copy(fixtures_dir / "traces" / "tau2.json", deep / "results.json")
    (deep / "log.csv").write_text(CSV)
    (deep / "notes.md").write_text("nothing to read here")
    (deep / "broken.gz").write_bytes(b"no gzip")
    (deep / "empty.jsonl").write_text(" \n\n")
    (deep / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    read([deep / "log.csv"]).save(deep / "saved.trace")
    trace = read([tmp_path / "logs"])
    assert trace.sessions["session"].to_pylist() == ["a", "a~2", "with-usage", "without-usage"]
    skipped = {name.rpartition("/")[2]: why for name, why in trace.quality.skipped.items()}
    assert skipped.pop("broken.gz").startswith("cannot be read")
    assert skipped == {
        "empty.jsonl": "is empty",
        "notes.md": "no reader recognises it",
        "picture.png": "no reader recognises it",
    }


def test_a_file_given_twice_is_read_once(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text(CSV)
    trace = read([file, tmp_path])
    assert len(trace) == 1
    assert trace.quality.skipped == {str(file): "was given before"}


def test_content_decides_not_the_name(fixtures_dir, tmp_path):
    disguised = tmp_path / "table.csv.gz"
    disguised.write_bytes(gzip.compress((fixtures_dir / "traces" / "tau_v1.json").read_bytes()))
    assert read([disguised]).sessions["harness"].to_pylist() == ["tau-bench"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"hello", r"no reader recognises it .formats: claude-code, .*codex, .*table; "),
        ("a.csv", b"x,y\n1,2\n", "needed column session, input_tokens, output_tokens is missing"),
        ("a.json", b"", r"no request remains .*a\.json: is empty"),
        ("a.gz", b"no gzip", "cannot be read: Not a gzipped file"),
        ("a.zst", b"no zstd", "cannot be read: "),
        ("a.parquet", b"PAR1junk", "no valid Parquet"),
    ],
)
def test_a_named_file_that_cannot_be_read_is_an_error(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read([tmp_path / name])
    assert "\n" not in str(caught.value)


def test_places_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.json: no such file or folder"):
        read([tmp_path / "nowhere.json"])
    with pytest.raises(InputError, match="no request remains"):
        read([tmp_path])
    (tmp_path / "x.trace").mkdir()
    with pytest.raises(InputError, match=r"x\.trace: holds no trace\.json"):
        read([tmp_path / "x.trace"])


def test_a_format_can_be_forced(tmp_path, fixtures_dir):
    (tmp_path / "log.csv").write_text(CSV)
    with pytest.raises(InputError, match="not valid JSON"):
        read([tmp_path / "log.csv"], format="tau")
    with pytest.raises(InputError, match="format = tar, no such format; there are claude-code,"):
        read([tmp_path / "log.csv"], format="tar")
    shutil.copy(fixtures_dir / "traces" / "tau_v1.json", tmp_path)
    assert read([tmp_path], format="table").quality.skipped == {
        str(tmp_path / "tau_v1.json"): "is not in format table"
    }


def test_a_saved_trace_is_validated_when_opened(tmp_path):
    import pyarrow.parquet as pq

    (tmp_path / "log.csv").write_text(CSV)
    place = tmp_path / "a.trace"
    trace = read([tmp_path / "log.csv"])
    trace.save(place)
    assert open_trace(str(place)).sha256 == trace.sha256
    table = pq.read_table(place / "spans.parquet")
    changed = table.set_column(4, table.schema.field(4), [[-5]])
    pq.write_table(changed, place / "spans.parquet")
    # As a program that writes traces of its own, without digests, would leave it.
    manifest = json.loads((place / "trace.json").read_text())
    del manifest["files"], manifest["sha256"]
    (place / "trace.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"a\.trace: spans, .*tokens = -5, must not be negative"):
        open_trace(str(place))


def test_saved_and_raw_are_joined(tmp_path):
    (tmp_path / "log.csv").write_text(CSV)
    read([tmp_path / "log.csv"]).save(tmp_path / "a.trace")
    joined: Trace = open_trace(str(tmp_path / "a.trace"), str(tmp_path / "log.csv"))
    assert joined.sessions["session"].to_pylist() == ["a", "a~2"]


def test_a_bare_word_is_a_corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    with pytest.raises(InputError, match=r"trace = logs, no such built-in corpus; there are .*"
                       r"multi-agent.*; for the file or folder here write \./logs"):  # fmt: skip
        open_trace("logs")
    with pytest.raises(InputError, match="name at least one trace"):
        open_trace()


def test_every_reader_describes_itself():
    for reader in READERS:
        assert len(reader.description) > 80
    assert len({reader.name for reader in READERS}) == len(READERS)


def test_half_a_surrogate_pair_is_read_and_other_faults_are_not(tmp_path):
    line = '{"session": "%s", "input_tokens": %s, "output_tokens": 1}\n'
    file = tmp_path / "a.jsonl"
    file.write_text(line % ("cut \\ud83d", 3))
    assert read([file]).sessions["session"].to_pylist() == ["cut ?"]
    file.write_text(line % ("a", 3) + line % ("a", "NaN"))
    with pytest.raises(InputError, match=r"a\.jsonl:2: not valid JSON: NaN is no JSON number"):
        read([file])
    file.write_text(line % ("a", "1e400"))
    with pytest.raises(InputError, match=r"a\.jsonl:1: input_tokens = inf, must be a whole numb"):
        read([file])

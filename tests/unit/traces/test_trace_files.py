"""A trace on disk: written whole or not at all, and refused when it is not what it says."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from short_logs import built

from lachesis.errors import InputError
from lachesis.traces import Trace, concat
from lachesis.traces.trace import session_digests


@pytest.fixture
def trace() -> Trace:
    return built(lambda s: s.request(input_tokens=10, output_tokens=5))


@pytest.fixture
def saved(trace, tmp_path) -> Path:
    trace.save(tmp_path / "a.trace")
    return tmp_path / "a.trace"


def test_the_manifest_tells_version_source_rows_and_what_was_filled(saved):
    manifest = json.loads((saved / "trace.json").read_text())
    assert manifest["schema"] == 1
    assert manifest["source"] == "log"
    assert manifest["rows"] == {
        "sessions": 1, "requests": 1, "spans": 1, "segments": 1, "spawns": 0
    }  # fmt: skip
    assert manifest["quality"]["filled"]["prompt_tokens"]


def test_saving_replaces_a_trace_and_leaves_nothing_else(saved):
    other = built(lambda s: s.request(input_tokens=11, output_tokens=5))
    other.save(saved)
    assert Trace.load(saved).sha256 == other.sha256
    assert list(saved.parent.iterdir()) == [saved]


def test_equal_traces_are_equal_bytes(trace, saved, tmp_path):
    trace.save(tmp_path / "b.trace")
    for file in saved.iterdir():
        assert file.read_bytes() == (tmp_path / "b.trace" / file.name).read_bytes()


def test_a_failing_write_keeps_what_was_there(saved, monkeypatch):
    before = Trace.load(saved).sha256

    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fails)
    with pytest.raises(InputError, match=r"a\.trace: cannot be written: No space left"):
        built(lambda s: s.request(input_tokens=11, output_tokens=5)).save(saved)
    assert Trace.load(saved).sha256 == before
    assert list(saved.parent.iterdir()) == [saved]


def test_an_interrupt_between_the_renames_keeps_what_was_there(saved, monkeypatch):
    before = Trace.load(saved).sha256
    rename = Path.rename

    def interrupted(self, target):
        if self.name == "new":
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        built(lambda s: s.request(input_tokens=11, output_tokens=5)).save(saved)
    assert Trace.load(saved).sha256 == before
    assert list(saved.parent.iterdir()) == [saved]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("a.parquet", "a trace's name ends in .trace"),
        ("nowhere/a.trace", "cannot be written: No such file or directory"),
        ("taken.trace", "exists and is no trace: not replaced"),
    ],
)
def test_where_it_cannot_be_saved(trace, tmp_path, place, message):
    (tmp_path / "taken.trace").mkdir()
    with pytest.raises(InputError, match=message):
        trace.save(tmp_path / place)


def edit(saved: Path, change) -> None:
    file = saved / "trace.json"
    manifest = json.loads(file.read_text())
    change(manifest)
    file.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(schema=2), "schema = 2, this build reads version 1"),
        (lambda m: m.pop("schema"), "schema = missing, this build reads version 1"),
        (lambda m: m.update(rows=3), "rows, must be a dict"),
        (lambda m: m.update(files=[]), "files, must be a dict"),
        (lambda m: m["rows"].pop("spans"), r"rows\.spans, must be a row count"),
        (lambda m: m["rows"].update(spans=2), r"spans\.parquet: has 1 rows, trace.json says 2"),
        (lambda m: m["quality"].pop("dropped_reasons"), "quality, is not as this build writes it"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(saved, change, message):
    edit(saved, change)
    with pytest.raises(InputError, match=message):
        Trace.load(saved)


def test_files_that_do_not_fit_are_refused(saved):
    table = pq.read_table(saved / "spans.parquet")
    pq.write_table(table.drop_columns(["tokens"]), saved / "spans.parquet")
    with pytest.raises(InputError, match=r"spans\.parquet: column tokens is missing"):
        Trace.load(saved)
    pq.write_table(table.append_column("more", table["tokens"]), saved / "spans.parquet")
    with pytest.raises(InputError, match="unknown column more"):
        Trace.load(saved)
    (saved / "spans.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match=r"spans\.parquet: cannot be read"):
        Trace.load(saved)
    (saved / "spans.parquet").unlink()
    with pytest.raises(InputError, match=r"spans\.parquet: cannot be read"):
        Trace.load(saved)
    (saved / "trace.json").write_text("{")
    with pytest.raises(InputError, match="not valid JSON"):
        Trace.load(saved)
    shutil.rmtree(saved)
    with pytest.raises(InputError, match="no such trace"):
        Trace.load(saved)


def change_a_count(saved: Path) -> None:
    table = pq.read_table(saved / "spans.parquet")
    tokens = pa.array([count + 1 for count in table["tokens"].to_pylist()], table["tokens"].type)
    index = table.schema.get_field_index("tokens")
    pq.write_table(
        table.set_column(index, table.schema.field(index), tokens), saved / "spans.parquet"
    )


def test_a_parquet_file_that_was_changed_is_refused_in_one_line(saved):
    change_a_count(saved)
    with pytest.raises(InputError, match=r"spans\.parquet: was changed after trace\.json") as fault:
        Trace.load(saved)
    assert "\n" not in str(fault.value)


def test_a_trace_of_an_older_build_is_compared_by_its_content(saved):
    edit(saved, lambda manifest: manifest.pop("files"))
    assert len(Trace.load(saved)) == 1
    change_a_count(saved)
    with pytest.raises(InputError, match=r"a\.trace: was changed after trace\.json"):
        Trace.load(saved)
    # A session that no row of `sessions` names has no digest at all.
    renamed = pq.read_table(saved / "sessions.parquet")
    renamed = renamed.set_column(0, renamed.schema.field(0), pa.array(["t"]))
    pq.write_table(renamed, saved / "sessions.parquet")
    with pytest.raises(InputError, match=r"a\.trace: was changed after trace\.json"):
        Trace.load(saved)


def test_selecting_an_unknown_session_is_an_error(trace):
    with pytest.raises(InputError, match="session = t, no such session"):
        trace.select(["t"])


def test_joined_traces_keep_sources_counts_and_unique_names(trace):
    joined = concat([trace, trace])
    assert joined.sessions["session"].to_pylist() == ["s", "s~2"]
    assert set(joined.segments["session"].to_pylist()) == {"s", "s~2"}
    assert joined.quality.to_json()["reported"] == 2
    with pytest.raises(InputError, match="no trace to join"):
        concat([])


def test_digests_of_the_parts_are_those_of_the_whole(trace):
    fresh = concat([trace, trace])
    assert fresh._session_digests is None
    assert trace.sha256
    joined = concat([trace, trace])
    assert set(joined._session_digests) == {"s", "s~2"}
    assert session_digests(joined) == session_digests(fresh)
    assert joined.sha256 == fresh.sha256

"""Reading results directories and runs' JSON: what is there, and one clear line on what is not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lachesis
import results_directories
from lachesis.cli.report_job import execute_report
from lachesis.errors import InputError
from lachesis.presets import Settings
from lachesis.results import run_document, to_json
from lachesis.results.results_directory import read_stored_results
from lachesis.results.rows import run_columns, run_table
from lachesis.simulation import Load, Plan, Stopping, compare
from lachesis.traces import open_trace
from report_rows import row


def directory(place: Path, *rows: dict[str, Any], **manifest: Any) -> Path:
    return results_directories.write(place, rows, **manifest)


def refusal(place: Path) -> str:
    with pytest.raises(InputError) as refused:
        read_stored_results(place)
    message = str(refused.value)
    assert "\n" not in message
    return message


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("results") / "swept"
    return results_directories.sweep(place, policies=("hbm-first",), timeline_interval_s=60.0)


def test_a_swept_directory_is_read_whole(swept: Path) -> None:
    results = read_stored_results(swept)
    assert results.runs.column_names == run_columns().names
    assert results.runs["policy"].to_pylist() == ["hbm-first"]
    assert results.timelines is not None
    assert results.timelines.num_rows > 2
    # More is kept over time than is checked.
    assert {"model", "steps"} <= set(results.timelines.column_names)
    assert results.lifetimes is not None
    assert results.lifetimes["class"].unique().to_pylist() == [
        "prompt", "reasoning-laden", "reasoning-stripped",
    ]  # fmt: skip
    assert (results.cells, results.unfinished, results.failures) == (1, 0, ())


def test_shards_are_joined_in_order(tmp_path: Path) -> None:
    place = directory(tmp_path / "d", row(run="b"), shards=3)
    pq.write_table(run_table([row(run="a")]), place / "runs" / "00002.parquet")
    assert read_stored_results(place).runs["run"].to_pylist() == ["b", "a"]


def test_columns_that_are_new_do_no_harm(tmp_path: Path) -> None:
    place = directory(tmp_path / "d", row())
    shard = place / "runs" / "00000.parquet"
    pq.write_table(pq.read_table(shard).append_column("colour", pa.array(["red"])), shard)
    assert "colour" not in read_stored_results(place).runs.column_names


def test_a_seed_may_use_all_bits(tmp_path: Path) -> None:
    place = directory(tmp_path / "d", row(seed=2**64 - 1))
    assert read_stored_results(place).runs["seed"].to_pylist() == [2**64 - 1]


def test_cells_that_wait_or_failed_are_counted(tmp_path: Path) -> None:
    cells = [
        results_directories.cell_entry("1", state="done"),
        results_directories.cell_entry("2"),
        results_directories.cell_entry(
            "3", state="failed", failures={"lachesis": "too little memory"}
        ),
    ]
    results = read_stored_results(directory(tmp_path / "d", row(), cells=cells))
    assert (results.cells, results.unfinished) == (3, 1)
    assert results.failures == ("t · m · 2/6 · tight · lachesis: too little memory",)


def test_a_run_that_cannot_be_run_has_no_measurement_and_one_that_was_measured_has(
    tmp_path: Path,
) -> None:
    measured = {"meets_slo": None, "requests": None, "hbm_write_bytes": None}
    cannot = row(run="b", status="infeasible", reason="too large", years=None, **measured)
    results = read_stored_results(directory(tmp_path / "d", row(run="a"), cannot))
    assert results.runs["run"].to_pylist() == ["a", "b"]
    assert results.measured["run"].to_pylist() == ["a"]
    assert results.infeasible["reason"].to_pylist() == ["too large"]
    broken = directory(tmp_path / "e", row(run="a"), row(run="b", meets_slo=None))
    assert refusal(broken).endswith("00000.parquet:2: meets_slo, is empty")
    broken = directory(tmp_path / "f", cannot | {"policy": None})
    assert refusal(broken).endswith("00000.parquet:1: policy, is empty")


def test_the_json_of_a_run_is_read_as_one_cell(tmp_path: Path) -> None:
    plan = Plan(Settings.choose(), stopping=Stopping(turnovers=2.0))
    comparison = compare(open_trace("tau3-airline"), plan, load=Load.parse("8"))
    document = run_document(comparison)
    (tmp_path / "run.json").write_text(to_json(document), "utf-8")
    results = read_stored_results(tmp_path / "run.json")
    rows = results.runs.to_pylist()
    assert [each["policy"] for each in rows] == ["hbm-first", "lachesis-deterministic"]
    assert len({each["cell"] for each in rows}) == 1
    for each, run in zip(rows, document["runs"], strict=True):
        assert each["hbf_lifetime_years"] == run["hbf_lifetime_years"]
        assert [each["hbf_lifetime_years_low"], each["hbf_lifetime_years_high"]] == (
            run["hbf_lifetime_years_ci95"] or [None, None]
        )
        written = run["write_bytes_by_class"]["reasoning-laden"]["hbf"]
        assert each["write_bytes_reasoning_laden_hbf"] == written
    assert results.origin["trace_source"] == document["provenance"]["trace_source"]


def test_places_that_hold_no_results(tmp_path: Path) -> None:
    assert refusal(tmp_path / "a\0b").endswith("is no name of a file")
    assert refusal(tmp_path / "absent").endswith("absent: no such folder or file")
    assert refusal(tmp_path).endswith("holds no results: no manifest.json")


def test_no_finished_run_is_no_row_and_no_report(tmp_path: Path) -> None:
    place = directory(tmp_path / "d", row())
    shard = place / "runs" / "00000.parquet"
    pq.write_table(pq.read_table(shard).slice(0, 0), shard)
    for _ in ("an empty file", "no file"):
        assert read_stored_results(place).runs.equals(run_columns().empty_table())
        assert len(lachesis.read_results(place)) == 0
        with pytest.raises(InputError, match="d: no run is finished yet"):
            execute_report(str(place), output=str(tmp_path / "d.html"), figures=None, quiet=True)
        assert not (tmp_path / "d.html").exists()
        shard.unlink(missing_ok=True)


def test_a_notebook_reads_with_the_same_checks(tmp_path: Path) -> None:
    place = directory(tmp_path / "d", row(), row(run="other", seed=7))
    assert lachesis.read_results(place).to_arrow().schema.equals(run_columns())
    shard = place / "runs" / "00000.parquet"
    whole = pq.read_table(shard)
    for broken, said in (
        (
            whole.drop_columns(["warranty_years"]),
            "00000.parquet: warranty_years, column is missing",
        ),
        (pa.concat_tables([whole, whole]), "run = .*, stands in two rows"),
    ):
        pq.write_table(broken, shard)
        with pytest.raises(InputError, match=said):
            lachesis.read_results(place)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda rows: rows.drop_columns(["policy"]), "policy, column is missing"),
        (
            lambda rows: rows.set_column(0, "run", pa.array([1, 2])),
            "run, holds int64, must hold string",
        ),
        (
            lambda rows: rows.set_column(0, "run", pa.array(["a", None])),
            "2: run, is empty",
        ),
        (
            lambda rows: rows.set_column(0, "run", pa.array(["a", "a"])),
            "run = a, stands in two rows",
        ),
        (
            lambda rows: rows.set_column(
                rows.schema.get_field_index("tpot_p99_s"),
                "tpot_p99_s",
                pa.array([1.0, float("nan")]),
            ),
            "2: tpot_p99_s = nan, must be a finite number",
        ),
    ],
)
def test_shards_of_another_kind(
    tmp_path: Path, damage: Callable[[pa.Table], pa.Table], told: str
) -> None:
    place = directory(tmp_path / "d", row(run="a"), row(run="b"))
    shard = place / "runs" / "00000.parquet"
    pq.write_table(damage(pq.read_table(shard)), shard)
    message = refusal(place)
    assert message.startswith(str(place))
    assert message.endswith(told)


def test_a_shard_that_is_cut_off(tmp_path: Path) -> None:
    place = directory(tmp_path / "d", row())
    shard = place / "runs" / "00000.parquet"
    shard.write_bytes(shard.read_bytes()[:-20])
    assert "00000.parquet: cannot be read: " in refusal(place)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is not as this build writes it"),
        ("[]", "is not as this build writes it"),
        ('{"schema": 2}', "schema = 2, this build reads version 1"),
        ('{"schema": 1, "cells": 3}', "is not as this build writes it"),
    ],
)
def test_manifests_of_another_kind(tmp_path: Path, text: str, told: str) -> None:
    place = directory(tmp_path / "d", row())
    (place / "manifest.json").write_text(text, "utf-8")
    assert told in refusal(place)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ('{"schema": 1, "workloads": []}', "neither a results directory nor the JSON of"),
        ('{"schema": 1, "runs": [], "provenance": {}}', "holds no run with its provenance"),
        ('{"schema": 3, "runs": [], "provenance": {}}', "schema = 3, this build reads version 1"),
        ('{"schema": 1, "runs": [{}], "provenance": {}}', "run 1: config_sha256, is missing"),
        ('{"schema": 1, "runs": [3], "provenance": {"overrides": [], "trace_source": "",'
         '"version": ""}}', "run 1: is no run of `lachesis run`"),
    ],
)  # fmt: skip
def test_files_that_are_no_run(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "run.json"
    file.write_text(text, "utf-8")
    assert told in refusal(file)


def test_a_comparison_alone_is_enough(tmp_path: Path) -> None:
    entry = {
        "figure": "Table 3", "name": "w: requests", "published": 200, "ours": 198,
        "deviation": -0.01, "within": True,
    }  # fmt: skip
    file = tmp_path / "comparison.json"
    file.write_text(json.dumps([entry]), "utf-8")
    results = read_stored_results(tmp_path)
    assert results.runs.num_rows == 0
    assert results.comparison == (entry,)
    del entry["within"]
    file.write_text(json.dumps([entry]), "utf-8")
    assert refusal(tmp_path).endswith("comparison.json: entry 1: within, is missing")


@pytest.mark.parametrize("shards", [-1, 0, 10**12])
def test_no_more_shards_than_can_be_are_looked_for(shards: int, tmp_path: Path) -> None:
    place = directory(tmp_path, row())
    manifest = json.loads((place / "manifest.json").read_text())
    (place / "manifest.json").write_text(json.dumps({**manifest, "shards": shards}))
    told = refusal(place)
    assert "shard" in told
    assert "manifest.json" in told


def test_a_number_beyond_its_column_is_refused(tmp_path: Path) -> None:
    place = directory(tmp_path, row())
    file = place / "runs" / "00000.parquet"
    runs = pq.read_table(file)
    where = runs.schema.get_field_index("load_sessions")
    huge = pa.array([2**64 - 1] * runs.num_rows, pa.uint64())
    pq.write_table(runs.set_column(where, "load_sessions", huge), file)
    assert "load_sessions" in refusal(place)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"runs": ["\\ud800"]}', "holds what is no character"),
        ('{"runs": ' + "9" * 5_000 + "}", "is no JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
    ids=["half a character", "a number of 5,000 digits", "deep"],
)
def test_json_that_no_page_can_hold(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(text)
    assert told in refusal(file)
    (tmp_path / "comparison.json").write_text(text)
    assert told in refusal(tmp_path)


def test_a_device_is_not_read(tmp_path: Path) -> None:
    assert "is a device" in refusal(Path("/dev/zero"))

"""A flash device trace holds exactly what the run wrote to flash, and nothing over anything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyarrow import csv

from lachesis.errors import InputError
from lachesis.presets import Settings
from lachesis.results.export import write_flash_trace
from lachesis.simulation import Load, Plan, Stopping
from lachesis.traces import open_trace

STOPPING = Stopping(turnovers=1e9, warm_up_turnovers=0.0, horizon_s=240.0, fixed=True)
PLAN = Plan(Settings.choose(memory="2/6"), stopping=STOPPING, aged=False)
LOAD = Load.parse("200")
BLOCK_BYTES = 16 * 196_608


@pytest.fixture(scope="module", params=["hbf-only", "lachesis-deterministic"])
def exported(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("flash") / f"{request.param}.csv"
    trace = open_trace("multi-agent")
    totals, told = write_flash_trace(trace, PLAN, request.param, LOAD, path)
    return path, totals, told.replays[0].measured


def export_again(exported, path: Path, gpu: int | None = None) -> None:
    policy = exported[0].stem
    write_flash_trace(open_trace("multi-agent"), PLAN, policy, LOAD, path, gpu=gpu)


def written_to_flash(measured) -> dict[str, int]:
    whole = measured["whole"]
    return {
        name: 196_608
        * (whole["materialised_tokens"][name][1] + whole["rematerialised_tokens"][name][1])
        for name in whole["materialised_tokens"]
    }


def test_bytes_are_those_that_the_run_counts(exported):
    path, totals, measured = exported
    lines = csv.read_csv(path)
    writes = lines.filter(np.array(lines["op"].to_pylist()) == "write")
    by_class = dict.fromkeys(totals.bytes_by_class, 0)
    for name, size in zip(writes["stream"].to_pylist(), writes["size"].to_pylist(), strict=True):
        by_class[name] += size
    assert by_class == written_to_flash(measured) == dict(totals.bytes_by_class)
    assert totals.written_bytes > 1e11
    assert totals.records["write"] == len(writes)
    assert totals.records["trim"] == len(lines) - len(writes) > 0


def test_nothing_is_written_twice_without_a_trim(exported):
    """Token by token: what a trim frees was written, and what is written was free."""
    path, _, measured = exported
    lines = csv.read_csv(path)
    time_ns = lines["timestamp_ns"].to_numpy()
    assert (np.diff(time_ns) >= 0).all()
    capacity = PLAN.settings.kv_capacity().hbf_blocks
    is_written = np.zeros(8 * capacity * 16, dtype=bool)
    columns = (lines[name].to_pylist() for name in ("op", "address", "size"))
    for operation, address, size in zip(*columns, strict=True):
        assert address % 196_608 == size % 196_608 == 0
        tokens = is_written[address // 196_608 : (address + size) // 196_608]
        if operation == "write":
            assert not tokens.any()
            tokens[:] = True
        else:
            assert address % BLOCK_BYTES == size % BLOCK_BYTES == 0
            assert tokens.reshape(-1, 16).any(axis=1).all()
            tokens[:] = False
    held = is_written.reshape(8, -1, 16).any(axis=2).sum(axis=1)
    free = np.array([blocks[1] for blocks in measured["free_blocks"]])
    # Blocks drawn for the step at which the run ended hold nothing yet.
    assert (held <= capacity - free).all()
    assert (capacity - free - held).max() <= 2048


def test_prompts_are_written_before_a_window_is_measured(tmp_path: Path):
    """Under hbm-only a run that has settled writes nothing to flash; the file begins earlier."""
    trace, load = open_trace("tau3-airline"), Load.parse("8")
    plan = Plan(Settings.choose(memory="2/6"), stopping=Stopping(turnovers=2.0), aged=False)
    totals, told = write_flash_trace(trace, plan, "hbm-only", load, tmp_path / "prompts.csv")
    (replay,) = told.replays
    (written,) = (size for size in totals.bytes_by_class.values() if size)
    assert dict(totals.bytes_by_class)["prompt"] == written
    assert dict(totals.bytes_by_class) == written_to_flash(replay.measured)
    window = replay.measured["window"]
    assert sum(hbf for _, hbf in window["materialised_tokens"].values()) == 0
    assert sum(hbf for _, hbf in window["rematerialised_tokens"].values()) == 0
    # One copy a GPU, each before the window.
    lines = csv.read_csv(tmp_path / "prompts.csv").to_pylist()
    assert {line["op"] for line in lines} == {"write"}
    assert len(lines) == len({line["address"] for line in lines}) == 8
    assert max(line["timestamp_ns"] for line in lines) < 1e9 * replay.measured["window_start_s"]


def test_one_gpu_is_its_part_of_the_node(exported, tmp_path):
    gpu_bytes = PLAN.settings.kv_capacity().hbf_blocks * BLOCK_BYTES
    export_again(exported, tmp_path / "one.csv", gpu=3)
    own = [
        row | {"address": row["address"] - 3 * gpu_bytes}
        for row in csv.read_csv(exported[0]).to_pylist()
        if row["address"] // gpu_bytes == 3
    ]
    assert own
    assert csv.read_csv(tmp_path / "one.csv").to_pylist() == own


def test_an_aged_memory_is_trimmed_before_it_is_written(tmp_path: Path):
    path = tmp_path / "aged.csv"
    plan = Plan(Settings.choose(memory="2/6"), stopping=STOPPING, aged=True)
    totals, told = write_flash_trace(open_trace("multi-agent"), plan, "hbm-first", LOAD, path)
    assert dict(totals.bytes_by_class) == written_to_flash(told.replays[0].measured)
    first = csv.read_csv(path).to_pylist()[0]
    assert first["op"] == "trim"


def test_equal_runs_give_equal_bytes(exported, tmp_path):
    export_again(exported, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == exported[0].read_bytes()


@pytest.mark.parametrize(("load", "gpu", "field"), [("auto", None, "--load"), ("8", 8, "--gpu")])
def test_what_has_no_meaning_is_refused(tmp_path, load, gpu, field):
    trace = open_trace("tau3-airline")
    with pytest.raises(InputError) as refused:
        write_flash_trace(trace, PLAN, "hbf-only", Load.parse(load), tmp_path / "no.csv", gpu=gpu)
    assert refused.value.field == field
    assert not (tmp_path / "no.csv").exists()

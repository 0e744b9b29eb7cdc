"""``lachesis sweep``: results, interruptions of every kind, and going on after them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lachesis.results.directory import read_manifest
from lachesis.results.results_directory import read_stored_results
from lachesis.results.rows import run_columns

SPECIFICATION = """
title = "Small"
timeline_interval = "600s"

[defaults]
turnovers = 2

[grid]
trace = "tau3-airline"
memory = ["1/7", "2/6"]
load = {loads}
"flash.pe_cycles" = [30_000, 100_000]
"""


@pytest.fixture
def specification(tmp_path: Path) -> Path:
    file = tmp_path / "spec.toml"
    file.write_text(SPECIFICATION.format(loads="[4, 8]"))
    return file


def contents(directory: Path) -> dict[str, bytes]:
    """Every file of the results but the manifest, which holds timings."""
    return {
        str(file.relative_to(directory)): file.read_bytes()
        for file in sorted(directory.rglob("*"))
        if file.is_file() and file.name not in ("manifest.json", ".lock")
    }


def test_a_sweep_leaves_a_row_a_run_and_says_what_lives_longest(lachesis_here, specification):
    ended = lachesis_here("sweep", str(specification), "-o", "out")
    assert ended.code == 0, ended.err
    assert "16 runs in 8 cells; 8 cells run now" in " ".join(ended.out.split())
    assert "questions in which several policies compete" in " ".join(ended.out.split())
    assert max(len(line) for line in ended.out.splitlines()) <= 80
    runs = read_stored_results("out").runs
    assert runs.schema.equals(run_columns())
    assert runs.num_rows == len(set(runs["run"].to_pylist())) == 16
    assert set(runs["overrides"].to_pylist()[0]) == {"turnovers=2.0", "flash.pe_cycles=30000"}
    assert all(gain is not None for gain in runs["gain_over_hbm_first"].to_pylist())
    timelines = read_stored_results("out").timelines
    assert set(timelines["run"].to_pylist()) == set(runs["run"].to_pylist())
    assert timelines.column_names[:7] == [
        "run", "trace", "model", "memory", "slo", "policy", "seed",
    ]  # fmt: skip
    manifest = read_manifest("out")
    assert manifest.counts() == {"done": 8, "infeasible": 0, "failed": 0, "pending": 0}
    assert all(cell.wall_s > 0 for cell in manifest.cells)
    model = manifest.presets["model"]["llama-4-maverick"]["values"]
    assert model["hidden"]["source"]
    assert Path("out/specification.toml").read_text() == specification.read_text()
    lifetimes = pq.read_table("out/lifetimes.parquet")
    assert lifetimes.column_names == [
        "trace", "class", "quantile", "t_norm_s", "tokens_per_segment", "segments",
    ]  # fmt: skip


def test_threads_change_no_byte(lachesis_here, specification):
    for jobs in ("1", "2", "16"):
        ended = lachesis_here(
            "sweep", str(specification), "-o", f"out{jobs}", "--jobs", jobs, "--quiet"
        )
        assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert contents(Path("out1")) == contents(Path("out2")) == contents(Path("out16"))


def start(specification: Path, directory: Path) -> subprocess.Popen[str]:
    """Begins a sweep in a process of its own, and waits until its first results are there."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lachesis", "sweep", str(specification), "-o", str(directory),
         "--jobs", "1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    waited = time.monotonic()
    while not list((directory / "runs").glob("[0-9]*.parquet")):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() - waited < 100
        time.sleep(0.002)
    return process


@pytest.fixture
def long_specification(tmp_path: Path) -> Path:
    file = tmp_path / "long.toml"
    file.write_text(SPECIFICATION.format(loads="{from = 4, to = 11}"))
    return file


def test_killed_and_resumed_it_leaves_the_same_bytes(lachesis_here, long_specification, tmp_path):
    process = start(long_specification, tmp_path / "killed")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    present = len(list((tmp_path / "killed/runs").glob("[0-9]*.parquet")))
    assert 1 <= present < 32, "the sweep was over before it could be killed"
    ended = lachesis_here("sweep", str(long_specification), "-o", "killed")
    assert ended.code == 0, ended.err
    assert f"{present} were there" in " ".join(ended.out.split())
    assert lachesis_here("sweep", str(long_specification), "-o", "whole", "--quiet").code == 0
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_interrupted_it_says_how_to_go_on(lachesis_here, long_specification, tmp_path):
    process = start(long_specification, tmp_path / "out")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"go on with: lachesis sweep {long_specification} -o {tmp_path / 'out'}" in said
    assert "Traceback" not in said
    counted = read_manifest(tmp_path / "out").counts()
    assert counted["done"] == len(list((tmp_path / "out/runs").glob("[0-9]*.parquet")))
    assert counted["pending"] > 0
    assert lachesis_here("sweep", str(long_specification), "-o", "out", "--quiet").code == 0
    assert read_manifest("out").counts() == {"done": 32, "infeasible": 0, "failed": 0, "pending": 0}


def test_a_second_sweep_in_the_same_directory_is_refused(
    lachesis_here, long_specification, tmp_path
):
    process = start(long_specification, tmp_path / "out")
    try:
        ended = lachesis_here("sweep", str(long_specification), "-o", "out")
        assert process.poll() is None, "the first sweep ended too soon for this test"
    finally:
        process.kill()
        process.communicate()
    assert ended.code == 2
    assert "another sweep is running in this directory" in ended.err


def test_what_is_there_is_not_run_again(lachesis_here, specification):
    lachesis_here("sweep", str(specification), "-o", "out", "--quiet")
    before = contents(Path("out"))
    Path("out/runs/00003.parquet").unlink()
    Path("out/timelines/00005.parquet").unlink()
    ended = lachesis_here("sweep", str(specification), "-o", "out")
    assert "2 cells run now" in ended.out
    assert contents(Path("out")) == before
    # How the specification is written does not matter; what it asks for does.
    specification.write_text(
        "# a remark\n" + specification.read_text().replace("[4, 8]", '["4", 8]')
    )
    assert lachesis_here("sweep", str(specification), "-o", "out", "--quiet").code == 0


def test_results_of_something_else_are_refused(lachesis_here, specification, small_log):
    mine = Path("mine.toml")
    mine.write_text('[grid]\ntrace = "small.jsonl"\nload = 2\nturnovers = 2\n')
    assert lachesis_here("sweep", "mine.toml", "-o", "out", "--quiet").code == 0

    ended = lachesis_here("sweep", str(specification), "-o", "out")
    assert ended.code == 2
    assert "another specification" in ended.err
    assert "--restart" in ended.err

    small_log.write_text(small_log.read_text().replace("400", "401"))
    ended = lachesis_here("sweep", "mine.toml", "-o", "out")
    assert ended.code == 2
    assert "the trace has changed since" in ended.err

    manifest = json.loads(Path("out/manifest.json").read_text())
    Path("out/manifest.json").write_text(json.dumps({**manifest, "version": "0.0.1"}))
    ended = lachesis_here("sweep", "mine.toml", "-o", "out")
    assert ended.code == 2
    assert "holds results of version 0.0.1" in ended.err

    assert lachesis_here("sweep", "mine.toml", "-o", "out", "--restart", "--quiet").code == 0
    assert read_stored_results("out").runs.num_rows == 2


def test_a_damaged_file_is_named(lachesis_here, specification):
    lachesis_here("sweep", str(specification), "-o", "out", "--quiet")
    file = Path("out/runs/00002.parquet")
    file.write_bytes(file.read_bytes()[:-100])
    ended = lachesis_here("sweep", str(specification), "-o", "out")
    assert ended.code == 2
    assert "out/runs/00002.parquet: cannot be read" in ended.err
    assert "delete it" in ended.err
    Path("out/runs/00001.parquet").replace(file)
    ended = lachesis_here("sweep", str(specification), "-o", "out")
    assert "belongs to another sweep" in ended.err


def test_a_folder_of_somebody_else_is_left_alone(lachesis_here, specification, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.tex").write_text("x")
    for more in ([], ["--restart"]):
        ended = lachesis_here("sweep", str(specification), "-o", "out", *more)
        assert ended.code == 2
        assert "holds thesis.tex and no results" in ended.err
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["thesis.tex"]


def test_nothing_runs_when_a_trace_cannot_be_read(lachesis_here):
    Path("spec.toml").write_text('[grid]\ntrace = ["tau3-airline", "absent.jsonl"]\nload = 2\n')
    ended = lachesis_here("sweep", "spec.toml", "-o", "out")
    assert ended.code == 2
    assert "absent.jsonl" in ended.err
    assert not list(Path("out").glob("runs/*"))


def test_what_cannot_be_run_is_a_row_with_its_reason_and_sinks_no_other(lachesis_here, tmp_path):
    log = [
        {"session": "a", "turn": 0, "input_tokens": 400, "output_tokens": 40},
        {"session": "b", "turn": 0, "input_tokens": 9_000_000, "output_tokens": 40},
    ]
    Path("log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in log))
    # Without flash the weights of the second model do not fit, and flash alone holds nothing; a
    # session of the log is larger than any HBM.
    Path("spec.toml").write_text(
        'timeline_interval = "600s"\n'
        '[grid]\ntrace = ["tau3-airline", "log.jsonl"]\nload = 2\nturnovers = 2\n'
        'model = ["llama-4-maverick", "kimi-k2"]\npolicy = ["hbm-only", "hbf-only"]\n'
        'memory = ["2/6", "8/0"]\n"hardware.hbm_gb_per_stack" = 20\n'
    )
    ended = lachesis_here("sweep", "spec.toml", "-o", "out")
    assert ended.code == 0, ended.err
    rows = read_stored_results("out").runs.to_pylist()
    assert len(rows) == 16
    found = {
        (row["trace"], row["model"], row["memory"], row["policy"]): row["reason"]
        for row in rows
        if row["status"] == "infeasible"
    }
    assert all((row["requests"] is None) == (row["status"] == "infeasible") for row in rows)
    too_large = found[("log.jsonl", "llama-4-maverick", "2/6", "hbm-only")]
    assert too_large.startswith("log.jsonl: session b, request 0: needs 562503 KV blocks at once")
    weights = {
        reason for (_, model, memory, _), reason in found.items()
        if (model, memory) == ("kimi-k2", "8/0")
    }  # fmt: skip
    assert len(weights) == 1
    assert "memory = 8/0, weights of kimi-k2 take" in weights.pop()
    assert len(found) == 9
    manifest = read_manifest("out")
    counted = manifest.counts()
    assert counted == {"done": 8 - counted["infeasible"], "infeasible": counted["infeasible"],
                       "failed": 0, "pending": 0}  # fmt: skip
    told = [reason for entry in manifest.cells for reason in entry.infeasible.values()]
    assert sorted(told) == sorted(found.values())
    said = " ".join(ended.out.split())
    assert f"{16 - len(found)} runs in 8 cells" in said
    assert f"{len(found)} runs cannot be run, and are left out: memory = 8/0" in said
    measured = {row["run"] for row in rows if row["status"] == "measured"}
    assert set(read_stored_results("out").timelines["run"].to_pylist()) <= measured

    # It is not tried again, and gives the same bytes with other threads.
    before = contents(Path("out"))
    again = lachesis_here("sweep", "spec.toml", "-o", "out")
    assert again.code == 0
    assert "none run now" in again.out
    assert read_manifest("out").counts() == counted
    assert contents(Path("out")) == before
    assert lachesis_here("sweep", "spec.toml", "-o", "out1", "--jobs", "1", "--quiet").code == 0
    assert contents(Path("out1")) == before

    # The page is about the others, and says so.
    ended = lachesis_here("report", "out", "-o", "out.html", "--figures", "figures")
    assert ended.code == 0, ended.err
    assert f"{len(found)} runs cannot be run, and are left out" in " ".join(ended.out.split())
    assert "Runs that cannot be run, and why" in Path("out.html").read_text()


def test_a_sweep_of_which_nothing_can_be_run_is_refused(lachesis_here):
    Path("spec.toml").write_text(
        '[grid]\ntrace = "tau3-airline"\nload = 2\nmodel = "kimi-k2"\nmemory = "8/0"\n'
        '"hardware.hbm_gb_per_stack" = [10, 20]\n'
    )
    ended = lachesis_here("sweep", "spec.toml", "-o", "out")
    assert ended.code == 2
    assert "spec.toml: [grid]: memory = 8/0, weights of kimi-k2 take" in ended.err
    assert not Path("out").exists()


def test_a_policy_that_raises_fails_and_is_tried_again(lachesis, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from lachesis.policy import PythonPolicy\n\n\nclass Mine(PythonPolicy):\n"
        '    """Fails."""\n\n    def segment_opened(self, segment, node):\n'
        '        raise RuntimeError("no")\n'
    )
    (tmp_path / "spec.toml").write_text(
        '[grid]\ntrace = "tau3-airline"\nload = 2\nturnovers = 2\n'
        'policy = ["mine:Mine", "hbf-only"]\n'
    )
    for told in ("1 cell run now", "1 cell run now"):
        ended = lachesis("sweep", "spec.toml", "-o", "out", cwd=tmp_path)
        assert ended.code == 1
        assert told in " ".join(ended.out.split())
        assert "1 of 2 runs failed, the first (mine:Mine):" in ended.err
        assert read_stored_results(tmp_path / "out").runs["policy"].to_pylist() == ["hbf-only"]
        assert read_manifest(tmp_path / "out").counts()["failed"] == 1


def test_a_policy_that_was_rewritten_is_noticed(lachesis, tmp_path):
    policy = tmp_path / "mine.py"
    source = (
        "from lachesis.policy import PythonPolicy\n\n\nclass Mine(PythonPolicy):\n"
        '    """All to flash."""\n\n    def segment_opened(self, segment, node):\n'
        '        return "hbf"\n'
    )
    policy.write_text(source)
    (tmp_path / "spec.toml").write_text(
        '[grid]\ntrace = "tau3-airline"\nload = 2\nturnovers = 2\n'
        'policy = ["mine:Mine", "hbf-only"]\n'
    )
    first = lachesis("sweep", "spec.toml", "-o", "out", "--quiet", cwd=tmp_path)
    assert first.code == 0, first.err
    policy.write_text(source.replace("All to flash", "Still all to flash"))
    again = lachesis("sweep", "spec.toml", "-o", "out", cwd=tmp_path)
    assert again.code == 2
    assert "policy file has changed" in again.err


def test_searches_that_start_from_a_neighbours_load_change_no_byte(lachesis_here, small_log):
    # Which neighbour has ended first depends on the threads; what is found does not.
    Path("spec.toml").write_text(
        '[grid]\ntrace = "small.jsonl"\nload = "auto"\nturnovers = 2\nseed = [1, 2]\n'
        '"hardware.max_sequences" = [6, 8]\n"slo.ttft_p99_s" = 1.5\n'
    )
    for jobs in ("1", "3"):
        assert lachesis_here("sweep", "spec.toml", "-o", f"out{jobs}", "--jobs", jobs).code == 0
    assert contents(Path("out1")) == contents(Path("out3"))
    admitted = read_stored_results("out1").runs["admitted_sessions"].to_pylist()
    assert all(sessions > 1 for sessions in admitted)
    assert len(set(admitted)) > 1

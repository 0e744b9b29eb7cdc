"""Every command as users start it: its output, its files, and how it can be stopped."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest

from lachesis.results import run_schema

Lachesis = Callable[..., tuple[int, str, str]]
SHORT = ("tau3-airline", "--load", "8", "--turnovers", "2")


def without_wall_times(text: str) -> dict[str, object]:
    document: dict[str, list[dict[str, object]]] = json.loads(text)
    for run in document["runs"]:
        assert run.pop("wall_s") > 0.0
    return document


def test_help_names_every_command_and_is_quick(lachesis: Lachesis, tmp_path: Path) -> None:
    code, out, err = lachesis("--help", cwd=tmp_path)
    assert (code, err) == (0, "")
    for name in ("run", "presets", "trace"):
        assert f"│ {name} " in out
    for name in (("run",), ("presets",), ("trace", "import"), ("trace", "validate")):
        code, out, err = lachesis(*name, "--help", cwd=tmp_path)
        assert (code, err) == (0, "")
        assert max(len(line) for line in out.splitlines()) <= 80


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    program = (
        "import sys; from lachesis.cli.entry import execute; execute(['run', '--help']);"
        "print(sorted({'pyarrow', 'numpy', 'matplotlib'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"


def test_run_prints_a_table_and_writes_json_and_plot(lachesis: Lachesis, tmp_path: Path) -> None:
    code, out, err = lachesis(
        "run", *SHORT, "--json", "out.json", "--plot", "out.png", cwd=tmp_path
    )
    assert (code, err) == (0, "")
    assert max(len(line) for line in out.splitlines()) <= 80
    assert "lachesis-deterministic" in out
    assert "The flash lasts" in out
    document = json.loads((tmp_path / "out.json").read_text())
    jsonschema.validate(document, run_schema())
    assert document["provenance"]["command"] == (
        "lachesis run tau3-airline --load 8 --turnovers 2.0"
    )
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in tmp_path.iterdir()} == {"out.json", "out.png"}


def test_json_to_standard_output_leaves_it_to_json(lachesis: Lachesis, tmp_path: Path) -> None:
    code, out, err = lachesis("run", *SHORT, "--json", "-", cwd=tmp_path)
    assert code == 0
    assert json.loads(out)["schema"] == 1
    assert "The flash lasts" in err


def test_the_same_command_gives_the_same_json_with_any_threads(
    lachesis: Lachesis, tmp_path: Path
) -> None:
    words = ("run", "tau3-airline", "--turnovers", "2", "--tpot", "40ms", "--quiet", "--json", "-")
    texts = [
        lachesis(*words, *more, cwd=tmp_path)[1]
        for more in ((), ("--threads", "1"), ("--threads", "2"))
    ]
    first = without_wall_times(texts[0])
    assert first["provenance"]["searches"][0]["admitted_sessions"] > 1  # type: ignore[index]
    assert without_wall_times(texts[1]) == first
    assert without_wall_times(texts[2]) == first
    # Also in the order of keys, since people compare files.
    assert json.dumps(without_wall_times(texts[1])) == json.dumps(first)


def test_another_seed_gives_another_result(lachesis_here: Lachesis) -> None:
    outs = [
        lachesis_here("run", *SHORT, "--quiet", "--json", "-", "--seed", seed)[1]
        for seed in ("1", "2")
    ]
    one, two = (json.loads(out) for out in outs)
    assert one["provenance"]["config_sha256"] != two["provenance"]["config_sha256"]
    assert one["runs"][0]["hbf_lifetime_years"] != two["runs"][0]["hbf_lifetime_years"]


def test_each_searches_under_every_policy(lachesis_here: Lachesis) -> None:
    _, out, _ = lachesis_here(
        "run", "tau3-airline", "--load", "each", "--tpot", "38ms", "--turnovers", "1",
        "--policy", "hbm-first", "--policy", "hbf-only", "--threads", "2",
        "--quiet", "--json", "-",
    )  # fmt: skip
    document = json.loads(out)
    searches = {
        search["policy"]: search["admitted_sessions"]
        for search in document["provenance"]["searches"]
    }
    assert list(searches) == ["hbm-first", "hbf-only"]
    for run in document["runs"]:
        assert run["load_sessions"] == run["admitted_sessions"] == searches[run["policy"]]


def test_an_slo_that_one_session_misses_is_a_result(lachesis_here: Lachesis) -> None:
    code, out, err = lachesis_here(
        "run", "tau3-airline", "--tpot", "1ms", "--turnovers", "2", "--json", "-"
    )
    assert code == 0
    for run in json.loads(out)["runs"]:
        assert (run["admitted_sessions"], run["load_sessions"]) == (0, 1)
        assert run["meets_slo"] is False
    assert "the SLO admits no load" in " ".join(err.split())


def test_other_arrivals(tmp_path: Path, lachesis_here: Lachesis) -> None:
    _, out, _ = lachesis_here(
        "run",
        "tau3-airline",
        "--load",
        "poisson:0.05",
        "--turnovers",
        "1",
        "--quiet",
        "--json",
        "-",
    )
    run = json.loads(out)["runs"][0]
    assert (run["load"], run["load_sessions"], run["load_sessions_per_s"]) == (
        "poisson",
        None,
        0.05,
    )
    rows = [
        {"session": name, "input_tokens": 200, "output_tokens": 20, "timestamp": 1.7e9 + start}
        for name, start in (("a", 0), ("b", 30), ("c", 3600))
    ]
    (tmp_path / "starts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, out, _ = lachesis_here("run", "starts.jsonl", "--load", "recorded", "--quiet", "--json", "-")
    run = json.loads(out)["runs"][0]
    assert (run["load"], run["requests_simulated"], run["load_sessions"]) == ("recorded", 3, None)
    assert 3600.0 < run["simulated_s"] < 3700.0


def test_options_reach_the_presets(tmp_path: Path, lachesis_here: Lachesis) -> None:
    (tmp_path / "c.toml").write_text("[flash]\npe_cycles = 30000\nwrite_amplification = 2.0\n")
    _, out, _ = lachesis_here(
        "run", *SHORT, "--config", "c.toml", "--set", "flash.pe_cycles=10000", "--cold",
        "--tpot", "80ms", "--turn-end", "next-message", "--step-overhead", "0ms",
        "--model", "qwen3-235b-a22b", "--memory", "8/8-chain", "--quiet", "--json", "-",
    )  # fmt: skip
    document = json.loads(out)
    run = document["runs"][0]
    assert (run["pe_cycles"], run["write_amplification"]) == (10000, 2.0)
    assert (run["slo"], run["slo_tpot_p99_s"]) == ("custom", 0.08)
    assert (run["model"], run["memory"], run["aged_start"]) == ("qwen3-235b-a22b", "8/8*", False)
    assert {item["key"]: item["value"] for item in document["provenance"]["overrides"]} == {
        "flash.pe_cycles": 10000,
        "flash.write_amplification": 2.0,
        "slo.tpot_p99_ms": 80.0,
        "node.turn_end": "next-message",
        "hardware.step_overhead_ms": 0.0,
    }


def test_import_then_validate_then_run(tmp_path: Path, small_log: Path, lachesis: Lachesis) -> None:
    code, out, err = lachesis(
        "trace", "import", small_log.name, "-o", "small.trace", "--json", "found.json", cwd=tmp_path
    )
    assert (code, err) == (0, "")
    assert "Wrote small.trace." in out
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["rows"]["requests"] == 5
    assert found["quality"]["reported"] == 5
    code, out, err = lachesis("trace", "validate", "small.trace", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "Every rule holds." in out
    results = [
        without_wall_times(
            lachesis("run", name, "--load", "2", "--turnovers", "2", "--quiet", "--json", "-",
                     cwd=tmp_path)[1]
        )["runs"]
        for name in ("small.jsonl", "small.trace")
    ]  # fmt: skip
    assert results[0] == results[1]


def test_columns_under_other_names(tmp_path: Path, lachesis_here: Lachesis) -> None:
    (tmp_path / "log.csv").write_text("trace_id,input_tokens,output_tokens\na,10,2\nb,20,3\n")
    code, _, err = lachesis_here(
        "trace", "import", "log.csv", "-o", "log.trace", "--map", "session=trace_id", "--quiet"
    )
    assert (code, err) == (0, "")
    names = pq.read_table(tmp_path / "log.trace" / "sessions.parquet")["session"]
    assert names.to_pylist() == ["a", "b"]


def test_generate_is_what_is_shipped_unless_asked_otherwise(
    tmp_path: Path, lachesis_here: Lachesis
) -> None:
    digests = []
    for number, words in enumerate(((), ("--seed", "7"), ("--scale", "0.5"))):
        code, out, _ = lachesis_here(
            "trace", "generate", "tau3-airline", "-o", f"{number}.trace", *words,
            "--quiet", "--json", "-",
        )  # fmt: skip
        assert code == 0
        digests.append(json.loads(out))
    _, out, _ = lachesis_here("trace", "validate", "tau3-airline", "--quiet", "--json", "-")
    assert digests[0]["trace_sha256"] == json.loads(out)["trace_sha256"]
    assert digests[1]["trace_sha256"] != digests[0]["trace_sha256"]
    assert digests[1]["rows"]["sessions"] == digests[0]["rows"]["sessions"] == 58
    assert digests[2]["rows"]["sessions"] == 29


def test_presets_show_values_with_units_and_sources(lachesis_here: Lachesis) -> None:
    code, out, err = lachesis_here("presets")
    assert (code, err) == (0, "")
    for name in ("llama-4-maverick", "rubin-hbf", "8/8*", "hbf-slc", "tight", "hbm-first", "tau3"):
        assert f" {name} " in out
    assert max(len(line) for line in out.splitlines()) <= 80
    _, out, _ = lachesis_here("presets", "hardware", "rubin-hbf")
    assert "GB/s per stack" in out
    assert "calibrated, not measured" in out
    _, out, _ = lachesis_here("presets", "memory")
    assert "1/7" in out
    assert "llama" not in out


def test_several_traces_are_one_workload(
    tmp_path: Path, small_log: Path, lachesis_here: Lachesis
) -> None:
    _, out, _ = lachesis_here(
        "run", "small.jsonl", "tau3-airline", "--load", "4", "--turnovers", "1", "--quiet",
        "--json", "-",
    )  # fmt: skip
    provenance = json.loads(out)["provenance"]
    assert provenance["trace_sessions"] == 60
    assert list(provenance["corpora"]) == ["tau3-airline"]


def test_the_reader_of_the_output_may_leave(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{sys.executable} -m lachesis presets | true"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.returncode in (0, 141)


def test_an_error_of_one_policy_stops_the_others(tmp_path: Path, lachesis_here: Lachesis) -> None:
    # 1.6 million tokens fit HBM and flash together, but not HBM alone.
    rows = [{"session": "big", "input_tokens": 1_600_000, "output_tokens": 50}]
    rows += [{"session": f"s{n}", "input_tokens": 2000, "output_tokens": 50} for n in range(200)]
    (tmp_path / "big.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    started = time.monotonic()
    code, out, err = lachesis_here(
        "run", "big.jsonl", "--load", "64", "--turnovers", "1000000", "--precision", "0.0001%",
        "--policy", "hbm-first", "--policy", "hbm-only", "--threads", "2", "--json", "out.json",
    )  # fmt: skip
    assert (code, out) == (2, "")
    assert "session big, request 0" in err
    assert "KV blocks" in err
    assert time.monotonic() - started < 10.0
    assert not (tmp_path / "out.json").exists()


def test_read_write_ratio_tells_what_was_fixed_from_the_trace(lachesis_here: Lachesis) -> None:
    _, out, _ = lachesis_here(
        "run", *SHORT, "--policy", "read-write-ratio", "--quiet", "--json", "-"
    )
    fixed = json.loads(out)["provenance"]["policies"]["read-write-ratio"]["chosen_for"]
    assert fixed["threshold_rho"] > 0.0
    assert fixed["load_sessions"] == 8


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_run_stops_within_a_second_and_leaves_nothing(
    tmp_path: Path, threads: str, number: signal.Signals, code: int, said: str
) -> None:
    words = (
        "run", "multi-agent", "--load", "1500", "--turnovers", "100000", "--precision", "0.000001",
        "--threads", threads, "--json", "out.json", "--plot", "out.png",
    )  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "lachesis", *words], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        time.sleep(4.0)
        assert process.poll() is None, "the run ended by itself: make it longer"
        asked = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        waited_s = time.monotonic() - asked
    assert (process.returncode, out, err) == (code, "", f"lachesis: {said}\n")
    assert waited_s < 1.0
    assert list(tmp_path.iterdir()) == []

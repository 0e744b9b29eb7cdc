"""The plain workloads hold what their description says."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from lachesis.policy import choose_policy
from lachesis.presets import Settings, apply_overrides
from lachesis.simulation import Load, Plan, replay, to_workload
from lachesis.traces import open_trace

_FILE = Path(__file__).parents[3] / "benches" / "plain_workloads.py"
_SPEC = importlib.util.spec_from_file_location("plain_workloads", _FILE)
plain_workloads = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(plain_workloads)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return plain_workloads.write_workloads(tmp_path_factory.mktemp("plain"), scale=0.05)


def input_tokens(trace, *, written: bool) -> int:
    spans = trace.spans
    kept = spans.filter(np.array(spans["written"].to_pylist()) == written)
    return sum(kept["tokens"].to_pylist())


def test_w1_is_a_poisson_process_of_equal_requests(files):
    trace = open_trace(str(files["W1"]))
    assert len(trace) == trace.requests.num_rows == 500
    assert set(trace.requests["output_tokens"].to_pylist()) == {256}
    assert input_tokens(trace, written=True) == 500 * 2_048
    gaps_s = np.diff(np.sort(trace.requests["start_s"].to_numpy()))
    assert gaps_s.mean() == pytest.approx(0.25, rel=0.15)
    assert gaps_s.std() == pytest.approx(gaps_s.mean(), rel=0.2)


@pytest.mark.parametrize(("name", "sessions", "turns"), [("W3", 10, 10), ("W3L", 50, 20)])
def test_w3_grows_by_1024_a_turn(files, name, sessions, turns):
    trace = open_trace(str(files[name]))
    assert (len(trace), trace.requests.num_rows) == (sessions, sessions * turns)
    contexts = [4_096 + 1_024 * turn for turn in range(turns)]
    new = 4_096 + (turns - 1) * (1_024 - 256)
    assert input_tokens(trace, written=True) == sessions * new
    assert input_tokens(trace, written=False) == sessions * (sum(contexts) - new)
    delays = {edge["delay_s"] for after in trace.requests["after"].to_pylist() for edge in after}
    assert delays == {2.0}


@pytest.mark.parametrize("name", ["W1", "W3", "W3L"])
def test_every_request_is_replayed_once(files, name):
    trace = open_trace(str(files[name]))
    plan = Plan(apply_overrides(Settings.choose(), ["node.gpus=1"]))
    run = replay(
        to_workload(trace, recorded=True), plan, choose_policy("hbm-first"), Load.parse("recorded")
    )
    whole = run.measured["whole"]
    assert whole["requests"] == trace.requests.num_rows
    assert whole["output_tokens"] == 256 * trace.requests.num_rows
    assert run.measured["repeats"] == 1.0


def test_equal_arguments_give_equal_bytes(files, tmp_path):
    again = plain_workloads.write_workloads(tmp_path, scale=0.05)
    assert {name: path.read_bytes() for name, path in again.items()} == {
        name: path.read_bytes() for name, path in files.items()
    }

"""A load whose contexts no memory holds: the run ends, and says why."""

import pytest

from lachesis.presets import Settings, apply_overrides
from lachesis.results import run_document
from lachesis.simulation import Load, Plan, Stopping, compare
from lachesis.traces import open_trace

LOAD = Load("closed", sessions=2000)


def small_memory(policy, *, hbf_gb):
    changes = ["node.gpus=1", f"hardware.hbf_gb_per_stack={hbf_gb}", "hardware.max_sequences=4096"]
    settings = apply_overrides(Settings.choose(memory="1/7"), changes)
    plan = Plan(settings, stopping=Stopping(turnovers=3.0, precision=0.2))
    return run_document(compare(open_trace("tau3-airline"), plan, [policy], LOAD))["runs"][0]


def test_ends_early_where_sessions_hold_all_of_memory():
    run = small_memory("lachesis-deterministic", hbf_gb=160)
    assert any(warning.startswith("stuck: ") for warning in run["warnings"])
    assert run["session_losses"] > 0
    assert not run["settled"]
    assert not run["meets_slo"]


@pytest.mark.parametrize(("policy", "hbf_gb"), [("lachesis-deterministic", 2048)])
def test_a_node_that_has_the_memory_is_not_stuck(policy, hbf_gb):
    run = small_memory(policy, hbf_gb=hbf_gb)
    assert not any(warning.startswith("stuck: ") for warning in run["warnings"])
    assert run["turnovers"] > 0

"""The search for the load against an exhaustive one, on the engine itself."""

import pytest

from lachesis.policy import choose_policy
from lachesis.presets import Settings, apply_overrides
from lachesis.simulation import (
    Load,
    Plan,
    SearchPrecision,
    Stopping,
    compare,
    replay,
    to_workload,
)
from lachesis.traces import open_trace

SEARCH = SearchPrecision(turnovers=3.0)


def small_node(tpot_ms, seed):
    """A node so small, with a step so dear, that its SLO admits some tens of sessions."""
    changes = [f"slo.tpot_p99_ms={tpot_ms}", "node.gpus=2", "hardware.step_overhead_ms=20"]
    settings = apply_overrides(Settings.choose(), changes)
    return Plan(settings, seed=seed, stopping=Stopping(turnovers=1.0))


def exhaustive(trace, plan):
    """The smallest N such that N passes and N + 1 fails, by trying every load from 1."""
    workload, cost, policy = to_workload(trace), plan.cost(), choose_policy("hbm-first")
    requests = workload.requests / workload.sessions
    sessions = 0
    while True:
        measured = plan.with_stopping(SEARCH.deciding(sessions + 1, requests))
        load = Load("closed", sessions=sessions + 1)
        if not replay(workload, measured, policy, load, cost=cost).meets_slo:
            return sessions
        sessions += 1


@pytest.mark.parametrize(
    ("corpus", "tpot_ms", "seed"),
    [
        ("webarena", 28.0, 1),
        ("webarena", 33.0, 2),
        ("appworld", 36.0, 3),
        ("tau3-airline", 29.0, 4),
    ],
)
def test_finds_the_load_that_an_exhaustive_search_finds_warm_start_or_not(corpus, tpot_ms, seed):
    trace, plan = open_trace(corpus), small_node(tpot_ms, seed)
    expected = exhaustive(trace, plan)
    assert 2 <= expected <= 200, "a case that shows nothing"
    for guess in (None, 2, 300):
        outcome = compare(trace, plan, ["hbm-first"], search=SEARCH, guess=guess)
        assert outcome.searches[0].sessions == expected

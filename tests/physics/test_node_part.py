"""A few GPUs that stand for a node: their price, their share of the load, and what comes out."""

import pytest

from lachesis.errors import InputError
from lachesis.presets import Settings, apply_overrides
from lachesis.results.measures import run_object
from lachesis.simulation import Load, NodePart, Plan, Stopping, compare, step_cost
from lachesis.traces import open_trace


@pytest.mark.parametrize("path", ["pooled", "per-tier"])
def test_the_shared_part_is_priced_at_the_batch_of_the_node(path):
    settings = apply_overrides(Settings.choose(), [f"node.read_path={path}"])
    whole, part = step_cost(settings), step_cost(settings, part=NodePart(2, slowest=1.25))
    slots = settings.hardware.max_sequences
    assert len(part.shared_ps) == 2 * slots + 1
    assert [part.shared_ps[batch] for batch in (1, 7, 2 * slots)] == [
        whole.shared_ps[4 * batch] for batch in (1, 7, 2 * slots)
    ]
    for batch in (1, 64, slots):
        assert part.local_ps[batch] == pytest.approx(1.25 * whole.local_ps[batch], abs=1)
    assert part.context_ps == pytest.approx(1.25 * whole.context_ps, abs=1)
    assert part.flush_ps == pytest.approx(1.25 * whole.flush_ps, abs=1)
    assert part.overhead_ps == whole.overhead_ps
    assert (part.tier_reads_ps is None) == (path == "pooled")
    if path == "per-tier":
        (full, _), (longer, _) = whole.tier_reads_ps, part.tier_reads_ps
        assert list(longer) == [pytest.approx(1.25 * price, abs=1) for price in full]


def test_writes_may_take_longer_than_reads():
    settings = Settings.choose(memory="2/6")
    part = NodePart(1, slowest=1.25, slowest_writes=3.0)
    whole, longer = step_cost(settings), step_cost(settings, part=part)
    assert longer.flush_ps == pytest.approx(3.0 * whole.flush_ps, abs=2)
    assert longer.context_ps == pytest.approx(1.25 * whole.context_ps, abs=1)
    assert longer.local_ps[64] == pytest.approx(1.25 * whole.local_ps[64], abs=1)
    assert list(longer.shared_ps) == list(step_cost(settings, part=NodePart(1, 1.25)).shared_ps)


def test_the_duty_of_landing_is_that_of_one_gpu_however_its_writes_are_priced():
    trace = open_trace("tau3-retail")
    stopping = Stopping(turnovers=4.0, warm_up_turnovers=1.0, fixed=True)
    settings = apply_overrides(Settings.choose(memory="2/6"), ["node.landing=async"])
    duties = []
    for part in (None, NodePart(2, slowest=1.1, slowest_writes=3.0)):
        plan = Plan(settings, stopping=stopping, part=part)
        comparison = compare(trace, plan, ["hbm-first"], Load.parse("400"))
        duties.append(run_object(comparison, comparison.replays[0])["landing_duty"])
    assert duties[1] == pytest.approx(duties[0], rel=0.05)


def test_a_part_must_divide_the_node():
    with pytest.raises(InputError, match="must divide the 8 GPUs of the node"):
        Plan(Settings.choose(), part=NodePart(3))
    with pytest.raises(InputError, match="must divide"):
        Plan(Settings.choose(), part=NodePart(0))


@pytest.mark.parametrize("policy", ["hbm-first", "lachesis-deterministic"])
def test_at_a_constant_step_a_part_wears_flash_as_the_node_does(policy):
    """Nothing couples GPUs then, so that two of them are a sample of eight."""
    trace = open_trace("tau3-retail")
    stopping = Stopping(turnovers=8.0, warm_up_turnovers=2.0, fixed=True)
    found = []
    for part in (None, NodePart(2)):
        plan = Plan(Settings.choose(memory="2/6"), step_time_s=0.05, stopping=stopping, part=part)
        comparison = compare(trace, plan, [policy], Load.parse("400"))
        found.append(run_object(comparison, comparison.replays[0]))
    whole, part = found
    for name in ("hbf_lifetime_years", "hbm_write_share", "hbf_write_bytes_per_s_per_gpu"):
        assert part[name] == pytest.approx(whole[name], rel=0.05), name
    assert part["sessions"] == pytest.approx(whole["sessions"] / 4, rel=0.05)
    assert part["load_sessions"] == whole["load_sessions"] == 400
    assert "2 of the node's 8 GPUs were simulated" in part["notes"]
    assert "2 of the node's 8 GPUs were simulated" not in whole["notes"]

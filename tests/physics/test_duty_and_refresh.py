"""Device-years when the node serves part of the time, and when flash is refreshed: closed forms."""

import pytest

from lachesis.results.document import run_objects
from lachesis.simulation import Load, LoadedTrace, RunOptions, compare
from lachesis.traces import open_trace

SECONDS_PER_YEAR = 31_557_600


@pytest.fixture(scope="module")
def trace():
    return LoadedTrace(open_trace("tau3-airline"))


def run(trace, policy, *changes, memory="2/6"):
    options = RunOptions(traces=("tau3-airline",), memory=memory, turnovers=2.0, set=changes)
    comparison = compare(trace, options.plan(), [policy], Load.parse("16"))
    (found,) = run_objects(comparison)
    return found, comparison.plan.settings


def test_a_node_that_serves_two_fifths_of_the_time_lives_two_and_a_half_times_as_long(trace):
    always, _ = run(trace, "lachesis-deterministic")
    partly, _ = run(trace, "lachesis-deterministic", "node.duty_cycle=0.4")
    for key in ("hbf_lifetime_years",):
        assert partly[key] == pytest.approx(always[key] / 0.4, rel=1e-12)
    # The interval is that of a few batches here, and scales alike where there is one.
    if always["hbf_lifetime_years_ci95"] is not None:
        for end in (0, 1):
            assert partly["hbf_lifetime_years_ci95"][end] == pytest.approx(
                always["hbf_lifetime_years_ci95"][end] / 0.4, rel=1e-12
            )
    # Nothing that was measured changes.
    for key in ("hbf_write_bytes", "hbf_write_bytes_per_s_per_gpu", "tpot_p99_s", "requests"):
        assert partly[key] == always[key]
    assert any("serves 0.4 of the time" in note for note in partly["notes"])


@pytest.mark.parametrize("policy", ["lachesis-deterministic", "hbm-first"])
@pytest.mark.parametrize("hours", [24, 48])
def test_a_refresh_writes_what_is_live_once_a_period(trace, policy, hours):
    found, settings = run(trace, policy, f"flash.refresh_hours={hours}")
    capacity = settings.kv_capacity()
    kv_bytes = found["hbf_occupancy_mean"] * capacity.hbf_blocks * capacity.block_bytes
    live_bytes = capacity.weights_bytes_per_gpu + kv_bytes
    refresh = live_bytes / (hours * 3600)
    assert found["hbf_refresh_bytes_per_s_per_gpu"] == pytest.approx(refresh, rel=1e-9)
    written = found["hbf_write_bytes_per_s_per_gpu"] + refresh
    years = capacity.hbf_bytes * 100_000 / (1.02 * written * SECONDS_PER_YEAR)
    assert found["hbf_lifetime_years"] == pytest.approx(years, rel=1e-9)


def test_an_idle_device_that_is_full_lives_as_long_as_its_cycles_at_one_a_day(trace):
    # hbm-first starts from a full memory: live is the whole device, but for rounding to blocks. At
    # a duty cycle of next to nothing a daily refresh is all the wear: 365.25 cycles a year.
    found, _ = run(trace, "hbm-first", "flash.refresh_hours=24", "node.duty_cycle=1e-9")
    assert found["hbf_lifetime_years"] == pytest.approx(100_000 / (1.02 * 365.25), rel=2e-3)


def test_a_refresh_goes_on_while_the_node_does_not_serve(trace):
    both, _ = run(trace, "lachesis-deterministic", "flash.refresh_hours=24", "node.duty_cycle=0.4")
    rate = 0.4 * both["hbf_write_bytes_per_s_per_gpu"] + both["hbf_refresh_bytes_per_s_per_gpu"]
    years = both["hbf_bytes_per_gpu"] * 100_000 / (1.02 * rate * SECONDS_PER_YEAR)
    assert both["hbf_lifetime_years"] == pytest.approx(years, rel=1e-9)


def test_without_flash_there_is_nothing_to_refresh(trace):
    found, _ = run(trace, "hbm-first", "flash.refresh_hours=24", memory="8/0")
    assert found["hbf_refresh_bytes_per_s_per_gpu"] == 0.0
    assert found["hbf_lifetime_years"] is None

"""Plain request lists on one GPU, replayed once each: what other simulators are given too."""

import pytest
from plain_workloads import write_workloads

from lachesis.policy import choose_policy
from lachesis.presets import Settings, apply_overrides
from lachesis.simulation import Load, Plan, replay, to_workload
from lachesis.traces import open_trace


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_workloads(tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("name", ["W1", "W3", "W3L"])
def test_plain_workload(benchmark, files, name):
    workload = to_workload(open_trace(str(files[name])), recorded=True)
    plan = Plan(apply_overrides(Settings.choose(memory="2/6"), ["node.gpus=1"]))
    cost, load = plan.cost(), Load.parse("recorded")
    run = benchmark.pedantic(
        replay,
        args=(workload, plan, choose_policy("hbm-first"), load),
        kwargs={"cost": cost},
        rounds=9,
        warmup_rounds=1,
    )
    whole, fastest_s = run.measured["whole"], benchmark.stats.stats.min
    benchmark.extra_info.update(
        requests=whole["requests"],
        requests_per_s=round(whole["requests"] / fastest_s),
        steps_per_s=round(whole["steps"] / fastest_s),
        output_tokens_per_s=round(whole["output_tokens"] / fastest_s),
    )

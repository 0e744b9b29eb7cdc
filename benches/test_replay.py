"""How fast the engine replays: simulated requests and decode steps a second of one core.

`make bench` runs these; the columns `requests_per_s` and `steps_per_s` of `extra_info` are what
`docs/benchmarks.md` quotes. Nothing here asserts a time.
"""

import pytest

from lachesis.policy import choose_policy
from lachesis.presets import Settings
from lachesis.simulation import Load, Plan, Stopping, replay, to_workload
from lachesis.traces import open_trace


@pytest.fixture(scope="module")
def multi_agent():
    return to_workload(open_trace("multi-agent"))


def measure(benchmark, workload, plan, policy, load):
    """Replay once a round; quote the fastest, which other work on the machine disturbs least."""
    cost = plan.cost()
    run = benchmark.pedantic(
        replay,
        args=(workload, plan, choose_policy(policy), load),
        kwargs={"cost": cost},
        rounds=5,
        warmup_rounds=1,
    )
    whole = run.measured["whole"]
    fastest_s = benchmark.stats.stats.min
    benchmark.extra_info.update(
        requests=whole["requests"],
        requests_per_s=round(whole["requests"] / fastest_s),
        steps_per_s=round(whole["steps"] / fastest_s),
        output_tokens_per_s=round(whole["output_tokens"] / fastest_s),
    )


@pytest.mark.parametrize("policy", ["hbm-first", "lachesis-deterministic", "hbf-only"])
def test_fixed_load(benchmark, multi_agent, policy):
    """`multi-agent` at 400 live sessions, Llama-4-Maverick, 2/6: ten turnovers of the load."""
    stopping = Stopping(turnovers=10.0, warm_up_turnovers=0.0, fixed=True)
    plan = Plan(Settings.choose(memory="2/6"), stopping=stopping)
    measure(benchmark, multi_agent, plan, policy, Load.parse("400"))


@pytest.mark.parametrize("sessions", [50, 200, 800])
def test_cost_over_load(benchmark, multi_agent, sessions):
    """The same number of ended sessions at a quarter, once and four times 200 live ones."""
    turnovers = 1600.0 / sessions
    stopping = Stopping(turnovers=turnovers, warm_up_turnovers=0.0, fixed=True)
    plan = Plan(Settings.choose(memory="2/6"), stopping=stopping)
    measure(
        benchmark,
        multi_agent,
        plan,
        "lachesis-deterministic",
        Load(kind="closed", sessions=sessions),
    )


def test_reading_a_corpus(benchmark):
    """From the wheel's Parquet to the engine's columns."""
    benchmark.pedantic(lambda: to_workload(open_trace("multi-agent")), rounds=3, warmup_rounds=1)

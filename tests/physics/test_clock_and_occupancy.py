"""Time that neither wraps nor overshoots; occupancy that knows nothing of how steps are taken."""

import pytest

from lachesis import _engine
from lachesis.errors import InputError
from lachesis.policy import choose_policy
from lachesis.presets import Settings, apply_overrides
from lachesis.simulation import Load, Plan, Stopping, replay, to_workload
from lachesis.traces.builder import TraceBuilder

DAY_S = 86_400.0


def session_with_waits(*waits_days: float, output_tokens: int = 10):
    """One session whose requests lie so many days apart, as recorded."""
    builder = TraceBuilder(source="waits.jsonl")
    session = builder.session("s", workload="w", harness="h", stripping="off")
    at_s, input_tokens = 0.0, 100
    for wait_days in (0.0, *waits_days):
        at_s += wait_days * DAY_S
        session.request(
            input_tokens=input_tokens, output_tokens=output_tokens, start_s=at_s, end_s=at_s + 1.0
        )
        input_tokens += output_tokens + 50
    return builder.build()


def run(trace, *, load="recorded", step_time_s=0.05, **stopping):
    settings = apply_overrides(Settings.choose(memory="2/6"), ["node.gpus=1"])
    plan = Plan(settings, step_time_s=step_time_s, aged=False, stopping=Stopping(**stopping))
    loaded = Load.parse(load)
    workload = to_workload(trace, recorded=loaded.kind == "recorded")
    return replay(workload, plan, choose_policy("hbf-only"), loaded)


def test_the_clock_reaches_a_hundred_days_and_says_where_it_ends():
    ended = run(session_with_waits(60.0, 40.0)).measured["whole"]
    assert ended["time_s"] == pytest.approx(100 * DAY_S, abs=60.0)
    with pytest.raises(InputError, match="106 days"):
        run(session_with_waits(40.0, 80.0, 1.0))


def test_an_idle_node_stops_at_its_horizon():
    trace = session_with_waits(50.0)
    whole = run(trace, load="1", fixed=True, turnovers=50.0, horizon_s=3600.0).measured["whole"]
    assert whole["time_s"] == 3600.0


def test_a_drained_run_counts_no_time_past_its_last_request():
    ended = run(session_with_waits(0.01)).measured["whole"]
    assert ended["requests"] == 2
    assert ended["time_s"] < 0.01 * DAY_S + 60.0


def exact_mean_blocks(input_tokens: int, output_tokens: int, block_tokens: int, ttft_s: float):
    """Blocks over time, counted token by token: 50 ms steps, suffix drawn at admission."""
    blocks_time_s, time_s = 0.0, ttft_s
    for token in range(output_tokens):
        held = -(-(input_tokens + token + 1) // block_tokens)
        blocks_time_s += held * 0.05
        time_s += 0.05
    return blocks_time_s / time_s


@pytest.mark.parametrize("block_tokens", [1, 16, 17])
def test_occupancy_is_that_of_single_steps(block_tokens):
    builder = TraceBuilder(source="one.jsonl")
    session = builder.session("s", workload="w", harness="h", stripping="off")
    session.request(input_tokens=100, output_tokens=4000, start_s=0.0, end_s=1.0)
    settings = apply_overrides(
        Settings.choose(memory="2/6"), ["node.gpus=1", f"node.block_tokens={block_tokens}"]
    )
    plan = Plan(settings, step_time_s=0.05, aged=False)
    trace = builder.build()
    workload = to_workload(trace, recorded=True)
    measured = replay(workload, plan, choose_policy("hbf-only"), Load.parse("recorded")).measured
    used = measured["whole"]["blocks_in_use_mean"][1]
    assert used == pytest.approx(exact_mean_blocks(100, 4000, block_tokens, 1.0), rel=1e-9)


def test_hbm_only_needs_no_flash():
    settings = apply_overrides(Settings.choose(model="qwen3-32b", memory="8/0"), [])
    plan = Plan(settings, stopping=Stopping(fixed=True, turnovers=1.0))
    builder = TraceBuilder(source="prompts.jsonl")
    for name in ("a", "b"):
        session = builder.session(name, workload="w", harness="h", stripping="off")
        session.request(input_tokens=500, output_tokens=20, reported_cached_tokens=300)
    outcome = replay(to_workload(builder.build()), plan, choose_policy("hbm-only"), Load.parse("2"))
    written = outcome.measured["whole"]["materialised_tokens"]
    assert sum(pair[0] for pair in written.values()) > 0
    assert sum(pair[1] for pair in written.values()) == 0


def test_arrivals_that_outrun_the_node_are_an_error():
    with pytest.raises(InputError, match="outrun the node"):
        run(session_with_waits(), load="poisson:1000000", step_time_s=10.0)


@pytest.mark.parametrize("segment", [2**32 - 1, 2**32 - 2])
def test_the_numbers_that_mark_blocks_name_no_segment(segment):
    pool = _engine.BlockPool(4, 4)
    with pytest.raises(_engine.EngineError, match="below 4294967294"):
        pool.alloc("hbm", 1, segment=segment)
    (block,) = pool.alloc("hbm")
    with pytest.raises(_engine.EngineError, match="below 4294967294"):
        pool.free([block], segment=segment)
    with pytest.raises(_engine.EngineError, match="drawn for no segment"):
        pool.free([block], segment=7)
    pool.check()

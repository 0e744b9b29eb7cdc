"""Every coefficient of a step's price against closed forms, within the rounding of a picosecond."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lachesis import _engine
from lachesis.errors import InputError
from lachesis.policy import choose_policy
from lachesis.presets import Settings, apply_overrides
from lachesis.simulation import Load, Plan, step_cost, to_workload
from lachesis.simulation.pricing import model_shape
from lachesis.traces import TraceBuilder

from . import closed_forms as by_hand

BATCHES = (1, 2, 7, 64, 311, 1024)
NODE_BATCHES = (1, 8, 100, 1000, 8192)
FULL_REACH, WINDOWED = 0, 1


def priced(model, *overrides, memory="2/6"):
    settings = Settings.choose(model=model, memory=memory)
    return apply_overrides(settings, overrides) if overrides else settings


def ps(seconds):
    """Picoseconds, to be met within one: half for each of two roundings."""
    return pytest.approx(seconds * 1e12, abs=1.0)


@pytest.mark.parametrize("model", by_hand.MODELS)
@pytest.mark.parametrize("batch", BATCHES)
def test_local_part(model, batch):
    cost = step_cost(priced(model))
    assert cost.local_ps[batch] == ps(by_hand.local_s(by_hand.MODELS[model], batch))


@pytest.mark.parametrize("model", by_hand.MODELS)
@pytest.mark.parametrize("batch", NODE_BATCHES)
def test_shared_part_is_the_routed_experts(model, batch):
    cost = step_cost(priced(model))
    assert cost.shared_ps[batch] == ps(by_hand.experts_s(by_hand.MODELS[model], batch))


@pytest.mark.parametrize("model", by_hand.MODELS)
def test_what_a_token_of_context_costs(model):
    cost, shape = step_cost(priced(model)), by_hand.MODELS[model]
    assert cost.context_ps == ps(by_hand.context_s(shape))
    assert cost.window_ps == ps(by_hand.window_s(shape))
    reach = [getattr(a, "window", 0) or getattr(a, "top_k", 0) for a in shape.attention]
    assert cost.window == max(reach)


@pytest.mark.parametrize("model", by_hand.MODELS)
@pytest.mark.parametrize("memory", ["1/7", "2/6", "3/5", "4/4", "8/8*"])
def test_what_a_flushed_token_costs(model, memory):
    stacks = {"1/7": 7, "2/6": 6, "3/5": 5, "4/4": 4, "8/8*": 8}[memory]
    expected = by_hand.stored_bytes(by_hand.MODELS[model]) / (stacks * by_hand.HBF_WRITE)
    assert step_cost(priced(model, memory=memory)).flush_ps == ps(expected)


@pytest.mark.parametrize("model", by_hand.MODELS)
def test_operators_add_up_to_the_local_part(model):
    settings, shape = priced(model), by_hand.MODELS[model]
    for batch in BATCHES:
        total = by_hand.all_to_all_s(shape, batch)
        for _, runs, flops, bytes_read in _engine.operators(
            model_shape(settings.model, settings), batch
        ):
            total += runs * max(flops / by_hand.FLOPS, bytes_read / by_hand.READ)
        assert step_cost(settings).local_ps[batch] == ps(total)


def test_figures_that_fit_on_the_back_of_an_envelope():
    # Maverick, 2/6. Full layers: 12 x 2 x 8 x 128 x 2 B = 49,152 B at 12.8 TB/s; chunked: 36.
    # Flush: 196,608 B at 6 x 16 GB/s. All experts of a GPU: 24 layers x 16 x 3 x 5,120 x 8,192
    # x 2 B = 96.6 GB: 7.55 ms.
    cost = step_cost(priced("llama-4-maverick"))
    assert (cost.context_ps, cost.window_ps, cost.window) == (3840, 11_520, 8192)
    assert cost.flush_ps == 2_048_000
    assert cost.shared_ps[8192] == pytest.approx(7.5497472e9, rel=1e-9)
    assert cost.overhead_ps == 15_000_000_000
    assert cost.shared_ps[0] == cost.local_ps[0] == 0


def test_every_split_reads_at_the_pace_of_eight_stacks():
    costs = [step_cost(priced("llama-4-maverick", memory=m)) for m in ("1/7", "4/4", "8/8*")]
    assert {(c.context_ps, c.window_ps, tuple(c.local_ps)) for c in costs} == {
        (costs[0].context_ps, costs[0].window_ps, tuple(costs[0].local_ps))
    }


def test_efficiencies_divide_the_rates():
    shape = replace(by_hand.MODELS["llama-4-maverick"], efficiency=(0.5, 0.8))
    cost = step_cost(
        priced(
            "llama-4-maverick",
            "hardware.compute_efficiency=0.5",
            "hardware.memory_efficiency=0.8",
        )
    )
    for batch in BATCHES:
        assert cost.local_ps[batch] == ps(by_hand.local_s(shape, batch))
    assert cost.shared_ps[100] == ps(by_hand.experts_s(shape, 100))
    assert cost.context_ps == ps(by_hand.context_s(shape))


def test_large_batches_are_bound_by_arithmetic_and_small_ones_by_bytes():
    # The head of a dense model: 2 B k n FLOPs against 2 (Bk + kn + Bn) bytes. They cross near
    # B = 4000e12 / 12.8e12 = 312 tokens, a little later for the activations.
    k, n = 8192, 128_256
    operators = {
        batch: {
            name: (flops, size)
            for name, _, flops, size in _engine.operators(
                model_shape(priced("llama-3.1-70b").model, priced("llama-3.1-70b")), batch
            )
        }
        for batch in (300, 400)
    }
    few, many = (operators[batch]["language model head"] for batch in (300, 400))
    assert few == (2.0 * 300 * k * n, 2.0 * (300 * k + k * n + 300 * n))
    assert few[0] / by_hand.FLOPS < few[1] / by_hand.READ
    assert many[0] / by_hand.FLOPS > many[1] / by_hand.READ


@pytest.mark.parametrize("model", ["llama-4-maverick", "qwen3-235b-a22b", "llama-3.1-70b"])
def test_kv_of_one_byte_halves_reads_and_flushes(model):
    shape = replace(by_hand.MODELS[model], kv_bytes=1.0)
    full, half = step_cost(priced(model)), step_cost(priced(model, "model.kv_bytes_per_value=1"))
    assert half.context_ps == ps(by_hand.context_s(shape)) == ps(full.context_ps / 2e12)
    assert half.window_ps == ps(full.window_ps / 2e12)
    assert half.flush_ps == ps(full.flush_ps / 2e12)
    assert half.local_ps == full.local_ps


def test_latents_of_one_byte_are_bound_by_arithmetic():
    # 2 x 128 x (576 + 512) FLOPs at 4,000 TFLOPS are 69.6 ps, 576 B at 12.8 TB/s are 45 ps.
    cost = step_cost(priced("deepseek-v3", "model.kv_bytes_per_value=1"))
    assert cost.context_ps == ps(61 * 2 * 128 * (576 + 512) / by_hand.FLOPS)
    assert cost.flush_ps == ps(61 * 576 / (6 * by_hand.HBF_WRITE))


def test_overhead_and_latency_come_from_the_settings():
    cost = step_cost(priced("llama-4-maverick", "hardware.step_overhead_ms=0"))
    assert cost.overhead_ps == 0
    far = priced("llama-4-maverick", "hardware.nvlink_latency_us=10.8")
    more = step_cost(far).local_ps[5] - step_cost(priced("llama-4-maverick")).local_ps[5]
    assert more == ps(2 * 24 * 10e-6)


def test_one_gpu_exchanges_nothing_and_holds_all_experts():
    one = priced("gpt-oss-120b", "node.gpus=1")
    cost = step_cost(one)
    operators = _engine.operators(model_shape(one.model, one), 3)
    total = sum(r * max(f / by_hand.FLOPS, b / by_hand.READ) for _, r, f, b in operators)
    assert cost.local_ps[3] == ps(total)
    # 36 layers x 128 experts x 3 x 2,880 x 2,880 x 2 B, nearly all touched by 1,000 tokens.
    everything = 36 * 128 * 3 * 2880 * 2880 * 2.0 / by_hand.READ
    assert cost.shared_ps[1000] == ps(everything * (1 - (1 - 4 / 128) ** 1000))


@pytest.mark.parametrize("memory", ["1/7", "2/6", "4/4"])
@pytest.mark.parametrize("model", ["llama-4-maverick", "deepseek-v3.2"])
def test_each_tier_at_its_own_stacks(model, memory):
    shape = by_hand.MODELS[model]
    stacks = tuple(int(number) for number in memory.split("/"))
    cost = step_cost(priced(model, "node.read_path=per-tier", memory=memory))
    assert cost.tier_reads_ps is not None
    for part, tiers in ((FULL_REACH, cost.tier_reads_ps[0]), (WINDOWED, cost.tier_reads_ps[1])):
        assert tiers == [ps(by_hand.tier_s(shape, part, count)) for count in stacks]
    assert cost.context_ps == ps(by_hand.arithmetic_s(shape, FULL_REACH))
    assert cost.window_ps == ps(by_hand.arithmetic_s(shape, WINDOWED))
    assert step_cost(priced(model, memory=memory)).tier_reads_ps is None


def test_the_chain_has_no_stacks_of_its_own_for_flash():
    with pytest.raises(InputError, match="daisy chain"):
        step_cost(priced("llama-4-maverick", "node.read_path=per-tier", memory="8/8*"))


def test_a_constant_step_has_no_other_part():
    cost = step_cost(priced("llama-4-maverick"), step_time_s=0.25)
    assert cost.overhead_ps == 250_000_000_000
    assert set(cost.local_ps) == set(cost.shared_ps) == {0}
    assert (cost.context_ps, cost.window_ps, cost.flush_ps) == (0, 0, 0)


# The step of the node: what the coefficients add up to in a run.

LONG, SHORT, OUTPUT = 9000, 100, 5


def end_times_ps(settings, policy, *inputs):
    """When each of some sessions of one request ends: all start at 0, each on its own GPU."""
    builder = TraceBuilder(source="one request each")
    for number, tokens in enumerate(inputs):
        session = builder.session(f"s{number}", workload="w", harness="h", stripping="off")
        session.request(input_tokens=tokens, output_tokens=OUTPUT)
    workload = to_workload(builder.build())
    plan = Plan(settings=settings, aged=False)
    load = Load("closed", sessions=len(inputs))
    config = plan.engine_config(workload, choose_policy(policy), load, plan.cost())
    config["load"]["ramp_s"] = 0.0
    config |= {"draws": list(range(len(inputs))), "keep_requests": True}
    stop = plan.stopping.engine(load) | {"kind": "drained"}
    measured = _engine.replay(workload, config, choose_policy(policy).engine(), stop)
    return {draw: end for draw, _, _, _, _, end in measured["requests"]}


@pytest.mark.parametrize("policy", ["hbm-first", "hbf-only"])
def test_a_step_of_the_node(policy):
    # Both GPUs run one request; the one with the long context sets the pace. Step i reads
    # 9,000 + i - 1 tokens in full layers and 8,192 in chunked ones.
    shape = by_hand.MODELS["llama-4-maverick"]
    ends = end_times_ps(priced("llama-4-maverick"), policy, LONG, SHORT)
    flush = by_hand.stored_bytes(shape) / (6 * by_hand.HBF_WRITE) if policy == "hbf-only" else 0.0
    total = 1.0  # one prefill
    for i in range(OUTPUT):
        reads = (LONG + i) * by_hand.context_s(shape) + 8192 * by_hand.window_s(shape)
        total += by_hand.local_s(shape, 1) + reads + flush + by_hand.experts_s(shape, 2) + 0.015
    assert ends[0] == ends[1] == pytest.approx(total * 1e12, abs=5 * (LONG + 10))


def test_a_context_grows_into_its_window():
    shape = by_hand.MODELS["llama-4-maverick"]
    start = 8192 - 2
    ends = end_times_ps(priced("llama-4-maverick"), "hbm-first", start)
    total = 1.0
    for i in range(OUTPUT):
        reads = (start + i) * by_hand.context_s(shape)
        reads += min(start + i, 8192) * by_hand.window_s(shape)
        total += by_hand.local_s(shape, 1) + reads + by_hand.experts_s(shape, 1) + 0.015
    assert ends[0] == pytest.approx(total * 1e12, abs=5 * (start + 10))


def test_chunk_aligned_reading_starts_anew_at_each_chunk():
    # The 3rd step reads 8,192 tokens: the chunk is full and a new one begins.
    shape = by_hand.MODELS["llama-4-maverick"]
    start = 8192 - 2
    settings = priced("llama-4-maverick", "node.chunk_reads=aligned")
    ends = end_times_ps(settings, "hbm-first", start)
    total = 1.0
    for i in range(OUTPUT):
        reads = (start + i) * by_hand.context_s(shape)
        reads += (start + i) % 8192 * by_hand.window_s(shape)
        total += by_hand.local_s(shape, 1) + reads + by_hand.experts_s(shape, 1) + 0.015
    assert ends[0] == pytest.approx(total * 1e12, abs=5 * (start + 10))


def test_a_tier_s_own_stacks_set_the_pace_of_what_lies_there():
    # 4/4, everything in flash: its four stacks serve all reads, at half the pace of eight.
    shape = by_hand.MODELS["llama-4-maverick"]
    settings = priced("llama-4-maverick", "node.read_path=per-tier", memory="4/4")
    ends = end_times_ps(settings, "hbf-only", LONG)
    flush = by_hand.stored_bytes(shape) / (4 * by_hand.HBF_WRITE)
    total = 1.0
    for i in range(OUTPUT):
        full, windowed = by_hand.tier_s(shape, 0, 4), by_hand.tier_s(shape, 1, 4)
        reads = (LONG + i) * full + 8192 * windowed
        total += by_hand.local_s(shape, 1) + reads + flush + by_hand.experts_s(shape, 1) + 0.015
    assert ends[0] == pytest.approx(total * 1e12, abs=5 * 2 * (LONG + 10))


def test_landing_is_charged_to_the_step_it_precedes_on_request():
    # 9,000 prefilled tokens go to six flash stacks: 18.4 ms, once, before the first token.
    shape = by_hand.MODELS["llama-4-maverick"]
    behind = end_times_ps(priced("llama-4-maverick"), "hbf-only", LONG)
    charged = end_times_ps(priced("llama-4-maverick", "node.landing=sync"), "hbf-only", LONG)
    landing = LONG * by_hand.stored_bytes(shape) / (6 * by_hand.HBF_WRITE)
    assert landing == pytest.approx(0.018432)
    assert charged[0] - behind[0] == pytest.approx(landing * 1e12, abs=LONG)
    in_hbm = end_times_ps(priced("llama-4-maverick", "node.landing=sync"), "hbm-first", LONG)
    assert in_hbm == end_times_ps(priced("llama-4-maverick"), "hbm-first", LONG)

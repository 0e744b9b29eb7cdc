"""Device-years against the P/E budget, the figures of the paper, and those of Son et al."""

from __future__ import annotations

import math

import pytest

from lachesis import _engine
from lachesis.policy import choose_policy
from lachesis.presets import Settings, apply_overrides
from lachesis.simulation import (
    Load,
    Plan,
    Stopping,
    replay,
    step_cost,
    stored_bytes_per_token,
    to_workload,
)
from lachesis.traces import open_trace

from .son_et_al import CHUNK, FLASH_BYTES, GPUS, SERVINGS, Serving

YEAR_S = 365.25 * 86_400


def years(settings, bytes_per_s):
    flash = settings.flash
    return _engine.device_years(
        float(settings.kv_capacity().hbf_bytes),
        float(flash.pe_cycles),
        flash.write_amplification,
        bytes_per_s,
    )


@pytest.mark.parametrize("memory", ["1/7", "2/6", "3/5", "4/4", "8/8*"])
@pytest.mark.parametrize("bytes_per_s", [1e6, 2.32e9, 96e9])
def test_years_times_rate_spend_the_budget_exactly(memory, bytes_per_s):
    stacks = int(memory[2])
    programmed = years(Settings.choose(memory=memory), bytes_per_s) * YEAR_S * bytes_per_s * 1.02
    assert programmed == pytest.approx(stacks * 512e9 * 100_000, rel=1e-14)


def test_a_device_that_is_never_written_lasts_for_ever():
    assert years(Settings.choose(), 0.0) == math.inf


@pytest.mark.parametrize("key", ["flash.pe_cycles=30000", "flash.write_amplification=3.4"])
def test_what_the_user_sets_scales_the_years(key):
    changed, plain = apply_overrides(Settings.choose(), [key]), Settings.choose()
    assert years(changed, 2e9) == pytest.approx(0.3 * years(plain, 2e9), rel=1e-12)


@pytest.mark.parametrize(
    ("memory", "device_years", "gb_per_s"),
    [
        # Lifetimes that the paper prints, and the rates that they stand for.
        ("1/7", 4.8, 2.32),
        ("1/7", 2.93, 3.80),
        ("4/4", 1.9, 3.349),
        ("4/4", 3.11, 2.046),
        ("8/8*", 4.3, 2.959),
        ("8/8*", 5.4, 2.356),
        # Its warranty line.
        ("1/7", 5.0, 2.227),
        ("4/4", 5.0, 1.272),
    ],
)
def test_write_rates_behind_the_paper_s_lifetimes(memory, device_years, gb_per_s):
    found = years(Settings.choose(memory=memory), gb_per_s * 1e9)
    assert found == pytest.approx(device_years, rel=2e-3)


def test_a_measured_run_spends_the_budget():
    # hbm-first on a corpus: the measured rate, times the years it allows, is the budget.
    settings = Settings.choose(memory="1/7")
    plan = Plan(settings=settings, stopping=Stopping(turnovers=2, precision=0.2))
    workload = to_workload(open_trace("tau3-airline"))
    measured = replay(workload, plan, choose_policy("hbm-first"), Load("closed", 64)).measured
    tokens_per_s, _ = measured["hbf_tokens_per_s"]
    window = measured["window"]
    written = sum(
        hbf
        for kind in ("materialised_tokens", "rematerialised_tokens")
        for _, hbf in window[kind].values()
    )
    assert tokens_per_s == pytest.approx(written / window["time_s"], rel=0.02)
    rate = tokens_per_s * stored_bytes_per_token(settings) / settings.node.gpus
    assert rate > 0
    life_s = years(settings, rate) * YEAR_S
    assert life_s * rate * 1.02 == pytest.approx(7 * 512e9 * 100_000, rel=1e-12)


@pytest.mark.parametrize("serving", SERVINGS, ids=lambda s: f"{s.prompt}-{s.output}")
def test_cycles_of_son_et_al_after_three_years(serving: Serving):
    # No pricing here: published tokens a second, bytes of a token, and the wear formula.
    rate = serving.bytes_per_s_per_gpu
    life = _engine.device_years(float(FLASH_BYTES), serving.cycles_after_3_years, 1.0, rate)
    assert life == pytest.approx(3.0, rel=0.02)


def test_without_the_chunk_limit_long_prompts_would_be_far_off():
    # The limit is not a detail: written in full, the long prompts wear three times as fast.
    long = SERVINGS[2]
    full = (long.prompt + long.output) * 48 * 2 * 8 * 128 * 2
    rate = long.tokens_per_s_per_gpu / long.output * full
    cycles = 3.0 / _engine.device_years(float(FLASH_BYTES), 1.0, 1.0, rate)
    assert cycles == pytest.approx(639_311, rel=1e-3)


@pytest.mark.parametrize("serving", SERVINGS, ids=lambda s: f"{s.prompt}-{s.output}")
def test_trimmed_blocks_write_what_son_et_al_count(serving: Serving):
    # `windowed_kv = "trim"` keeps min(context, chunk) in chunked layers, outputs included, where
    # they keep a chunk of the prompt and all of the output: 2.5 % apart for the long prompts.
    settings = apply_overrides(
        Settings.choose(memory="1/7"),
        [
            "node.windowed_kv=trim",
            f"node.trim_context_tokens={serving.prompt + serving.output}",
        ],
    )
    request_bytes = stored_bytes_per_token(settings) * (serving.prompt + serving.output)
    assert request_bytes == pytest.approx(serving.bytes_per_request, rel=0.026)
    rate = serving.tokens_per_s_per_gpu / serving.output * request_bytes
    life = _engine.device_years(float(FLASH_BYTES), serving.cycles_after_3_years, 1.0, rate)
    assert life == pytest.approx(3.0, rel=0.02)


def step_ms(serving: Serving, *overrides: str) -> float:
    """A step with this many requests on each GPU, each halfway through its output."""
    settings = apply_overrides(
        Settings.choose(memory="1/7"), ["hardware.max_sequences=2048", *overrides]
    )
    cost = step_cost(settings)

    def between(table: list[int], batch: float) -> float:
        below = int(batch)
        return table[below] + (batch - below) * (table[below + 1] - table[below])

    steps = range(serving.output)
    context = serving.prompt + (serving.output - 1) / 2
    window = sum(min(serving.prompt + i, CHUNK) for i in steps) / serving.output
    per_request = context * cost.context_ps + window * cost.window_ps + cost.flush_ps
    batch = serving.batch_per_gpu
    fixed = between(cost.local_ps, batch) + between(cost.shared_ps, batch * GPUS)
    return (fixed + batch * per_request + cost.overhead_ps) / 1e9


@pytest.mark.parametrize(
    ("serving", "published", "roofline", "own_stacks", "with_overhead"),
    [
        (SERVINGS[0], 99.9, 69.6, 77.5, 84.6),
        (SERVINGS[1], 99.3, 71.8, 81.3, 86.8),
        (SERVINGS[2], 100.5, 79.0, 90.2, 94.0),
    ],
    ids=lambda value: f"{value.prompt}-{value.output}" if isinstance(value, Serving) else None,
)
def test_step_times_beside_those_of_son_et_al(
    serving, published, roofline, own_stacks, with_overhead
):
    # Not a claim of agreement: the figures that docs/pricing.md prints.
    assert serving.step_s * 1e3 == pytest.approx(published, abs=0.06)
    assert step_ms(serving, "hardware.step_overhead_ms=0") == pytest.approx(roofline, abs=0.06)
    # 11.2 of 12.8 TB/s: all reads at the seven flash stacks.
    seven = ("hardware.step_overhead_ms=0", "hardware.memory_efficiency=0.875")
    assert step_ms(serving, *seven) == pytest.approx(own_stacks, abs=0.06)
    assert step_ms(serving) == pytest.approx(with_overhead, abs=0.06)

"""Under hbm-first, a full and settled memory takes writes as its tiers have room.

Blocks are reclaimed in the order of their last use, whatever tier they lie in, so both tiers turn
over at one pace and HBM's share of the bytes written is its share of the KV capacity. Memories are
an eighth of the paper's in both tiers (the shares stay), so that they turn over several times.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pytest

from lachesis.policy import choose_policy
from lachesis.presets import Settings, apply_overrides
from lachesis.simulation import Load, Plan, Stopping, replay, to_workload
from lachesis.traces import Trace, open_trace

SPLITS = ("1/7", "2/6", "3/5", "4/4")
SCALE = 8
LOAD = Load("closed", sessions=100)
# Sessions ended before and while measuring, as multiples of the load.
WARM_UP, MEASURED = 6.0, 10.0


def an_eighth(memory):
    return apply_overrides(
        Settings.choose(memory=memory),
        [
            f"hardware.hbm_gb_per_stack={36 / SCALE}",
            f"hardware.hbf_gb_per_stack={512 / SCALE}",
            # Weights would fill an eighth of the flash.
            "model.weight_bytes_per_value=0.05",
        ],
    )


@cache
def corpus(name, own_prompts):
    """A built-in corpus; with `own_prompts`, no session shares its prompts with another."""
    trace = open_trace(name)
    if own_prompts:
        column = trace.segments.schema.get_field_index("prefix_key")
        keys = [
            None if key is None else f"{session}/{key}"
            for session, key in zip(
                trace.segments["session"].to_pylist(),
                trace.segments["prefix_key"].to_pylist(),
                strict=True,
            )
        ]
        segments = trace.segments.set_column(
            column, trace.segments.schema.field(column), pa.array(keys, pa.string())
        )
        trace = Trace(
            **(trace.tables | {"segments": segments}),
            source=trace.source,
            tokenizer=trace.tokenizer,
            quality=trace.quality,
        )
    return to_workload(trace)


class Settled:
    """What was written in the measured window, and the room that it went to."""

    def __init__(self, memory, *, aged, own_prompts, name):
        settings = an_eighth(memory)
        stopping = Stopping(fixed=True, warm_up_turnovers=WARM_UP, turnovers=MEASURED)
        plan = Plan(settings=settings, aged=aged, stopping=stopping)
        self.measured = replay(
            corpus(name, own_prompts), plan, choose_policy("hbm-first"), LOAD
        ).measured
        self.capacity = settings.kv_capacity()
        window = self.measured["window"]
        tiers = [
            both
            for kind in ("materialised_tokens", "rematerialised_tokens")
            for both in window[kind].values()
        ]
        self.hbm_tokens = sum(hbm for hbm, _ in tiers)
        self.hbf_tokens = sum(hbf for _, hbf in tiers)

    @property
    def hbm_share(self):
        return self.hbm_tokens / (self.hbm_tokens + self.hbf_tokens)

    @property
    def memories_written(self):
        blocks = self.capacity.hbm_blocks + self.capacity.hbf_blocks
        return (self.hbm_tokens + self.hbf_tokens) / (8 * 16 * blocks)

    @property
    def occupancy(self):
        """Share of each tier's blocks in use, mean over the window."""
        in_use = self.measured["window"]["blocks_in_use_mean"]
        totals = (8 * self.capacity.hbm_blocks, 8 * self.capacity.hbf_blocks)
        return [used / total for used, total in zip(in_use, totals, strict=True)]


@cache
def settled(memory, *, aged, own_prompts=False, name="multi-agent"):
    return Settled(memory, aged=aged, own_prompts=own_prompts, name=name)


@pytest.mark.parametrize("memory", SPLITS)
def test_shares_of_an_eighth_are_those_of_the_whole(memory):
    whole = apply_overrides(Settings.choose(memory=memory), ["model.weight_bytes_per_value=0.4"])
    assert an_eighth(memory).kv_capacity().hbm_share == pytest.approx(
        whole.kv_capacity().hbm_share, rel=1e-3
    )


@pytest.mark.parametrize("memory", SPLITS)
def test_hbm_takes_its_share_of_the_writes(memory):
    run = settled(memory, aged=True)
    assert run.memories_written > 1
    assert run.occupancy == pytest.approx([1.0, 1.0], abs=1e-3)
    assert run.hbm_share == pytest.approx(run.capacity.hbm_share, rel=0.03)


@pytest.mark.parametrize("memory", SPLITS)
def test_a_cold_start_settles_to_the_same_share(memory):
    cold = settled(memory, aged=False, own_prompts=True)
    aged = settled(memory, aged=True, own_prompts=True)
    for run in (cold, aged):
        assert run.memories_written > 1
        assert run.occupancy == pytest.approx([1.0, 1.0], abs=1e-3)
        assert run.hbm_share == pytest.approx(run.capacity.hbm_share, rel=0.03)
    assert cold.hbm_share == pytest.approx(aged.hbm_share, rel=0.03)


@pytest.mark.parametrize("memory", SPLITS)
def test_flash_is_written_at_one_rate_from_aged_and_from_cold(memory):
    # Device-years are a constant over this rate: they agree within both runs' intervals.
    (aged, aged_half), (cold, cold_half) = (
        settled(memory, aged=start).measured["hbf_tokens_per_s"] for start in (True, False)
    )
    assert abs(aged - cold) <= aged_half + cold_half
    assert aged_half + cold_half < 0.08 * aged


@pytest.mark.parametrize("memory", ["1/7", "4/4"])
def test_prompts_that_never_leave_take_their_blocks_out_of_the_turnover(memory):
    # A cold start writes the shared prompts first, so they lie in HBM; the sessions of one
    # benchmark read them all the time, so they stay there, and what they hold turns over no more.
    # What is left of HBM takes its share of what is left of the memory. (An aged start spreads
    # them over both tiers, which leaves the share as it is.)
    run = settled(memory, aged=False, name="deepsearchqa")
    window = run.measured["window"]
    assert window["materialised_tokens"]["prompt"] == (0, 0)
    assert window["rematerialised_tokens"]["prompt"] == (0, 0)
    pinned_hbm, pinned_hbf = (
        -(-tokens // 16) for tokens in run.measured["whole"]["materialised_tokens"]["prompt"]
    )
    hbm = 8 * run.capacity.hbm_blocks - pinned_hbm
    hbf = 8 * run.capacity.hbf_blocks - pinned_hbf
    assert run.hbm_share < 0.97 * run.capacity.hbm_share
    assert run.hbm_share == pytest.approx(hbm / (hbm + hbf), rel=0.01)

"""Nodes with a handful of blocks, and replays of a given list of sessions with every time kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from lachesis import _engine
from lachesis.policy import Policy
from lachesis.predict import true_lifetimes
from lachesis.presets import Settings
from lachesis.simulation import Load, Plan, to_workload
from lachesis.simulation.faults import engine_errors
from lachesis.simulation.workload import in_workload_order
from lachesis.traces import Trace

TOKEN_BYTES = 196_608  # Maverick: 48 layers x 2 x 8 heads x 128 values x 2 bytes
STEP_S = 0.5


def tiny_node(hbm_blocks: int, hbf_blocks: int, *, gpus: int = 1, slots: int = 1024) -> Settings:
    """One HBM stack and seven HBF stacks a GPU that hold exactly these blocks of 16 tokens."""
    settings = Settings.choose(memory="1/7")
    settings = msgspec.structs.replace(
        settings,
        model=msgspec.structs.replace(settings.model, weight_bytes_per_value=1e-9),
        node=msgspec.structs.replace(settings.node, gpus=gpus),
    )
    capacity = settings.kv_capacity()
    block, weights = capacity.block_bytes, capacity.weights_bytes_per_gpu
    settings = msgspec.structs.replace(
        settings,
        hardware=msgspec.structs.replace(
            settings.hardware,
            hbm_gb_per_stack=(hbm_blocks + 0.5) * block / 1e9,
            hbf_gb_per_stack=((hbf_blocks + 0.5) * block + weights) / 7e9,
            max_sequences=slots,
        ),
    )
    capacity = settings.kv_capacity()
    assert (capacity.hbm_blocks, capacity.hbf_blocks) == (hbm_blocks, hbf_blocks)
    return settings


@dataclass(frozen=True)
class Drained:
    """What a replay did from its first draw to the end of its last session."""

    measured: dict[str, Any]

    @property
    def times_s(self) -> dict[tuple[int, int], tuple[float, float, float, float]]:
        """(draw, request): when it was ready, admitted, gave its first token, ended."""
        return {
            (draw, request): tuple(ps / 1e12 for ps in times)
            for draw, request, *times in self.measured["requests"]
        }

    def ttft_s(self, draw: int, request: int) -> float:
        ready, _, first, _ = self.times_s[draw, request]
        return first - ready

    def tpot_s(self, draw: int, request: int, output_tokens: int) -> float:
        _, _, first, end = self.times_s[draw, request]
        return (end - first) / (output_tokens - 1)

    def tokens(self, kind: str = "materialised") -> dict[str, tuple[int, int]]:
        """(HBM, HBF) by class, where anything was written."""
        by_class = self.measured["whole"][f"{kind}_tokens"]
        return {name: tuple(both) for name, both in by_class.items() if sum(both)}

    @property
    def bytes(self) -> dict[str, tuple[int, int]]:
        return {
            n: (hbm * TOKEN_BYTES, hbf * TOKEN_BYTES) for n, (hbm, hbf) in self.tokens().items()
        }


def drain(
    trace: Trace,
    policy: Policy,
    settings: Settings,
    *,
    draws: list[int] | None = None,
    load_sessions: int | None = None,
    step_time_s: float | None = STEP_S,
) -> Drained:
    """Replay sessions by their place in the trace; all that the load admits start at 0."""
    workload = to_workload(trace)
    draws = list(range(len(trace))) if draws is None else draws
    plan = Plan(settings=settings, step_time_s=step_time_s, aged=False)
    load = Load("closed", sessions=load_sessions or len(draws))
    scores = None
    if policy.ranking is not None:
        scores = in_workload_order(trace, true_lifetimes(trace, latency=settings.latency))
    config = plan.engine_config(workload, policy, load, plan.cost(), scores)
    config["load"]["ramp_s"] = 0.0
    config |= {"draws": draws, "keep_requests": True, "check_blocks": True}
    with engine_errors(trace.source, trace.sessions["session"].to_pylist()):
        stop = plan.stopping.engine(load) | {"kind": "drained"}
        return Drained(_engine.replay(workload, config, policy.engine(), stop))

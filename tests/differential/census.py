"""The oracle with its books checked at every step."""

from __future__ import annotations

from .case import HBF, HBM, Config, Result, Workload
from .oracle import Gpu, Simulator


class CheckedSimulator(Simulator):
    """Checks as each step starts that blocks are conserved and that segments hold their tokens."""

    def start_step(self) -> None:
        for gpu in self.gpus:
            self.check(gpu)
        before = self.now
        super().start_step()
        assert self.step_end > before, "Invariant: a step takes time"

    def check(self, gpu: Gpu) -> None:
        held = [tier for segment in gpu.segments for tier in segment.blocks]
        totals = [gpu.free[tier] + held.count(tier) for tier in (HBM, HBF)]
        wanted = [self.config.hbm_blocks, self.config.hbf_blocks]
        assert totals == wanted, "Invariant: free + held = total"
        assert min(gpu.free) >= 0, "Invariant: no block is drawn that is not free"
        for segment in gpu.segments:
            filled = -(-segment.resident // self.config.block_tokens)
            assert len(segment.blocks) == filled, "Invariant: blocks hold what is resident"
            assert 0 <= segment.resident <= segment.tokens, "Invariant: resident was materialised"
            assert segment.pins >= 0, "Invariant: no segment is unpinned twice"
        assert len(gpu.running) <= self.config.slots, "Invariant: slots bound the running requests"
        for run in gpu.running:
            whole = all(segment.resident == segment.tokens for segment in run.segments)
            assert whole, "Invariant: what a running request reads is resident"


def simulate(workload: Workload, config: Config) -> Result:
    """Run the oracle on one case, checked at every step.

    Raises `MemoryTooSmallError` where a request can never have its blocks.
    """
    simulator = CheckedSimulator(workload, config)
    result = simulator.run()
    for gpu in simulator.gpus:
        simulator.check(gpu)
        assert not gpu.queue, "Invariant: nothing waits at the end"
        assert not gpu.running, "Invariant: nothing runs at the end"
        assert not any(segment.pins for segment in gpu.segments), "Invariant: all is unpinned"
    draws = range(len(config.draws))
    requests = [len(workload.sessions[index].requests) for index in config.draws]
    keys = {(draw, request) for draw in draws for request in range(requests[draw])}
    ended = {key for key, times in result.requests.items() if "end" in times}
    assert ended == keys, "Invariant: every request of every draw ends"
    return result

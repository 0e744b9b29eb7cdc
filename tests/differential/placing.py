"""Where segments are placed, in plain Python, to be read beside `docs/policies.md`.

Most policies look the class up. Those that rank workers keep books of workers and reviewers.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from .case import HBF, HBM, Config

if TYPE_CHECKING:
    from .oracle import Gpu, LiveSegment


def mean(values: list[int]) -> float:
    return sum(values) / len(values) if values else 0.0


def score_of(segment: LiveSegment) -> float:
    return inf if segment.spec.score is None else segment.spec.score


class Placing:
    """Names the tier of each segment as it opens, and hears of its close."""

    def __init__(self, config: Config) -> None:
        self.policy, self.ranking = config.policy, config.policy.ranking
        self.hbm_blocks = config.gpus * config.hbm_blocks  # of the node
        self.tiers: dict[LiveSegment, int] = {}  # as named; of all segments that ever opened
        self.live: list[LiveSegment] = []  # opened and not closed
        self.reviewers_at_openings: list[int] = []  # of workers
        self.worker_blocks: list[int] = []  # final ones, of those that have finished
        self.reviewer_blocks: list[int] = []

    def open(self, segment: LiveSegment, gpus: list[Gpu]) -> None:
        if segment not in self.tiers:
            self.tiers[segment] = self.policy.target(segment.spec)
            if self.ranking and segment.spec.segment_class == "worker":
                self.tiers[segment] = self.tier_of_worker(segment, gpus)
            self.live.append(segment)

    def close(self, segment: LiveSegment) -> None:
        if segment in self.live:
            self.live.remove(segment)
            if segment.spec.segment_class == "worker":
                self.worker_blocks.append(len(segment.blocks))
            if segment.spec.segment_class == "reviewer":
                self.reviewer_blocks.append(len(segment.blocks))

    def live_of(self, segment_class: str) -> list[LiveSegment]:
        return [segment for segment in self.live if segment.spec.segment_class == segment_class]

    def tier_of_worker(self, worker: LiveSegment, gpus: list[Gpu]) -> int:
        self.reviewers_at_openings.append(len(self.live_of("reviewer")))
        ranked = self.live_of("worker")
        if self.ranking.ranked_against == "workers-in-hbm":
            ranked = [other for other in ranked if self.tiers[other] == HBM]
        rank = sum(score_of(other) < score_of(worker) for other in ranked)
        fits = not self.worker_blocks or self.is_below_k(rank, gpus)
        return HBM if fits else HBF

    def is_below_k(self, rank: int, gpus: list[Gpu]) -> bool:
        free = sum(gpu.free[HBM] for gpu in gpus)
        reviewers = {
            "expected": mean(self.reviewers_at_openings),
            "live": len(self.live_of("reviewer")),
            "nothing": 0,
        }[self.ranking.reserve]
        capacity = self.hbm_blocks if self.ranking.capacity == "total" else free
        room = capacity - reviewers * mean(self.reviewer_blocks)
        footprint = self.ranking.margin * mean(self.worker_blocks)
        # Workers that lost their blocks before they closed may have left nothing: k is infinite.
        return rank < room / footprint if footprint else room > 0

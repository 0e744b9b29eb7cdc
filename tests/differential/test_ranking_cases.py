"""The random cases of the policies that rank workers: the rank decides, under every option."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from random import Random

import pytest

from .case import HBF, HBM, RANKING_POLICIES, Config
from .census import CheckedSimulator
from .oracle import Gpu, LiveSegment
from .placing import Placing, score_of
from .strategies import random_case

SEEDS = range(120)
OPTIONS = [
    *("ranked_against live-workers", "ranked_against workers-in-hbm"),
    *("capacity total", "capacity free"),
    *("reserve expected", "reserve live", "reserve nothing"),
    *("margin 0.3", "margin 0.7", "margin 1.0", "margin 1.5", "margin 3.0"),
]


class WatchedPlacing(Placing):
    """Counts what the decisions about workers depended on."""

    def __init__(self, config: Config, seen: Counter[str]) -> None:
        super().__init__(config)
        self.seen = seen

    def tier_of_worker(self, worker: LiveSegment, gpus: list[Gpu]) -> int:
        others = [score_of(other) for other in self.live_of("worker")]
        tier = super().tier_of_worker(worker, gpus)
        if not self.worker_blocks:
            assert tier == HBM
            self.seen["before any worker has finished"] += 1
            return tier
        options = asdict(self.ranking)
        for option, value in options.items():
            self.seen[f"{option} {value}: {('HBM', 'HBF')[tier]}"] += 1
        self.seen["equal scores"] += score_of(worker) in others
        self.seen["no score"] += worker.spec.score is None
        self.seen["no score, and others without"] += (
            worker.spec.score is None and score_of(worker) in others
        )
        self.seen["shorter ones beside it: HBM"] += tier == HBM and any(
            other < score_of(worker) for other in others
        )
        self.seen["room for none"] += tier == HBF and not self.is_below_k(0, gpus)
        self.seen["room for some, rank behind"] += tier == HBF and self.is_below_k(0, gpus)
        kept = bool(self.reviewer_blocks) and self.ranking.reserve != "nothing"
        self.seen["reviewers live"] += kept and bool(self.live_of("reviewer"))
        self.seen["reviewers expected"] += kept and any(self.reviewers_at_openings)
        return tier


@pytest.mark.parametrize("policy", RANKING_POLICIES)
def test_the_rank_decides_under_every_option(policy: str):
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        workload, config = random_case(Random(seed), policy)
        simulator = CheckedSimulator(workload, config)
        simulator.placing = WatchedPlacing(config, seen)
        simulator.run()
    expected = [
        *(f"{option}: {tier}" for option in OPTIONS for tier in ("HBM", "HBF")),
        *("before any worker has finished", "equal scores", "shorter ones beside it: HBM"),
        *("room for none", "room for some, rank behind", "reviewers live", "reviewers expected"),
    ]
    expected += [] if policy == "lachesis-oracle" else ["no score", "no score, and others without"]
    rare = {name: seen[name] for name in expected if seen[name] < 10}
    assert not rare, f"of {len(SEEDS)} cases, too few show {rare}"

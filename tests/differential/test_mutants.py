"""The random cases tell the rules from rules that are nearly the same.

Each mutant is the oracle with one rule bent. If no case could tell it from the oracle, a fault of
that kind in the engine would go unseen too.
"""

from __future__ import annotations

import types
from functools import cache
from pathlib import Path
from random import Random

import pytest

from . import oracle, placing
from .case import POLICIES, RANKING_POLICIES, Config, MemoryTooSmallError, Result, Workload
from .strategies import random_case

SEEDS = range(150)
PLACING_BY_CLASS = [name for name in POLICIES if name not in RANKING_POLICIES]
SOURCE = Path(oracle.__file__).read_text(encoding="utf-8")
SOURCE_OF_PLACING = Path(placing.__file__).read_text(encoding="utf-8")

MUTANTS = {
    "the ramp is rounded a slot": ("i * ramp_ps // sessions", "i * (ramp_ps // sessions)"),
    "sessions go to the last GPU of equals": ("min(self.gpus, key", "min(self.gpus[::-1], key"),
    "requests finish in reverse order": (
        "self.finish([run for run in running if",
        "self.finish([run for run in reversed(running) if",
    ),
    "contexts are unpinned head first": ("in reversed(run.segments)", "in run.segments"),
    "the first predecessor makes ready": ('all("end" in t for t, _ in edges)', "True"),
    "delays count from the last end only": (
        'max(times["end"] + delay for times, delay in edges)',
        "self.now + max(delay for _, delay in edges)",
    ),
    "boundaries do not wait for readers": (
        "[session.runs[segment.spec.closed_after], *users]",
        "[session.runs[segment.spec.closed_after]]",
    ),
    "turns end at the last output always": (
        '["turn_end"] * (self.config.turn_end == "next-message")',
        "[]",
    ),
    "the next message closes nothing": (
        "self.close(gpu, [s for s in turns if",
        "([s for s in turns if",
    ),
    "what is carried waits for the request": (
        'runs = ended.session.runs if self.config.turn_end == "last-output" else []',
        "runs = []",
    ),
    "what is carried stays out of the reclaim list's order": (
        "run.to_write[segment], segment.released = 0, next(self.releases)",
        "run.to_write[segment] = 0",
    ),
    "a prompt keeps its place in the list when released again": (
        "            segment.released = next(self.releases)\n\n    def write_carried",
        "\n    def write_carried",
    ),
    "re-materialisation takes no prefill": (
        "if any(again + new for _, again, new",
        "if any(new for _, _, new",
    ),
    "ready requests of one instant queue by draw alone": (
        "gpu.queue.append((self.now, run.key, run))",
        "gpu.queue.append((self.now, (run.key[0], -run.key[1]), run))",
    ),
    "the queue is last come, first served": ("min(gpu.queue)", "max(gpu.queue)"),
    "one slot more": (
        "len(gpu.running) < self.config.slots",
        "len(gpu.running) <= self.config.slots",
    ),
    "the head does not wait for timers": (
        "elif gpu.running or any(run.session.gpu is gpu for run in timers):",
        "elif gpu.running:",
    ),
    "blocks are drawn newest first": (
        "for run in list(gpu.running):",
        "for run in reversed(gpu.running):",
    ),
    "the oldest is preempted": ("gpu.running.pop()", "gpu.running.pop(0)"),
    "a preempted request is queued at once": (
        "self.events.append((self.now + self.config.ttft_ref_ps, TIMER, run.key, run))\n\n"
        "    def lose_a_session",
        "self.events.append((self.now + 1, TIMER, run.key, run))\n\n    def lose_a_session",
    ),
    "the oldest session loses": ("in reversed(gpu.sessions)", "in gpu.sessions"),
    "what the head uses is lost as well": (
        "kept = spared.segments + self.reclaim_list(gpu)",
        "kept = self.reclaim_list(gpu)",
    ),
    "one block is lost instead of all": ("for _ in s.blocks if", "for _ in s.blocks[:1] if"),
    "the most recent is reclaimed": ("self.reclaim_list(gpu)[0]", "self.reclaim_list(gpu)[-1]"),
    "held prompts are reclaimed": ("s.prefix_tokens and not s.holders", "s.prefix_tokens"),
    "what waits in the queue is reclaimed": ("if s.blocks and not s.pins]", "if s.blocks]"),
    "tiers are reclaimed alike": (
        "if self.policy.falls_back:\n            return sum",
        "if True:\n            return sum",
    ),
    "a fallback keeps the target's order": ("(target, 1 - target)", "(1 - target, target)"),
    "prompts are materialised again": (
        "segment.tokens += new",
        "segment.tokens += 0 if segment.prefix_tokens else new",
    ),
    "a step reads one token more": (
        "run.context_tokens + run.generated for",
        "run.context_tokens + run.generated + 1 for",
    ),
    "chunks slide": ("c % cost.window if chunked", "min(c, cost.window) if chunked"),
    "the node waits for the sum of its GPUs": ("max(self.local_ps(gpu)", "sum(self.local_ps(gpu)"),
    "the shared part is a GPU's": ("cost.shared_ps[running]", "cost.shared_ps[1]"),
    "what lands is charged again": ("            gpu.landed_in_hbf = 0\n", ""),
    "what lands is never charged": ('if self.config.landing == "sync" else 0', "if False else 0"),
    "what lands is always charged": ('if self.config.landing == "sync" else 0', "if True else 0"),
    "nothing is flushed": ("cost.flush_ps * flushed", "cost.flush_ps * gpu.landed_in_hbf"),
}

MUTANTS_OF_PLACING = {
    "equal scores count": (
        "score_of(other) < score_of(worker)",
        "score_of(other) <= score_of(worker)",
    ),
    "the longest are preferred": (
        "score_of(other) < score_of(worker)",
        "score_of(other) > score_of(worker)",
    ),
    "without a score a worker ranks first": ("return inf if", "return -inf if"),
    "those in HBF count always": ('if self.ranking.ranked_against == "workers-in-hbm"', "if False"),
    "those in HBF never count": ('if self.ranking.ranked_against == "workers-in-hbm"', "if True"),
    "only workers of its GPU count": (
        'ranked = self.live_of("worker")',
        "own = [set(g.segments) for g in gpus if worker in g.segments][0]\n"
        '        ranked = [other for other in self.live_of("worker") if other in own]',
    ),
    "reviewers are ranked as well": (
        'class == "worker":\n                self.tiers',
        'class in ("worker", "reviewer"):\n                self.tiers',
    ),
    "the rank may be k": ("rank < room / footprint", "rank <= room / footprint"),
    "k is rounded down": ("rank < room / footprint", "rank < room // footprint"),
    "the first are ranked as well": ("not self.worker_blocks or self.is", "self.is"),
    "nobody is ranked": ("fits = not self.worker_blocks or", "fits = True or"),
    "capacity is of one GPU": ("config.gpus * config.hbm_blocks", "config.hbm_blocks"),
    "capacity is always what is free": (
        'self.hbm_blocks if self.ranking.capacity == "total" else free',
        "free",
    ),
    "capacity is always the total": (
        'self.hbm_blocks if self.ranking.capacity == "total" else free',
        "self.hbm_blocks",
    ),
    "what is free in HBF counts": ("gpu.free[HBM] for", "sum(gpu.free) for"),
    "expected reviewers are those live": (
        '"expected": mean(self.reviewers_at_openings)',
        '"expected": len(self.live_of("reviewer"))',
    ),
    "an opening does not count itself": (
        "mean(self.reviewers_at_openings)",
        "mean(self.reviewers_at_openings[:-1])",
    ),
    "live reviewers are those expected": (
        '"live": len(self.live_of("reviewer"))',
        '"live": mean(self.reviewers_at_openings)',
    ),
    "something is always kept for reviewers": (
        '"nothing": 0',
        '"nothing": mean(self.reviewers_at_openings)',
    ),
    "nothing is kept for reviewers": ("reviewers * mean(self.reviewer_blocks)", "0"),
    "a reviewer is taken for a worker": (
        "reviewers * mean(self.reviewer_blocks)",
        "reviewers * mean(self.worker_blocks)",
    ),
    "no margin": ("self.ranking.margin * mean", "mean"),
    "the last footprint stands for all": ("* mean(self.worker_blocks)", "* self.worker_blocks[-1]"),
    "a footprint is what was resident": (
        "self.worker_blocks.append(len(segment.blocks))",
        "self.worker_blocks.append(segment.tokens)",
    ),
    "a reviewer's is what was resident": (
        "self.reviewer_blocks.append(len(segment.blocks))",
        "self.reviewer_blocks.append(segment.tokens)",
    ),
    "finished workers stay in the ranking": ("            self.live.remove(segment)\n", ""),
}
MUTANTS_OF_CLOSING = {
    "blocks are counted after they are freed": (
        "            self.placing.close(segment)\n            self.lose_blocks(gpu, [segment])\n",
        "            self.lose_blocks(gpu, [segment])\n            self.placing.close(segment)\n",
    ),
    "workers live until their session ends": (
        "self.close(session.gpu, [segment])",
        "self.lose_blocks(session.gpu, [segment])",
    ),
    "segments open as their session arrives": (
        "session.segments += copies or [live]",
        "session.segments += copies or [live]\n"
        "            self.placing.open(session.segments[-1], self.gpus)",
    ),
}


Outcome = Result | tuple[int, int]  # or the request for which the memory is too small


@cache
def case(seed: int, policy: str) -> tuple[Workload, Config]:
    return random_case(Random(seed), policy, memory_may_be_too_small=seed % 2 == 1)


def outcome(simulator: type[oracle.Simulator], seed: int, policy: str) -> Outcome:
    try:
        return simulator(*case(seed, policy)).run()
    except MemoryTooSmallError as error:
        return error.args[0]


@cache
def outcome_of_the_oracle(seed: int, policy: str) -> Outcome:
    return outcome(oracle.Simulator, seed, policy)


def mutant(old: str, new: str) -> types.ModuleType:
    assert old in SOURCE, "the oracle no longer says this"
    module = types.ModuleType(oracle.__name__)
    module.__package__ = oracle.__package__
    exec(compile(SOURCE.replace(old, new), "mutant of oracle.py", "exec"), module.__dict__)
    return module


def mutant_of_placing(old: str, new: str) -> types.ModuleType:
    """The oracle with another way of placing."""
    assert old in SOURCE_OF_PLACING, "the oracle no longer says this"
    bent = types.ModuleType(placing.__name__)
    bent.__package__ = placing.__package__
    exec(
        compile(SOURCE_OF_PLACING.replace(old, new), "mutant of placing.py", "exec"), bent.__dict__
    )
    module = mutant("n₀", "n₀, the tokens of its input")
    module.Placing = bent.Placing
    return module


def differs(module: types.ModuleType, seed: int, policy: str) -> bool:
    try:
        return outcome(module.Simulator, seed, policy) != outcome_of_the_oracle(seed, policy)
    except Exception:  # a bent rule may also break down, which is a difference as well
        return True


@pytest.mark.parametrize("name", MUTANTS)
def test_some_case_tells_the_mutant(name: str):
    module = mutant(*MUTANTS[name])
    told = any(differs(module, seed, policy) for seed in SEEDS for policy in PLACING_BY_CLASS)
    assert told, f"no case tells that {name}"


@pytest.mark.parametrize("name", MUTANTS_OF_PLACING)
def test_some_case_tells_the_mutant_of_placing(name: str):
    module = mutant_of_placing(*MUTANTS_OF_PLACING[name])
    told = any(differs(module, seed, policy) for seed in SEEDS for policy in RANKING_POLICIES)
    assert told, f"no case tells that {name}"


@pytest.mark.parametrize("name", MUTANTS_OF_CLOSING)
def test_some_case_tells_the_mutant_of_closing(name: str):
    module = mutant(*MUTANTS_OF_CLOSING[name])
    told = any(differs(module, seed, policy) for seed in SEEDS for policy in RANKING_POLICIES)
    assert told, f"no case tells that {name}"


def test_the_oracle_is_no_mutant():
    module = mutant("n₀", "n₀, the tokens of its input")
    assert not any(differs(module, seed, policy) for seed in SEEDS[:30] for policy in POLICIES)

"""The random cases are valid, and small enough that everything that can run out does run out."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

import pytest

from .case import HBF, HBM, POLICIES, MemoryTooSmallError, Result, Workload
from .census import simulate
from .strategies import random_case, random_workload

SEEDS = range(120)


@cache
def results(policy: str) -> list[Result]:
    return [simulate(*random_case(Random(seed), policy)) for seed in SEEDS]


def occurrences(policy: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for result in results(policy):
        for name in ("fallbacks", "preemptions", "session_losses", "reclaimed_blocks"):
            counts[name] += getattr(result, name) > 0
        counts["rematerialised"] += any(sum(pair) for pair in result.rematerialised.values())
        counts["no output"] += any("first_token" not in t for t in result.requests.values())
        for tier, name in ((HBM, "written to HBM"), (HBF, "written to HBF")):
            counts[name] += any(pair[tier] for pair in result.materialised.values())
    return counts


@pytest.mark.parametrize("policy", POLICIES)
def test_memory_runs_out_in_every_way(policy: str):
    counts = occurrences(policy)
    expected = {"preemptions", "session_losses", "reclaimed_blocks", "rematerialised", "no output"}
    if POLICIES[policy].falls_back:
        expected |= {"fallbacks"}
    else:
        assert counts["fallbacks"] == 0
    expected |= {"written to HBF"} if policy == "hbf-only" else {"written to HBM", "written to HBF"}
    if policy == "hbm-only":
        # Its flash holds shared prompts alone, and in these cases all of them.
        expected -= {"reclaimed_blocks"}
    rare = {name: counts[name] for name in expected if counts[name] < 3}
    assert not rare, f"of {len(SEEDS)} cases, too few show {rare}"


def test_generated_tokens_keep_to_the_tier_of_policies_that_never_fall_back():
    for result in results("hbf-only"):
        assert not any(pair[HBM] for pair in result.materialised.values())
    for result in results("hbm-only"):
        assert not any(n[HBF] for name, n in result.materialised.items() if name != "prompt")


@pytest.mark.parametrize("policy", POLICIES)
def test_tokens_are_conserved(policy: str):
    """What is materialised is what the draws' requests write and emit, prompts once a GPU."""
    for seed, result in zip(SEEDS, results(policy), strict=True):
        workload, config = random_case(Random(seed), policy)
        written, prompts = 0, 0
        for index in config.draws:
            session = workload.sessions[index]
            for request in session.requests:
                written += request.output_tokens
                for segment, tokens in request.uses:
                    shared = session.segments[segment].prefix_key is not None
                    prompts += tokens if shared else 0
                    written += 0 if shared else tokens
        materialised = sum(sum(pair) for pair in result.materialised.values())
        assert written <= materialised <= written + prompts


@pytest.mark.parametrize("policy", [name for name in POLICIES if not POLICIES[name].keeps])
def test_only_shared_prompts_stay_behind(policy: str):
    for seed, result in zip(SEEDS, results(policy), strict=True):
        workload, config = random_case(Random(seed), policy)
        keys = {spec.prefix_key for session in workload.sessions for spec in session.segments}
        if keys == {None}:
            assert result.free == [[config.hbm_blocks, config.hbf_blocks]] * config.gpus


def ancestors(session_requests: list[list[int]], request: int) -> set[int]:
    found: set[int] = set()
    for before in session_requests[request]:
        found |= {before} | ancestors(session_requests, before)
    return found


def check_validity(workload: Workload) -> Counter[str]:
    """Assert the rules that a trace keeps; returns what the sessions contain."""
    seen: Counter[str] = Counter()
    prefix_tokens: dict[int, int] = {}
    for session in workload.sessions:
        tokens = [0] * len(session.segments)
        last_user = [-1] * len(session.segments)
        after = [[before for before, _, _ in request.after] for request in session.requests]
        for number, request in enumerate(session.requests):
            assert bool(request.after) == (number > 0)
            assert all(before < number for before in after[number])
            seen.update(kind for _, kind, _ in request.after)
            seen["joined branches"] += len(request.after) > 1
            for segment, written in request.uses:
                spec = session.segments[segment]
                assert tokens[segment] or written, "a segment is written before it is read"
                if spec.prefix_key is None:
                    last = last_user[segment]
                    assert last < 0 or last in ancestors(after, number), "readers come in turn"
                    seen[f"written again: {spec.segment_class}"] += bool(
                        tokens[segment] and written
                    )
                else:
                    assert not (tokens[segment] and written), "a shared prompt is written once"
                    tokens_before = prefix_tokens.setdefault(spec.prefix_key, written)
                    assert tokens[segment] or written == tokens_before
                tokens[segment] += written
            tokens[request.output_segment] += request.output_tokens
            for segment in {*dict(request.uses), request.output_segment}:
                last_user[segment] = number
            seen["output opens a segment"] += request.output_segment not in dict(request.uses)
        for spec, last in zip(session.segments, last_user, strict=True):
            assert spec.closed_after is None or spec.closed_after >= last
            assert spec.closed_by == "session_end" or spec.closed_after is not None
            seen.update([spec.segment_class, spec.closed_by])
    return seen


def test_workloads_are_valid_and_varied():
    seen: Counter[str] = Counter()
    for seed in range(300):
        seen += check_validity(random_workload(Random(seed)))
    for name in (
        "prompt", "reasoning-laden", "reasoning-stripped", "lead", "worker", "reviewer", "summary",
        "turn_end", "subagent_return", "session_end", "compaction", "request_end", "reset",
        "tool", "spawn", "return", "user", "joined branches", "output opens a segment",
        "written again: reasoning-stripped", "written again: lead", "written again: worker",
    ):  # fmt: skip
        assert seen[name] >= 20, name


def test_too_small_a_memory_is_noticed():
    failed = 0
    for seed in range(40):
        workload, config = random_case(Random(seed), "hbm-first", memory_may_be_too_small=True)
        try:
            simulate(workload, config)
        except MemoryTooSmallError:
            failed += 1
    assert 5 <= failed <= 35

"""The Rust engine and the plain-Python oracle agree: every time, every token, every count.

`LACHESIS_EXAMPLES` sets how many random cases are tried for each test, and makes them new ones
every time; without it they are the same ones in every run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from . import census, engine
from .case import (
    POLICIES,
    Config,
    MemoryTooSmallError,
    Request,
    Result,
    Segment,
    Session,
    StepCost,
    Workload,
)
from .strategies import POLICY_NAMES, cases, of_real_size, random_case

EXAMPLES = os.environ.get("LACHESIS_EXAMPLES")
random_cases = settings(
    max_examples=int(EXAMPLES or 150),
    derandomize=EXAMPLES is None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

Simulate = Callable[[Workload, Config], Result]


def outcome(simulate: Simulate, workload: Workload, config: Config) -> Result | str:
    try:
        return simulate(workload, config)
    except MemoryTooSmallError:
        return "the memory is too small"


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_engine_and_oracle_agree(policy: str):
    @random_cases
    @given(case=cases(policy))
    def agree(case: tuple[Workload, Config]) -> None:
        assert engine.simulate(*case) == census.simulate(*case)

    agree()


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_engine_and_oracle_agree_where_the_memory_may_be_too_small(policy: str):
    @random_cases
    @given(case=cases(policy, memory_may_be_too_small=True))
    def agree(case: tuple[Workload, Config]) -> None:
        assert outcome(engine.simulate, *case) == outcome(census.simulate, *case)

    agree()


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_they_agree_on_times_of_real_size(policy: str):
    """Nothing overflows and nothing is rounded."""
    for seed in range(25):
        workload, config = of_real_size(*random_case(Random(seed), policy))
        assert engine.simulate(workload, config) == census.simulate(workload, config)


def test_they_agree_over_long_outputs():
    """Thousands of steps without an event, which the engine takes in one."""
    session = Session(
        [
            Request([], [(0, 37), (1, 5)], 1, 3000),
            Request([(0, "tool", 11)], [(0, 0), (1, 3)], 1, 2001),
        ],
        [Segment("prompt"), Segment("lead")],
    )
    other = Session([Request([], [(0, 9)], 0, 1777)], [Segment("worker")], start_ps=4001)
    cost = StepCost(
        local_ps=[0, 50, 61],
        shared_ps=[0, 7, 9, 12, 14],
        context_ps=2,
        window_ps=3,
        window=129,
        window_kind="chunked",
        flush_ps=5,
        overhead_ps=11,
    )
    for policy in POLICY_NAMES[:4]:
        _, config = random_case(Random(1), policy)
        settings_: dict[str, Any] = {"gpus": 2, "slots": 2, "draws": [0, 1, 0], "block_tokens": 16}
        settings_ |= {"hbm_blocks": 400, "hbf_blocks": 700, "arrivals": ("recorded",)}
        for sliding in ("chunked", "sliding"):
            case = replace(config, cost=replace(cost, window_kind=sliding), **settings_)
            workload = Workload([session, other])
            assert engine.simulate(workload, case) == census.simulate(workload, case)


def bent(config: Config, change: str) -> Config:
    """The configuration with one figure changed by the least amount."""
    cost = config.cost
    if change in ("context_ps", "window_ps", "flush_ps", "overhead_ps", "window"):
        return replace(config, cost=replace(cost, **{change: getattr(cost, change) + 1}))
    if change in ("local_ps", "shared_ps"):
        one_more = [ps + (index == 1) for index, ps in enumerate(getattr(cost, change))]
        return replace(config, cost=replace(cost, **{change: one_more}))
    if change == "window_kind":
        return replace(config, cost=replace(cost, window_kind="chunked"))
    if change == "landing":
        return replace(config, landing="sync")
    if change == "turn_end":
        return replace(config, turn_end="next-message")
    return replace(config, **{change: getattr(config, change) + 1})


@pytest.mark.parametrize(
    "change",
    [
        "context_ps", "window_ps", "flush_ps", "overhead_ps", "window", "local_ps", "shared_ps",
        "window_kind", "landing", "turn_end", "ttft_ref_ps", "block_tokens",
    ],
)  # fmt: skip
def test_a_change_of_one_figure_does_not_pass(change: str):
    """The comparison can fail: an engine that is told another figure gives another result."""
    session = Session(
        [
            Request([], [(0, 6), (1, 4)], 1, 5),
            Request([(0, "user", 3)], [(0, 0), (2, 7)], 3, 9),
        ],
        [
            Segment("prompt", prefix_key=0),
            Segment("reasoning-laden", closed_by="turn_end", closed_after=0),
            Segment("reasoning-stripped"),
            Segment("reasoning-laden", closed_by="turn_end", closed_after=1),
        ],
    )
    config = Config(
        gpus=1,
        hbm_blocks=2,
        hbf_blocks=20,
        slots=2,
        ttft_ref_ps=10,
        cost=StepCost([0, 3, 4], [0, 1, 2], 1, 1, 7, "sliding", 2, 5),
        draws=[0],
        policy=POLICIES["lachesis-deterministic"],
        block_tokens=4,
    )
    workload = Workload([session])
    expected = census.simulate(workload, config)
    assert engine.simulate(workload, config) == expected
    assert engine.simulate(workload, bent(config, change)) != expected


@random_cases
@given(case=st.sampled_from(POLICY_NAMES).flatmap(cases))
def test_the_same_case_gives_the_same_result_twice(case: tuple[Workload, Config]):
    assert engine.simulate(*case) == engine.simulate(*case)

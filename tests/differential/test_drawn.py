"""The engine and the oracle agree where delays, arrivals and the order of sessions are drawn.

The oracle takes what was drawn as given; that it is drawn from the right distributions is tested
against closed forms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import erf, exp, expm1, log, sqrt
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lachesis import _engine

from . import census, engine
from .case import POLICIES, Config, Request, Segment, Session, StepCost, Workload
from .drawn import random_drawing, starting_as_in, unrolled, with_open_delays
from .strategies import POLICY_NAMES, of_real_size, random_case

SEEDS = range(60)


def drawn_case(seed: int, policy: str) -> tuple[Workload, Config]:
    rng = Random(seed)
    workload, config = random_case(rng, policy)
    return with_open_delays(rng, workload), replace(config, drawing=random_drawing(rng))


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_they_agree_over_drawn_delays(policy: str):
    for seed in SEEDS:
        workload, config = drawn_case(seed, policy)
        assert engine.simulate(workload, config) == census.simulate(*unrolled(workload, config))


def test_delays_of_all_kinds_are_drawn_and_differ_by_draw():
    """What the test above rests on: drawn delays are not all nought, and no two draws are alike."""
    kinds, again = dict.fromkeys(("tool", "user"), 0), 0
    for seed in SEEDS:
        workload, config = drawn_case(seed, "hbm-first")
        sessions = unrolled(workload, config)[0].sessions
        for draw, index in enumerate(config.draws):
            given = workload.sessions[index].requests
            for request, fixed in zip(given, sessions[draw].requests, strict=True):
                for (_, kind, open_ps), (_, _, ps) in zip(request.after, fixed.after, strict=True):
                    if kind in kinds and open_ps is None:
                        kinds[kind] += ps > 0
            again += any(
                sessions[draw].requests != sessions[other].requests
                for other in range(draw)
                if config.draws[other] == index
            )
    assert min(kinds.values()) > 100
    assert again > 10


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("seed", 1), ("tool_mean_s", (4e-11, 6e-11)), ("tool_sigma", 0.5),
        ("user_median_s", 3e-11), ("user_sigma", 0.5),
    ],
)  # fmt: skip
def test_another_drawing_does_not_pass(change: str, value: Any):
    session = Session(
        [
            Request([], [(0, 4)], 0, 1, tools=[0, 1]),
            Request([(0, "tool", None)], [(0, 0)], 0, 1),
            Request([(1, "user", None)], [(0, 0)], 0, 1),
        ],
        [Segment("lead")],
    )
    _, config = random_case(Random(0), "hbm-first")
    config = replace(config, hbm_blocks=99, draws=[0] * 3, arrivals=("recorded",))
    drawing = replace(config.drawing, tool_mean_s=(2e-11, 3e-11), user_median_s=2e-11)
    workload, config = Workload([session]), replace(config, drawing=drawing)
    expected = census.simulate(*unrolled(workload, config))
    assert engine.simulate(workload, config) == expected
    bent = replace(config, drawing=replace(drawing, **{change: value}))
    assert engine.simulate(workload, bent) != expected


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_they_agree_over_poisson_arrivals(policy: str):
    """Steps of microseconds and up to a million sessions a second, so that sessions overlap."""
    overlaps = 0
    for seed in SEEDS:
        rng = Random(seed)
        workload, config = of_real_size(*random_case(rng, policy))
        rate = rng.choice([1e6, 1e6, 1e5, 3e4])
        poisson = replace(
            config, arrivals=("poisson", rate), drawing=replace(config.drawing, seed=seed)
        )
        result = engine.simulate(workload, poisson)
        copies = unrolled(workload, poisson)
        assert result == census.simulate(*starting_as_in(result, *copies))
        starts = [result.requests[draw, 0]["ready"] for draw in range(len(config.draws))]
        ends = [
            max(times["end"] for (of, _), times in result.requests.items() if of == draw)
            for draw in range(len(config.draws))
        ]
        overlaps += any(start < end for start, end in zip(starts[1:], ends, strict=False))
    assert overlaps > 20


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_a_recording_is_replayed_in_the_order_of_its_starts(policy: str):
    """Whatever the order in the file: without a list of draws the engine goes by the starts."""
    for seed in SEEDS:
        rng = Random(seed)
        workload, config = random_case(rng, policy)
        config = replace(config, draws=list(range(len(workload.sessions))), arrivals=("recorded",))
        expected = census.simulate(workload, config)
        shuffled = Workload(rng.sample(workload.sessions, len(workload.sessions)))
        by_start = sorted(config.draws, key=lambda index: shuffled.sessions[index].start_ps)
        assert (
            engine.simulate(shuffled, replace(config, draws=by_start), gives_draws=False)
            == expected
        )


def test_sessions_that_start_together_are_replayed_alike_in_any_order_of_the_file():
    """Ties go by content, so that the place in the file says nothing."""
    for seed in SEEDS:
        rng = Random(seed)
        workload, config = random_case(rng, "lachesis-deterministic")
        sessions = [replace(session, start_ps=7) for session in workload.sessions]
        config = replace(config, arrivals=("recorded",))
        shuffled = rng.sample(sessions, len(sessions))
        results = [replay_recording(order, config) for order in (sessions, shuffled)]
        for part in ("whole", "requests", "free_blocks"):
            assert results[0][part] == results[1][part]


def replay_recording(sessions: list[Session], config: Config) -> dict[str, Any]:
    workload = Workload(sessions)
    return engine.replay(workload, engine.run_config(workload, config) | {"draws": None}, config)


def test_without_a_list_of_draws_every_session_is_drawn_once_an_epoch():
    """The closed loop draws by `draw_order`, epoch after epoch; the oracle is given that order."""
    for seed in range(25):
        rng = Random(seed)
        workload, config = random_case(rng, "lachesis")
        config = replace(
            config,
            arrivals=("closed", rng.randint(1, 4), 30),
            drawing=replace(config.drawing, seed=seed),
        )
        loaded = _engine.Workload(**engine.columns(workload))
        orders = [loaded.draw_order(seed, epoch) for epoch in range(40)]
        assert all(sorted(order) == list(range(len(workload.sessions))) for order in orders)
        settings = engine.run_config(workload, config) | {"draws": None}
        stop = engine.DRAINED | {"kind": "fixed", "measured_turnovers": 5.0}
        outcome = engine.replay(workload, settings, config, stop)
        drawn = [index for order in orders for index in order]
        finite = replace(config, draws=drawn[: outcome["whole"]["sessions"] + 4])
        expected = census.simulate(workload, finite)
        assert len(outcome["requests"]) == outcome["whole"]["requests"] > 0
        for draw, request, ready, _, _, end in outcome["requests"]:
            times = expected.requests[draw, request]
            assert (times["ready"], times["end"]) == (ready, end)


def largest_distance(values: list[float], distribution: Callable[[float], float]) -> float:
    """Of Kolmogorov and Smirnov, times √n: above 1.95 once in a thousand samples."""
    count = len(values)
    steps = [
        max(distribution(value) - place / count, (place + 1) / count - distribution(value))
        for place, value in enumerate(sorted(values))
    ]
    return max(steps) * sqrt(count)


COUNT = 20_000


def tool_delays_s(mean_s: float, sigma: float | None) -> NDArray[np.float64]:
    draws = [
        _engine.tool_delay_ps(5, i, i % 7, i % 3, mean_s=mean_s, sigma=sigma) for i in range(COUNT)
    ]
    return np.array(draws) / 1e12


def normal(z: float) -> float:
    return (1 + erf(z / sqrt(2))) / 2


def test_tool_latencies_are_exponential():
    delays = tool_delays_s(2.5, None)
    assert abs(delays.mean() / 2.5 - 1) < 4 / sqrt(COUNT)  # its deviation is its mean
    # Deviation of a sample median: 1 / (2 f(m) √n), with f(m) = 1 / (2 mean).
    assert abs(np.median(delays) - 2.5 * log(2)) < 4 * 2.5 / sqrt(COUNT)
    assert largest_distance(list(delays), lambda t: -expm1(-t / 2.5)) < 1.95


def test_tool_latencies_are_log_normal_with_the_mean_that_was_asked():
    sigma = 0.8
    delays = tool_delays_s(2.5, sigma)
    deviation = 2.5 * sqrt(expm1(sigma**2))
    assert abs(delays.mean() - 2.5) < 4 * deviation / sqrt(COUNT)
    median = 2.5 * exp(-(sigma**2) / 2)
    assert largest_distance(list(delays), lambda t: normal(log(t / median) / sigma)) < 1.95


def test_user_delays_are_log_normal_about_their_median():
    sigma = 1.0
    draws = [_engine.user_delay_ps(5, i, i % 7, median_s=120.0, sigma=sigma) for i in range(COUNT)]
    delays = np.array(draws) / 1e12
    # The logarithm's median has deviation √(π/2)·σ/√n.
    assert abs(log(np.median(delays) / 120.0)) < 4 * 1.2533 * sigma / sqrt(COUNT)
    assert abs(delays.mean() / (120 * exp(0.5)) - 1) < 4 * sqrt(expm1(1.0)) / sqrt(COUNT)
    assert largest_distance(list(delays), lambda t: normal(log(t / 120.0) / sigma)) < 1.95


def test_draws_differ_by_every_part_of_their_key():
    keys = {(seed, draw, request, call) for seed in (0, 1) for draw in (0, 1) for request in (0, 1)
            for call in (0, 1)}  # fmt: skip
    assert len({_engine.tool_delay_ps(*key, mean_s=1.0) for key in keys}) == len(keys)
    keys = {key[:3] for key in keys}
    assert len({_engine.user_delay_ps(*key, median_s=1.0, sigma=1.0) for key in keys}) == len(keys)


def test_no_delay_is_longer_than_thirty_days():
    thirty_days_ps = 30 * 86_400 * 10**12
    draws = [_engine.user_delay_ps(0, i, 0, median_s=1e7, sigma=1.0) for i in range(20)]
    assert max(draws) == thirty_days_ps


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), 1e8])
def test_figures_of_no_distribution_are_refused(value: float):
    with pytest.raises(_engine.EngineError, match="must be from 0"):
        _engine.tool_delay_ps(0, 0, 0, 0, mean_s=value)
    with pytest.raises(_engine.EngineError, match="must be from 0"):
        _engine.tool_delay_ps(0, 0, 0, 0, mean_s=1.0, sigma=value)
    with pytest.raises(_engine.EngineError, match="must be from 0"):
        _engine.user_delay_ps(0, 0, 0, median_s=1.0, sigma=value)


def test_poisson_gaps_are_exponential_and_the_same_for_every_policy():
    count, rate = 4000, 1000.0
    session = Session([Request([], [(0, 1)], 0, 0)], [Segment("lead")])
    cost = StepCost([0] * 3, [0] * 3, overhead_ps=1)
    starts = {}
    for policy in ("hbm-first", "lachesis"):
        config = Config(
            1, 99_999, 99_999, 2, 1, cost, [0] * count, POLICIES[policy], arrivals=("poisson", rate)
        )
        result = engine.simulate(Workload([session]), config)
        starts[policy] = [result.requests[draw, 0]["ready"] for draw in range(count)]
    assert starts["hbm-first"] == starts["lachesis"]
    gaps = [(after - before) / 1e12 for before, after in pairwise([0, *starts["lachesis"]])]
    assert min(gaps) >= 0
    assert abs(sum(gaps) / count * rate - 1) < 4 / sqrt(count)
    assert largest_distance(gaps, lambda t: -expm1(-t * rate)) < 1.95
    # One gap says nothing of the next.
    correlation = np.corrcoef(gaps[:-1], gaps[1:])[0, 1]
    assert abs(correlation) < 4 / sqrt(count)

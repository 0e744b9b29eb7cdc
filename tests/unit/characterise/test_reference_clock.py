"""The reference clock on graphs that are small enough to schedule by hand."""

import msgspec
import numpy as np
import pytest

from lachesis.characterise.reference_clock import (
    join_rows,
    read_write_ratio,
    schedule,
    waiting_share,
    written_tokens,
)
from lachesis.presets import load_latency
from lachesis.traces import Edge, EdgeKind, Role, TraceBuilder


def of_class(trace, kind):
    return np.flatnonzero(np.array(trace.segments["class"].to_pylist()) == kind)


@pytest.fixture
def latency():
    """Without spread, a user takes 120 s; tools have no part in these graphs."""
    return msgspec.structs.replace(load_latency(), user_sigma=0.0)


@pytest.fixture
def two_turns():
    """Turn 0: 10 tokens, a tool of 3 s, 20 tokens. The user waits. Turn 1: 5 tokens."""
    builder = TraceBuilder(source="two turns")
    session = builder.session("a", workload="w", harness="h", stripping="turn")
    session.request(input_tokens=100, prompt_tokens=60, output_tokens=10, tools=["retrieval"])
    session.request(
        input_tokens=130, appended_tokens=20, output_tokens=20, observations=1, delay_s=3.0
    )
    session.request(
        opens_turn=True, input_tokens=60 + 50 + 7, carried_tokens=50, appended_tokens=7,
        output_tokens=5,
    )  # fmt: skip
    return builder.build()


def test_times_of_two_turns(two_turns, latency):
    clock = schedule(two_turns, latency, seed=0)
    # 10 x 0.2 = 2; + 3 tool; 1 observation + 20 x 0.2 = 5; + 120 user; 5 x 0.2 = 1
    assert clock.start_s.tolist() == [0.0, 5.0, 130.0]
    assert clock.end_s.tolist() == [2.0, 10.0, 131.0]


def test_laden_ends_with_its_turn_and_stripped_includes_the_wait(two_turns, latency):
    clock = schedule(two_turns, latency, seed=0)
    laden, stripped = (
        of_class(two_turns, "reasoning-laden"),
        of_class(two_turns, "reasoning-stripped"),
    )
    assert clock.t_norm_s[laden].tolist() == [10.0, 1.0]
    assert clock.t_norm_s[stripped].tolist() == [121.0]


def test_tokens_written_by_segment(two_turns):
    laden, stripped = (
        of_class(two_turns, "reasoning-laden"),
        of_class(two_turns, "reasoning-stripped"),
    )
    tokens = written_tokens(two_turns)
    assert tokens[laden].tolist() == [40 + 10 + 20 + 20, 7 + 5]
    assert tokens[stripped].tolist() == [50]


def test_read_write_ratio_counts_every_decode_step(two_turns):
    laden, stripped = (
        of_class(two_turns, "reasoning-laden"),
        of_class(two_turns, "reasoning-stripped"),
    )
    rho = read_write_ratio(two_turns)
    # Step i of a request reads what stood before it: n, n + 1, ...
    first = sum(40 + i for i in range(10)) + sum(70 + i for i in range(20))
    last = sum(7 + i for i in range(5))
    assert rho[laden].tolist() == pytest.approx([first / 90, last / 12])
    assert rho[stripped].tolist() == pytest.approx([50 * 5 / 50])


@pytest.fixture
def delegation():
    """A lead spawns two workers at once; one is reviewed; the lead takes both results."""
    builder = TraceBuilder(source="delegation")
    session = builder.session("a", workload="w", harness="h", stripping="off")
    lead = session.request(input_tokens=50, output_tokens=10, tools=["spawn", "spawn"])
    for agent in ("long", "short", "review"):
        session.spawn(
            agent, spawned_by=lead, role=Role.REVIEWER if agent == "review" else Role.WORKER
        )
    session.request(agent="long", input_tokens=20, output_tokens=100)
    short = session.request(agent="short", input_tokens=20, output_tokens=10)
    session.request(
        agent="review", input_tokens=30, output_tokens=15,
        after=[Edge(short, EdgeKind.RETURN, 0.0)],
    )  # fmt: skip
    answer = session.request(input_tokens=100, output_tokens=20, observations=2)
    for agent in ("long", "short", "review"):
        session.returns(agent, to=answer)
    return builder.build()


def test_parallel_workers_cost_the_longest(delegation, latency):
    clock = schedule(delegation, latency, seed=0)
    lives = {
        kind: clock.t_norm_s[of_class(delegation, kind)].tolist()
        for kind in ("lead", "worker", "reviewer")
    }
    # Lead 2 s; workers 20 s and 2 s; review 3 s inside the longer worker; lead 2 + 4 s.
    assert sorted(lives["worker"]) == [2.0, 20.0]
    assert lives["reviewer"] == [3.0]
    assert lives["lead"] == [28.0]


def test_waiting_share_is_the_time_without_a_lead_request(delegation, latency):
    clock = schedule(delegation, latency, seed=0)
    assert waiting_share(delegation, clock).tolist() == pytest.approx([20.0 / 28.0])


def test_draws_depend_on_content_and_seed_not_on_name_or_order(delegation, two_turns):
    def lives(*names):
        builder = TraceBuilder(source="x")
        for name in names:
            session = builder.session(name, workload="w", harness="h", stripping="turn")
            session.request(input_tokens=10 + len(name), output_tokens=3, tools=["retrieval"])
            session.request(input_tokens=40, output_tokens=3, observations=1)
        trace = builder.build()
        end_s = schedule(trace, load_latency(), seed=4).end_s
        first = join_rows(trace).first_request
        return {len(name): end_s[row + 1] for name, row in zip(names, first, strict=True)}

    assert lives("a", "bb") == lives("yy", "x")
    assert lives("a")[1] != lives("aaaa")[4]


def test_the_longest_of_parallel_calls_is_drawn(latency):
    def mean_end(tools):
        builder = TraceBuilder(source="x")
        for index in range(400):
            session = builder.session(f"s{index}", workload="w", harness="h", stripping="off")
            session.request(input_tokens=10 + index, output_tokens=1, tools=tools)
            session.request(input_tokens=600 + index, output_tokens=1)
        clock = schedule(builder.build(), latency, seed=1)
        return clock.start_s[1::2].mean() - 0.2

    # Exponential with mean 0.69: the larger of two has mean 1.5 x 0.69.
    assert mean_end(["retrieval"]) == pytest.approx(0.69, rel=0.15)
    assert mean_end(["retrieval", "retrieval"]) == pytest.approx(1.5 * 0.69, rel=0.15)


def test_log_normal_tools_keep_their_mean(latency):
    spread = msgspec.structs.replace(latency, tool_distribution="lognormal", tool_sigma=0.5)
    builder = TraceBuilder(source="x")
    for index in range(1500):
        session = builder.session(f"s{index}", workload="w", harness="h", stripping="off")
        session.request(input_tokens=10 + index, output_tokens=1, tools=["human"])
        session.request(input_tokens=1600 + index, output_tokens=1)
    clock = schedule(builder.build(), spread, seed=1)
    waits = clock.start_s[1::2] - 0.2
    assert waits.mean() == pytest.approx(28.6, rel=0.08)
    assert np.median(waits) == pytest.approx(28.6 * np.exp(-0.125), rel=0.08)

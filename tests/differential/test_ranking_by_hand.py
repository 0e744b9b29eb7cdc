"""The ranking of workers worked out by hand, for the oracle and the engine.

One GPU with 1,000 blocks of HBM unless a case says otherwise. A worker is a session of one request
without output: it opens at its start and is over when its prefill ends, 100 ps later. The worker
"before" writes 8 tokens from 0 to 100, so that one worker has finished with 2 blocks; those that
are ranked start at 200, 201, … and write 1, 2, 4, … tokens, so that the tokens of each tier tell
who lies there.
"""

from __future__ import annotations

from typing import Any

import pytest

from .by_hand import Replay
from .case import Ranking, Request, Result, Segment, Session, StepCost


def agent(
    written: int, start_ps: int, score: float | None = None, segment_class: str = "worker"
) -> Session:
    segment = Segment(segment_class, score=score)
    return Session([Request([], [(0, written)], 0, 0)], [segment], start_ps)


BEFORE = agent(8, 0, score=5.0)


def ranked(*scores: float | None) -> list[Session]:
    return [agent(2**place, 200 + place, score) for place, score in enumerate(scores)]


def replay_ranked(
    replay: Replay, *sessions: Session, ranking: Ranking, policy: str = "lachesis", **settings: Any
) -> Result:
    defaults: dict[str, Any] = {"hbm_blocks": 1000, "hbf_blocks": 10_000}
    return replay(*sessions, policy=policy, ranking=ranking, **(defaults | settings))


def places(tokens: int) -> set[int]:
    return {place for place in range(tokens.bit_length()) if tokens >> place & 1}


def tiers(result: Result) -> tuple[set[int], set[int]]:
    """Who of the ranked workers lies in HBM and in HBF, by place from 0."""
    hbm, hbf = result.materialised["worker"]
    return places(hbm - 8), places(hbf)  # without the 8 tokens of the one before


@pytest.mark.parametrize("policy", ["lachesis", "lachesis-oracle"])
def test_a_worker_needs_fewer_than_k_shorter_ones_beside_it(replay: Replay, policy: str):
    # k = 1000 / (250 · 2) = 2. 5: none is shorter. 7: one. 9: two, so HBF. 6: only the 5. The
    # other 5 and the 5.5: none and two. The last, 5: none, as equal scores do not count.
    sessions = [BEFORE, *ranked(5, 7, 9, 6, 5, 5.5, 5)]
    result = replay_ranked(replay, *sessions, ranking=Ranking(margin=250), policy=policy)
    assert tiers(result) == ({0, 1, 3, 4, 6}, {2, 5})
    assert result.fallbacks == 0


def test_k_is_not_rounded(replay: Replay):
    # k = 1000 / (400 · 2) = 1.25: one shorter worker is fewer, two are not.
    result = replay_ranked(replay, BEFORE, *ranked(1, 2, 3), ranking=Ranking(margin=400))
    assert tiers(result) == ({0, 1}, {2})


def test_the_mean_is_of_all_that_have_finished(replay: Replay):
    # Two before, of 2 and 4 blocks: mean 3, k = 1000 / (3 · 250) = 1.33. With the last or the
    # first alone k would be 1, or 2 and the third worker in HBM.
    sessions = [BEFORE, agent(16, 1, 5.0), *ranked(1, 2, 3)]
    result = replay_ranked(replay, *sessions, ranking=Ranking(margin=250))
    assert tiers(result) == ({0, 1, 4}, {2})


def test_without_a_score_a_worker_ranks_behind_all(replay: Replay):
    # k = 2. None; None: the other's rank is equal, not smaller. 3. None: behind the 3. 4. None:
    # behind 3 and 4, so HBF.
    scores = [None, None, 3.0, None, 4.0, None]
    result = replay_ranked(replay, BEFORE, *ranked(*scores), ranking=Ranking(margin=250))
    assert tiers(result) == ({0, 1, 2, 3, 4}, {5})


def test_the_two_zeros_are_equal(replay: Replay):
    # k = 1: a single shorter worker is too many.
    result = replay_ranked(replay, BEFORE, *ranked(-0.0, 0.0, 0.5), ranking=Ranking(margin=500))
    assert tiers(result) == ({0, 1}, {2})


def test_all_go_to_hbm_until_one_has_finished(replay: Replay):
    # k = 1000 / (10⁶ · 2), once it is known. Those that start before 100 are not ranked; of those
    # at 200 and 201 only the first has nobody shorter beside it.
    early = [agent(4, 98, 1.0), agent(8, 99, 2.0)]
    sessions = [BEFORE, *early, *ranked(0.1, 0.2)]
    result = replay_ranked(replay, *sessions, ranking=Ranking(margin=1e6))
    assert tiers(result) == ({0, 2, 3}, {1})


@pytest.mark.parametrize(
    ("against", "expected"), [("live-workers", ({3}, {0, 1})), ("workers-in-hbm", ({1, 3}, {0}))]
)
def test_against_whom_a_worker_is_ranked(
    replay: Replay, against: str, expected: tuple[set[int], set[int]]
):
    # k = 1. The short one is in HBM 150-250. The 7, at 200, lies in HBF until 300. The 9, at 260,
    # has the 7 beside it among live workers, and nobody among those in HBM.
    sessions = [BEFORE, agent(8, 150, 1.0), agent(1, 200, 7.0), agent(2, 260, 9.0)]
    ranking = Ranking(against, margin=500)
    assert tiers(replay_ranked(replay, *sessions, ranking=ranking)) == expected


@pytest.mark.parametrize(
    ("reserve", "margin", "last"),
    [
        ("live", 199, "HBM"),  # k = (1000 - 2 · 100) / (2 · 199) = 2.01
        ("live", 200, "HBF"),  # 800 / 400 = 2
        ("expected", 206, "HBM"),  # (1000 - 1.75 · 100) / (2 · 206) = 2.002
        ("expected", 207, "HBF"),  # 825 / 414 = 1.99; without its own count 833.3 / 414 = 2.01
        ("nothing", 249, "HBM"),  # 1000 / 498 = 2.01
        ("nothing", 250, "HBF"),  # 1000 / 500 = 2
    ],
)
def test_room_is_kept_for_reviewers(replay: Replay, reserve: str, margin: float, last: str):
    # A reviewer of 400 tokens, 100 blocks, and the worker before both run from 0 to 100. Two more
    # reviewers start at 199. The reviewers live when workers open: 1, then 2, 2, 2: mean 1.75.
    reviewers = [agent(400, start_ps, segment_class="reviewer") for start_ps in (0, 199, 199)]
    sessions = [reviewers[0], BEFORE, *reviewers[1:], *ranked(1, 2, 3)]
    result = replay_ranked(replay, *sessions, ranking=Ranking(reserve=reserve, margin=margin))
    assert tiers(result) == (({0, 1, 2}, set()) if last == "HBM" else ({0, 1}, {2}))
    assert result.materialised["reviewer"] == [1200, 0]


@pytest.mark.parametrize(
    ("gpus", "capacity", "margin", "last"),
    [
        (1, "total", 249, "HBM"),  # k = 1000 / 498 = 2.01
        (1, "total", 250, "HBF"),
        (1, "free", 49, "HBM"),  # (1000 - 800) / 98 = 2.04
        (1, "free", 50, "HBF"),
        (2, "total", 499, "HBM"),  # 2000 / 998 = 2.004
        (2, "total", 500, "HBF"),
        (2, "free", 299, "HBM"),  # (2000 - 800) / 598 = 2.007
        (2, "free", 300, "HBF"),
    ],
)
def test_capacity_is_of_the_node_in_all_or_free(
    replay: Replay, gpus: int, capacity: str, margin: float, last: str
):
    # A reviewer holds 800 blocks of HBM from 100 to 500: 3,196 tokens and one of each of 4 steps.
    reviewer = Session([Request([], [(0, 3196)], 0, 4)], [Segment("reviewer")])
    ranking = Ranking(capacity=capacity, reserve="nothing", margin=margin)
    cost = StepCost([0] * 3, [0] * 5, overhead_ps=100)
    sessions = [reviewer, BEFORE, *ranked(1, 2, 3)]
    result = replay_ranked(replay, *sessions, ranking=ranking, gpus=gpus, cost=cost)
    assert tiers(result) == (({0, 1, 2}, set()) if last == "HBM" else ({0, 1}, {2}))


def test_a_worker_opens_as_its_first_request_becomes_ready(replay: Replay):
    # k = 1. The lead's session arrives at 0, but its worker, of score 9, opens at 210, when one of
    # score 1 lives, from 205. It goes to HBF.
    lead = Session(
        [Request([], [(0, 4)], 0, 0), Request([(0, "spawn", 110)], [(1, 2)], 1, 0)],
        [Segment("lead"), Segment("worker", None, "subagent_return", 1, score=9.0)],
    )
    result = replay_ranked(replay, BEFORE, lead, agent(1, 205, 1.0), ranking=Ranking(margin=500))
    assert tiers(result) == ({0}, {1})


def test_where_finished_workers_left_no_blocks_all_go_to_hbm(replay: Replay):
    # 2 + 2 blocks. The first session's worker writes 8 tokens by 100; its segment closes after the
    # second request, which is ready at 1100. The other session needs all 4 blocks; it waits until
    # no timer is pending, at 1200, and takes the worker's 2 (it falls back for 2 of its own). So
    # the worker closes with none. Of the three at 1300, with a block each, the third falls back.
    first = Session(
        [Request([], [(0, 8)], 0, 0), Request([(0, "tool", 1000)], [(1, 1)], 1, 0)],
        [Segment("worker", None, "subagent_return", 1, score=1.0), Segment("lead")],
    )
    other = agent(16, 50, segment_class="reviewer")
    later = [
        Session([Request([], [(0, 1)], 0, 1)], [Segment("worker", score=score)], 1300)
        for score in (1.0, 2.0, 3.0)
    ]
    ranking, cost = Ranking(reserve="nothing"), StepCost([0] * 4, [0] * 4, overhead_ps=10)
    memory = {"hbm_blocks": 2, "hbf_blocks": 2, "slots": 3}
    result = replay_ranked(replay, first, other, *later, ranking=ranking, cost=cost, **memory)
    assert result.session_losses == 1
    assert result.materialised["worker"] == [8 + 2 + 2, 2]
    assert result.fallbacks == 2 + 1

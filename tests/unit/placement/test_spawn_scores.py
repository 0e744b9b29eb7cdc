"""Scores at the spawn: from trained predictors, from any object, and lessons at the return."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lachesis.errors import InputError
from lachesis.placement import Placement, SpawnRecord
from lachesis.policy import Policy, RankingOptions
from lachesis.predict import Kind, SpawnRecords, train
from lachesis.traces import open_trace


class Fixed:
    def __init__(self, scores):
        self.scores = iter(scores)
        self.records = []

    def score(self, record):
        self.records.append(record)
        return next(self.scores)


AT_FINAL_FOOTPRINT = Policy(
    name="lachesis", summary="", source="", ranking=RankingOptions(margin=1.0)
)


def test_the_shortest_ranked_workers_get_hbm():
    placement = Placement(10, 90, predictor=Fixed([5.0, 1.0, 9.0, 2.0]), policy=AT_FINAL_FOOTPRINT)
    placement.spawn("first", {}, session="s")
    placement.commit("first", range(5))
    placement.boundary("subagent_return", session="s", segment="first")
    # A worker takes 5 blocks, so HBM has room for two beside each other.
    tiers = [placement.spawn(name, {}, session="s").tier for name in ("short", "long", "middle")]
    assert tiers == ["hbm", "hbm", "hbm"]
    placement = Placement(10, 90, predictor=Fixed([5.0, 1.0, 2.0, 9.0]), policy=AT_FINAL_FOOTPRINT)
    placement.spawn("first", {}, session="s")
    placement.commit("first", range(5))
    placement.boundary("subagent_return", session="s", segment="first")
    tiers = [placement.spawn(name, {}, session="s").tier for name in ("short", "middle", "long")]
    assert tiers == ["hbm", "hbm", "hbf"]


def test_options_of_the_ranking_can_be_given():
    options = RankingOptions(margin=5.0)
    policy = Policy(name="wary", summary="", source="", ranking=options)
    placement = Placement(10, 90, predictor=Fixed([1.0, 2.0, 1.5]), policy=policy)
    placement.spawn("first", {}, session="s")
    placement.commit("first", range(2))
    placement.boundary("subagent_return", session="s", segment="first")
    assert placement.spawn("second", {}, session="s").tier == "hbm"
    assert placement.spawn("third", {}, session="s").tier == "hbm"
    assert placement.stats().policy == "wary"


def test_reviewers_are_not_scored_and_positions_are_counted():
    predictor = Fixed([1.0, 2.0])
    placement = Placement(4, 8, predictor=predictor)
    placement.spawn("a", {"instruction": "x"}, session="s")
    review = placement.spawn("b", {"role": "reviewer"}, session="s")
    score = placement.spawn("c", SpawnRecord(tools=("shell",)), session="s")
    assert (review.value, review.tier, review.position) == (None, "hbm", 1)
    assert (score.value, score.position) == (2.0, 2)
    assert [record.position for record in predictor.records] == [0, 2]


@pytest.mark.parametrize("score", [math.nan, math.inf, "short", None])
def test_a_score_that_is_no_number_is_refused_and_nothing_opens(score):
    placement = Placement(4, 8, predictor=Fixed([score]))
    with pytest.raises(InputError, match="must be a finite number"):
        placement.spawn("a", {}, session="s")
    assert placement.stats().live_segments == 0


@pytest.fixture(scope="module")
def trace():
    return open_trace("terminal-bench")


def test_a_trained_predictor_scores_as_it_does_in_columns(trace):
    predictor = train(trace, Kind.LENGTH)
    placement = Placement(4, 8, predictor=predictor)
    record = {"instruction": "State the exit code.", "tools": ["shell"], "context_tokens": 30}
    score = placement.spawn("a", record, session="s")
    columns = SpawnRecords([record["instruction"]], [None], [None], [30], [["shell"]], [0])
    assert score.value == predictor.score(columns)[0]


def test_an_online_predictor_learns_from_workers_that_return():
    now_s = [0.0]
    predictor = train(open_trace("terminal-bench"), Kind.ONLINE)
    placement = Placement(1000, 8, predictor=predictor, clock=lambda: now_s[0])
    probe = SpawnRecords(["Compile the kernel."], [None], [None], [None], [["shell"]], [0])
    before = predictor.score(probe)[0]
    for number in range(30):
        record = {"instruction": "Compile the kernel.", "tools": ["shell"], "position": 0}
        placement.spawn(number, record, session="s")
        now_s[0] += 50_000.0
        placement.boundary("subagent_return", session="s", segment=number)
    after = predictor.score(probe)[0]
    assert after > before, "it has seen that such workers live for half a day"
    assert np.isfinite(after)


def test_any_object_with_learn_hears_of_returns():
    now_s, heard = [10.0], []

    class Learner(Fixed):
        def learn(self, record, lifetime_s):
            heard.append((record.position, lifetime_s))

    learner = Learner([1.0, 2.0])
    placement = Placement(4, 8, predictor=learner, clock=lambda: now_s[0])
    placement.spawn("a", {}, session="s")
    now_s[0] = 12.5
    placement.spawn("b", {}, session="s")
    now_s[0] = 15.0
    placement.boundary("session_end", session="s")
    assert sorted(heard) == [(0, 5.0), (1, 2.5)]

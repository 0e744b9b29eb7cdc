"""What a selection holds, with ties broken by lot."""

from itertools import permutations

import numpy as np
import pytest

from lachesis.predict.selection import FRACTIONS, lowest, select, select_at_random, selected_count


def test_a_perfect_order_selects_the_shortest():
    lifetimes = np.arange(1.0, 41.0)
    for fraction in FRACTIONS:
        chosen = select(lifetimes, lifetimes**2, fraction)
        assert (chosen.shortest_k, chosen.shortest_2k) == (1.0, 1.0)
        assert chosen.avoids_longest_k == pytest.approx(
            1.0 if fraction <= 0.5 else 40 / chosen.k - 1
        )


def test_the_reverse_order_selects_the_longest():
    lifetimes = np.arange(1.0, 41.0)
    chosen = select(lifetimes, -lifetimes, 0.1)
    assert (chosen.k, chosen.shortest_k, chosen.shortest_2k, chosen.avoids_longest_k) == (
        4,
        0,
        0,
        0,
    )


def test_constant_scores_select_at_random():
    lifetimes = np.arange(1.0, 31.0)
    for fraction in FRACTIONS:
        found = select(lifetimes, np.zeros(30), fraction)
        by_chance = select_at_random(30, fraction)
        for name in ("k", "shortest_k", "shortest_2k", "avoids_longest_k"):
            assert getattr(found, name) == pytest.approx(getattr(by_chance, name))


def test_ties_count_as_the_mean_over_all_ways_to_break_them():
    lifetimes = np.array([1.0, 2.0, 2.0, 5.0, 5.0, 9.0])
    scores = np.array([3.0, 3.0, 1.0, 3.0, 0.0, 3.0])
    k, shares = 3, []
    for order in permutations(range(6)):
        broken = np.array(order) * 1e-6
        by_score, by_life = np.argsort(scores + broken)[:k], np.argsort(lifetimes)[:k]
        shares.append(len(set(by_score.tolist()) & set(by_life.tolist())) / k)
    assert select(lifetimes, scores, 0.5).shortest_k == pytest.approx(np.mean(shares))


def test_lowest_adds_up_to_k():
    values = np.array([4.0, 4.0, 4.0, 1.0, 8.0])
    for k in range(1, 6):
        assert lowest(values, k).sum() == pytest.approx(k)


def test_at_least_one_worker_is_selected():
    assert [selected_count(count, 0.05) for count in (1, 9, 10, 30, 100)] == [1, 1, 1, 2, 5]

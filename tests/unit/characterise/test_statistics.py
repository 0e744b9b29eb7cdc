"""Each statistic against its definition, counted out pair by pair."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lachesis.characterise.bootstrap import separability_interval
from lachesis.characterise.statistics import (
    Distribution,
    inversions,
    kendall_tau,
    median,
    overlap,
    percentiles,
    separability,
    spread,
)

# Few different values, so that ties are common.
VALUES = st.lists(st.integers(0, 6) | st.floats(0.0, 8.0).map(lambda x: round(x, 1)), min_size=1)
PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=40)


def floats(values):
    return np.array(values, dtype=np.float64)


@settings(deadline=None)
@given(VALUES, VALUES)
def test_separability_is_the_share_of_pairs_won(above, below):
    won = sum((x > y) + (x == y) / 2 for x in above for y in below)
    assert separability(floats(above), floats(below)) == pytest.approx(
        won / (len(above) * len(below)), rel=1e-12
    )


@settings(deadline=None)
@given(VALUES, VALUES)
def test_separability_both_ways_adds_to_one(above, below):
    both = separability(floats(above), floats(below)) + separability(floats(below), floats(above))
    assert both == pytest.approx(1.0, rel=1e-12)


@settings(deadline=None)
@given(VALUES, VALUES)
def test_overlap_is_one_minus_the_largest_gap(first, second):
    def share(values, point):
        return sum(value <= point for value in values) / len(values)

    gap = max(abs(share(first, point) - share(second, point)) for point in first + second)
    assert overlap(floats(first), floats(second)) == pytest.approx(1.0 - gap, abs=1e-12)


@settings(deadline=None)
@given(PAIRS)
def test_kendall_tau_counts_pairs(pairs):
    first, second = zip(*pairs, strict=True)
    balance = untied_first = untied_second = 0
    for (a, b), (c, d) in itertools.combinations(pairs, 2):
        balance += np.sign(a - c) * np.sign(b - d)
        untied_first += a != c
        untied_second += b != d
    found = kendall_tau(floats(first), floats(second))
    if untied_first * untied_second == 0:
        assert found is None
    else:
        assert found == pytest.approx(balance / math.sqrt(untied_first * untied_second), rel=1e-12)


def test_kendall_tau_of_many_values_is_quick_and_exact():
    rng = np.random.default_rng(5)
    first = rng.normal(size=100_000)
    found = kendall_tau(first, first + rng.normal(size=len(first)))
    # Of a bivariate normal with correlation r, tau is 2/pi arcsin r.
    assert found == pytest.approx(2 / math.pi * math.asin(1 / math.sqrt(2)), abs=0.01)
    assert kendall_tau(first, -first) == -1.0


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), max_size=60))
def test_inversions_are_pairs_out_of_order(ranks):
    expected = sum(a > b for a, b in itertools.combinations(ranks, 2))
    assert inversions(np.array(ranks, dtype=np.int64)) == expected


@settings(deadline=None)
@given(VALUES, st.floats(0.0, 100.0))
def test_percentiles_lie_between_order_statistics_in_proportion(values, which):
    ordered = sorted(float(value) for value in values)
    position = (len(ordered) - 1) * which / 100
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    expected = ordered[low] + (position - low) * (ordered[high] - ordered[low])
    assert percentiles(floats(values), which)[0] == pytest.approx(expected, abs=1e-9)


@settings(deadline=None)
@given(VALUES)
def test_a_distribution_does_not_depend_on_order(values):
    assert Distribution.of(floats(values)) == Distribution.of(floats(values[::-1]))
    found = Distribution.of(floats(values))
    assert found.n == len(values)
    assert found.mean == math.fsum(values) / len(values)
    assert found.p50 == median(floats(values))


def test_what_has_no_value_has_no_number():
    assert Distribution.of(floats([])) == Distribution(0, None, None, None, None)
    assert spread(floats([])) is None
    assert spread(floats([0.0, 0.0, 5.0])) is None
    assert kendall_tau(floats([1.0]), floats([2.0])) is None


SESSIONS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 9), max_size=4), st.lists(st.integers(0, 9), max_size=4)
    ).filter(lambda pair: pair[0] or pair[1]),
    min_size=2,
    max_size=8,
).filter(lambda sessions: any(pair[0] for pair in sessions) and any(pair[1] for pair in sessions))


def columns(sessions):
    above = [(value, number) for number, pair in enumerate(sessions) for value in pair[0]]
    below = [(value, number) for number, pair in enumerate(sessions) for value in pair[1]]
    return (*map(np.array, zip(*above, strict=True)), *map(np.array, zip(*below, strict=True)))


@settings(deadline=None)
@given(SESSIONS, st.integers(0, 2**31))
def test_the_interval_is_that_of_sessions_drawn_one_by_one(sessions, seed):
    found = separability_interval(*columns(sessions), seed=seed, replicates=30)
    drawn = np.random.default_rng(seed).multinomial(
        len(sessions), np.full(len(sessions), 1 / len(sessions)), size=30
    )
    values = []
    for times in drawn:
        repeated = [pair for pair, count in zip(sessions, times, strict=True) for _ in range(count)]
        above = [value for pair in repeated for value in pair[0]]
        below = [value for pair in repeated for value in pair[1]]
        if above and below:
            values.append(separability(floats(above), floats(below)))
    if not values:
        assert found is None
    else:
        assert found == pytest.approx(percentiles(floats(values), 2.5, 97.5), rel=1e-12)


def test_batches_change_no_interval(monkeypatch):
    rng = np.random.default_rng(3)
    arguments = (rng.random(40) + 0.3, np.arange(40) % 7, rng.random(50), np.arange(50) % 7)
    whole = separability_interval(*arguments, seed=1)
    monkeypatch.setattr("lachesis.characterise.bootstrap._WEIGHTS_MAX", 500)
    assert separability_interval(*arguments, seed=1) == whole
    assert separability_interval(*arguments, seed=2) != whole


def test_a_single_session_has_no_interval():
    one = np.zeros(3, dtype=np.int64)
    assert separability_interval(np.arange(3.0), one, np.arange(3.0), one, seed=0) is None


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    # Two normal laws one apart: P(X > Y) = Phi(1 / sqrt 2).
    truth = 0.5 * (1 + math.erf(0.5))
    rng = np.random.default_rng(11)
    covered = 0
    for trial in range(200):
        sessions = np.repeat(np.arange(40), 3)
        low, high = separability_interval(
            rng.normal(1.0, size=120), sessions, rng.normal(size=120), sessions,
            seed=trial, replicates=300,
        )  # fmt: skip
        covered += low <= truth <= high
    assert 0.89 <= covered / 200 <= 0.99

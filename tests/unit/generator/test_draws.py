"""Stratified draws, apportionment and streams."""

from statistics import NormalDist

import numpy as np
import pytest

from lachesis.errors import InputError
from lachesis.traces.generator.draws import (
    apportion,
    group_sums,
    index_within,
    normal_scores,
    place,
    stratified_lognormal,
    stream,
    sums_before,
    whole_numbers,
)


def test_normal_scores_agree_with_the_standard_library():
    uniform = np.concatenate((np.linspace(0.001, 0.999, 997), [1e-12, 1e-8, 1 - 1e-8]))
    expected = [NormalDist().inv_cdf(each) for each in uniform]
    assert normal_scores(uniform) == pytest.approx(expected, abs=1e-12)


def test_streams_differ_by_every_name_and_by_seed():
    draws = {
        stream(seed, *names).random()
        for seed in (1, 2)
        for names in (("a", "b"), ("a", "c"), ("b", "b"), ("a",))
    }
    assert len(draws) == 8


def test_the_bits_of_a_stream_are_pinned():
    assert stream(7, "tau3-airline", "turns").random(2).tolist() == pytest.approx(
        [0.7463906434174572, 0.019249288765135764], abs=0.0
    )


@pytest.mark.parametrize(("median", "mean"), [(976, 1519), (446, 516), (1345, 4271)])
@pytest.mark.parametrize("length", [57, 734])
def test_a_log_normal_has_its_own_median_and_mean(median, mean, length):
    sample = stratified_lognormal(median, mean, length)
    assert sample.mean() == pytest.approx(mean, rel=1e-9)
    assert np.median(sample) == pytest.approx(median, rel=0.01)


def test_a_raised_tail_keeps_median_and_mean():
    sample = stratified_lognormal(1400, 4271, 734, bulk_sigma=0.3, tail_share=0.03)
    assert sample.mean() == pytest.approx(4271, rel=1e-9)
    assert np.median(sample) == pytest.approx(1400, rel=0.01)
    assert (sample > 10_000).sum() == round(0.03 * 734)


@pytest.mark.parametrize(("mean", "tail"), [(90, 0.0), (101, 0.05)])
def test_a_mean_that_cannot_be_met_is_refused(mean, tail):
    with pytest.raises(InputError, match="mean"):
        stratified_lognormal(100, mean, 50, bulk_sigma=0.8, tail_share=tail)


def test_apportion_gives_the_leftover_to_the_largest_remainders():
    shares = apportion(np.array([10, 3]), np.array([5.0, 3.0, 2.6, 1.0, 1.0]), np.array([3, 2]))
    assert shares.tolist() == [5, 3, 2, 2, 1]


def test_apportion_refuses_a_total_below_its_minimum():
    with pytest.raises(InputError, match=r"total = 5, must be at least 3 for each of 2 items"):
        apportion(np.array([9, 5]), np.ones(4), np.array([2, 2]), minimum=3)


def test_apportion_refuses_a_total_for_no_items():
    with pytest.raises(InputError, match="total"):
        apportion(np.array([1]), np.ones(0), np.array([0]))


def test_whole_numbers_respect_both_ends():
    values = whole_numbers(lambda scale: np.exp(scale + np.linspace(-3, 3, 40)), 200, 1, 12)
    assert values.sum() == 200
    assert values.min() == 1
    assert values.max() == 12
    assert (np.diff(values) >= -1).all()


@pytest.mark.parametrize("total", [39, 481])
def test_whole_numbers_refuse_what_does_not_fit(total):
    with pytest.raises(InputError, match="total"):
        whole_numbers(lambda scale: np.exp(scale) * np.ones(40), total, 1, 12)


def test_groups():
    lengths = np.array([2, 0, 3])
    values = np.array([5, 1, 4, 2, 2])
    assert index_within(lengths).tolist() == [0, 1, 0, 1, 2]
    assert group_sums(values, lengths).tolist() == [6, 0, 8]
    assert sums_before(values, lengths).tolist() == [0, 5, 0, 4, 6]


def test_place_orders_values_by_score():
    assert place(np.array([10.0, 20.0, 30.0]), np.array([5.0, -2.0, 1.0])).tolist() == [30, 10, 20]

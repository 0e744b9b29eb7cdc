import math

import pytest

from lachesis.errors import InputError
from lachesis.simulation import SearchPrecision, Strain, largest_load


def node(limit, slope=1.0):
    """A node whose strain is 1 at `limit` sessions."""
    return lambda sessions: Strain(sessions <= limit, (sessions / limit) ** slope)


@pytest.mark.parametrize("limit", [1, 2, 3, 63, 64, 65, 127, 128, 300, 655, 1023])
@pytest.mark.parametrize("slope", [0.1, 0.7, 3.0])
def test_finds_the_load_from_wherever_it_starts(limit, slope):
    found = {largest_load(node(limit, slope), guess=guess).sessions for guess in (1, 64, 5000)}
    assert found == {limit}


@pytest.mark.parametrize("limit", [5_000, 126_528, 1_000_000])
def test_larger_loads_are_told_apart_to_a_part_of_themselves(limit):
    found = largest_load(node(limit)).sessions
    assert limit * (1 - 1 / 256) <= found <= limit


def test_one_session_that_fails_is_an_answer():
    result = largest_load(lambda sessions: Strain(False, 5.0))
    assert result.sessions == 0
    assert result.bounded
    assert result.tried[1] is False


def test_a_run_in_which_nothing_ends_fails():
    assert largest_load(lambda sessions: Strain(sessions <= 7, math.inf)).sessions == 7


def test_a_slo_that_bounds_nothing_ends_at_the_most_that_a_measurement_may_take():
    precision = SearchPrecision(most_requests=30_000)
    result = largest_load(
        lambda sessions: Strain(True, 0.2), precision=precision, requests_per_session=10.0
    )
    assert (result.sessions, result.bounded) == (2_400, False)


def test_strain_that_explodes_past_the_limit_is_found_by_bisection():
    def full_memory(sessions):
        return Strain(sessions <= 777, 0.4 if sessions <= 777 else 50.0)

    assert largest_load(full_memory).sessions == 777


def test_takes_the_first_of_several_loads_that_fail():
    failing = {96, 99, 103}

    def noisy(sessions):
        fails = sessions in failing or sessions > 106
        return Strain(not fails, 1.01 if fails else sessions / 107)

    assert {largest_load(noisy, guess=guess).sessions for guess in (10, 98, 400)} == {95}


def test_a_coarse_search_answers_with_a_load_of_the_grid():
    result = largest_load(node(655), precision=SearchPrecision(coarse=True))
    assert result.sessions == 640
    assert len(result.tried) < len(largest_load(node(655)).tried)


def test_the_deciding_measurement_is_made_once_a_load_and_near_the_answer():
    asked = []

    def measure(sessions):
        asked.append(sessions)
        return node(655)(sessions)

    largest_load(measure, near=node(655))
    assert len(asked) == len(set(asked)) <= 20
    assert min(asked) > 500


@pytest.mark.parametrize("field", ["turnovers", "requests", "exact_below", "most_requests"])
def test_refuses_a_precision_of_nothing(field):
    with pytest.raises(InputError, match=field):
        SearchPrecision(**{field: 0})


def test_refuses_a_guess_of_nothing():
    with pytest.raises(InputError, match="guess"):
        largest_load(node(5), guess=0)


def test_measurements_of_many_sessions_are_shorter_never_under_a_quarter_turnover():
    precision = SearchPrecision()
    lengths = [precision.deciding(sessions, 14.0).turnovers for sessions in (10, 1e3, 1e4, 1e6)]
    assert lengths == [6.0, 6.0, pytest.approx(200_000 / 140_000), 0.25]

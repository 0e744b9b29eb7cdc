"""The search against an exhaustive one, on nodes whose strain is noisy."""

import math

from hypothesis import given
from hypothesis import strategies as st

from lachesis.simulation import SearchPrecision, Strain, largest_load


def noisy_node(limit, slope, seed):
    """Strain (N / limit)^slope with a bounded noise as large as the search allows for.

    The margin is three and a half standard deviations; this noise is uniform within it.
    """
    precision = SearchPrecision()

    def measure(sessions):
        # A hash of seed and load in 0 … 1: a load is noisy in the same way whenever it is asked.
        phase = math.sin(sessions * 12.9898 + seed * 78.233) * 43758.5453
        noise = precision.margin(sessions, 50.0) * 0.5 * (2 * (phase - math.floor(phase)) - 1)
        value = (sessions / limit) ** slope * (1 + noise)
        return Strain(value <= 1.0, value)

    return measure


def exhaustive(measure):
    """The smallest N such that N passes and N + 1 fails."""
    sessions = 0
    while measure(sessions + 1).passes:
        sessions += 1
    return sessions


@given(
    limit=st.integers(1, 120),
    slope=st.floats(0.3, 2.0),
    seed=st.integers(0, 1000),
    guess=st.integers(1, 2000),
)
def test_finds_what_an_exhaustive_search_finds_warm_start_or_not(limit, slope, seed, guess):
    measure = noisy_node(limit, slope, seed)
    expected = exhaustive(measure)
    cold = largest_load(measure, requests_per_session=50.0)
    warm = largest_load(measure, requests_per_session=50.0, guess=guess)
    assert (cold.sessions, warm.sessions) == (expected, expected)


@given(
    limit=st.integers(128, 3000),
    slope=st.floats(0.3, 2.0),
    seed=st.integers(0, 1000),
    guesses=st.lists(st.integers(1, 10_000), min_size=2, max_size=4),
)
def test_the_answer_does_not_depend_on_the_start(limit, slope, seed, guesses):
    measure = noisy_node(limit, slope, seed)
    found = {
        largest_load(measure, requests_per_session=50.0, guess=guess).sessions for guess in guesses
    }
    assert len(found) == 1


@given(limit=st.integers(1, 5000), slope=st.floats(0.3, 2.0), seed=st.integers(0, 1000))
def test_the_answer_passes_and_its_neighbour_fails(limit, slope, seed):
    measure, precision = noisy_node(limit, slope, seed), SearchPrecision()
    found = largest_load(measure, requests_per_session=50.0).sessions
    assert found == 0 or measure(found).passes
    neighbours = range(found + 1, found + 1 + 2 * precision.finest_step(max(1, found)))
    assert any(not measure(sessions).passes for sessions in neighbours)

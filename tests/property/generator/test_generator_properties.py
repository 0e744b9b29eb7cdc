"""Any seed and size gives a valid trace with exact totals."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lachesis.calibrate.measurement import measure
from lachesis.traces import validate
from lachesis.traces.generator import generate, specification
from lachesis.traces.generator.draws import apportion, group_sums

groups = st.lists(
    st.tuples(
        st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=8), st.integers(0, 2_000_000_000)
    ),
    min_size=1,
    max_size=8,
)


@given(groups, st.integers(0, 3))
def test_apportion_is_exact_and_near_its_shares(drawn, minimum):
    lengths = np.array([len(weights) for weights, _ in drawn])
    totals = np.array([extra for _, extra in drawn]) + minimum * lengths
    weights = np.concatenate([np.array(weights) for weights, _ in drawn])
    shares = apportion(totals, weights, lengths, minimum=minimum)
    assert (group_sums(shares, lengths) == totals).all()
    assert (shares >= minimum).all()
    sums = np.repeat(np.add.reduceat(weights, np.cumsum(lengths) - lengths), lengths)
    exact = minimum + np.repeat(totals - minimum * lengths, lengths) * weights / sums
    assert (np.abs(shares - exact) <= 1.0 + 1e-6).all()


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(specification.names()), st.integers(0, 2**31), st.sampled_from([0.2, 0.4, 1.0])
)
def test_any_seed_gives_a_valid_trace_with_exact_totals(name, seed, scale):
    trace = generate(name, seed=seed, scale=scale)
    validate(trace)
    counts = specification.load(name).counts
    figures = measure(trace)
    assert figures["sessions"] == round(counts.sessions.value * scale)
    assert figures["requests"] == round(counts.requests.value * scale)
    assert figures["tokens_written"] == round(counts.tokens_written.value * scale)
    assert generate(name, seed=seed, scale=scale).sha256 == trace.sha256

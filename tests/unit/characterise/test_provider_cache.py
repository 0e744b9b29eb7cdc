"""Logical matching against the provider's own cache hit."""

import pytest

from lachesis.characterise.provider_cache import compare_with_cache
from lachesis.traces import TraceBuilder, open_trace


def trace_with(hits):
    builder = TraceBuilder(source="x")
    session = builder.session("s", workload="w", harness="h", stripping="off")
    for index, hit in enumerate(hits):
        session.request(input_tokens=100 + 50 * index, output_tokens=10, reported_cached_tokens=hit)
    return builder.build()


def test_an_expired_cache_inflates_and_a_warm_one_does_not():
    cold = compare_with_cache(trace_with([0, 0]))
    assert (cold.matched_tokens, cold.cache_tokens) == (100 + 40 + 20, 100 + 150 + 20)
    assert (cold.missed_tokens, cold.beyond_tokens) == (110, 0)
    warm = compare_with_cache(trace_with([0, 110]))
    assert warm.inflation == 1.0


def test_a_prompt_of_another_session_is_beyond():
    found = compare_with_cache(trace_with([60, 110]))
    assert (found.missed_tokens, found.beyond_tokens) == (0, 60)
    assert found.inflation == pytest.approx(100 / 160)


def test_requests_without_a_report_do_not_enter():
    found = compare_with_cache(trace_with([None, 110, None]))
    assert found.requests == 1
    assert found.matched_tokens == 40 + 10
    assert compare_with_cache(trace_with([None])).inflation is None


@pytest.mark.samples
def test_the_cache_of_real_sessions_would_inflate_what_they_write(samples_dir):
    for folder, least in (("claude_code_spotter", 1.3), ("pi_coding_agent", 2.5)):
        found = compare_with_cache(open_trace(samples_dir / folder))
        assert found.requests > 300
        assert found.inflation > least

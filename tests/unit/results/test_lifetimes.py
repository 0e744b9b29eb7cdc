"""The table of lifetimes in a directory of results."""

import pytest

from lachesis.presets import load_latency
from lachesis.results.lifetimes import lifetimes_table
from lachesis.traces import Edge, EdgeKind, TraceBuilder


def test_lifetimes_are_seconds_of_the_reference_clock_and_sizes_tokens() -> None:
    builder = TraceBuilder(source="by hand")
    session = builder.session("a", workload="hand", harness="none")
    first = session.request(input_tokens=100, output_tokens=10, observations=1)
    session.request(
        input_tokens=130, output_tokens=20, observations=1, after=[Edge(first, EdgeKind.TOOL, 7.0)]
    )
    table = lifetimes_table({"mine": builder.build()})
    assert set(table["trace"].to_pylist()) == {"mine"}
    latency = load_latency()
    # One segment: 10 + 20 tokens of output, two observations, and the wait of 7 s in between.
    seconds = 30 * latency.tpot_ref_s + 2 * latency.ttft_ref_s + 7.0
    assert table["t_norm_s"].to_pylist() == pytest.approx([seconds] * 101)
    assert set(table["tokens_per_segment"].to_pylist()) == {150.0}
    assert set(table["segments"].to_pylist()) == {1}

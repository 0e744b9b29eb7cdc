"""Recorded arrivals, and gaps between them that are cut."""

import numpy as np
import pytest

from lachesis.errors import InputError
from lachesis.simulation import Load
from lachesis.simulation.workload import workload_columns
from lachesis.traces.builder import TraceBuilder


def trace_of(starts_s):
    builder = TraceBuilder(source="starts.jsonl")
    for number, start_s in enumerate(starts_s):
        session = builder.session(f"s{number}", workload="w", harness="h")
        session.request(input_tokens=100, output_tokens=10, start_s=start_s)
    return builder.build()


def starts_of(trace, longest_gap_s):
    columns = workload_columns(trace, recorded=True, longest_gap_s=longest_gap_s)
    return columns["session_start_s"].tolist()


def test_starts_count_from_the_earliest_and_long_gaps_are_cut():
    month_s = 30 * 86_400.0
    trace = trace_of([1e9 + month_s, 1e9, 1e9 + 5.0, 1e9 + month_s + 2.0])
    assert starts_of(trace, np.inf) == [month_s, 0.0, 5.0, month_s + 2.0]
    assert starts_of(trace, 60.0) == [65.0, 0.0, 5.0, 67.0]


def test_the_longest_gap_is_part_of_the_load():
    assert Load.parse("recorded:3600").longest_gap_s == 3600.0
    assert Load.parse("recorded").longest_gap_s == np.inf
    for text in ("recorded:", "recorded:-1", "recorded:nan", "recorded:inf", "closed:3", "auto:2"):
        with pytest.raises(InputError, match="recorded:SECONDS"):
            Load.parse(text)

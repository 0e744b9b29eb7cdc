"""Sessions taken in by columns are those that are pushed request by request."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.grown_sessions import CountedRequests
from lachesis.traces.schema import TOKENS_MAX

NAN = float("nan")
maybe = st.one_of(st.none(), st.integers(0, 60))
seconds = st.one_of(st.just(NAN), st.sampled_from([0.0, 1.5, 2.0, 1e9 + 0.25]))
requests = st.fixed_dictionaries(
    {
        "more": st.integers(-3, 20),  # than the session held
        "output_tokens": st.integers(1, 20),
        "reasoning_tokens": st.integers(0, 1),
        "start_s": seconds,
        "took_s": seconds,
        "delay_s": seconds,
        "opens_turn": st.booleans(),
        "cached_tokens": maybe,
        "model": st.sampled_from([None, "a", "a", "b"]),
    }
)
sessions = st.lists(st.lists(requests, min_size=1, max_size=5), min_size=1, max_size=5)


def counts(sessions):
    """The requests with the inputs that follow from what was held before."""
    made = []
    for session in sessions:
        held = 0
        for each in session:
            tokens = max(0, held + each["more"])
            held = tokens + each["output_tokens"]
            cached = each["cached_tokens"]
            made.append(
                {
                    **each,
                    "input_tokens": tokens,
                    "end_s": each["start_s"] + each["took_s"],
                    "cached_tokens": None if cached is None else min(cached, tokens),
                }
            )
    return made


def columns(sessions, prompts=None):
    rows = counts(sessions)

    def numbers(name, dtype=np.int64):
        return np.array([row[name] for row in rows], dtype)

    return CountedRequests(
        lengths=np.array([len(session) for session in sessions]),
        input_tokens=numbers("input_tokens"),
        output_tokens=numbers("output_tokens"),
        reasoning_tokens=numbers("reasoning_tokens"),
        agreed_tokens=None,
        start_s=numbers("start_s", float),
        end_s=numbers("end_s", float),
        delay_s=numbers("delay_s", float),
        opens_turn=numbers("opens_turn", bool),
        inferred=np.zeros(len(rows), bool),
        cached_tokens=pa.array([row["cached_tokens"] for row in rows], pa.int64()),
        model=pa.array([row["model"] for row in rows], pa.string()),
        prompt_tokens=prompts,
        prompt_key=pa.nulls(len(sessions), pa.string()),
    )


def push(builder, name, rows):
    session = builder.session(name, workload="w", harness="h", source="s", stripping="off")
    for row in rows:
        session.request(
            opens_turn=row["opens_turn"],
            input_tokens=row["input_tokens"],
            output_tokens=row["output_tokens"],
            reasoning_tokens=row["reasoning_tokens"],
            model=row["model"],
            reported_cached_tokens=row["cached_tokens"],
            **{
                name: None if np.isnan(row[name]) else row[name]
                for name in ("start_s", "end_s", "delay_s")
            },
        )
    builder.finish(session)


@settings(deadline=None)
@given(sessions)
def test_by_columns_and_one_by_one_are_the_same(drawn):
    rows, names = counts(drawn), [f"s{place % 3}" for place in range(len(drawn))]
    ends = np.cumsum([len(session) for session in drawn])
    own = [rows[end - len(session) : end] for end, session in zip(ends, drawn, strict=True)]
    plain = TraceBuilder(source="s")
    for name, session in zip(names, own, strict=True):
        push(plain, name, session)

    counted = columns(drawn)
    builder = TraceBuilder(source="s")
    builder.add_counted(
        counted, counted.grow(), names, lambda at: push(builder, names[at], own[at]),
        workload="w", harness="h", source="s",
    )  # fmt: skip
    one, other = builder.build(), plain.build()
    assert all(table.equals(other.tables[name]) for name, table in one.tables.items())
    assert one.manifest() == other.manifest()
    assert one.quality == other.quality


def growing(**changes):
    plain = {
        "more": 5, "output_tokens": 2, "reasoning_tokens": 0, "start_s": 1.0, "took_s": 1.0,
        "delay_s": NAN, "opens_turn": False, "cached_tokens": None, "model": "a",
    }  # fmt: skip
    return [[plain], [plain, {**plain, **changes}], [plain]]


@pytest.mark.parametrize(
    ("changes", "grows"),
    [
        ({}, True),
        ({"more": 0}, True),
        ({"more": -1}, False),
        ({"model": "b"}, False),
        ({"model": None}, True),
        ({"output_tokens": 0}, False),
        ({"reasoning_tokens": 3}, False),
        ({"took_s": -0.5}, False),
        ({"start_s": float("inf")}, False),
        ({"more": TOKENS_MAX}, False),
    ],
)
def test_what_grows(changes, grows):
    assert columns(growing(**changes)).grow().tolist() == [True, grows, True]


def test_a_prompt_is_no_longer_than_the_first_input():
    builder = TraceBuilder(source="s")
    counted = columns(growing(), prompts=np.array([3, 0, 9]))
    builder.add_counted(
        counted, counted.grow(), ["a", "b", "c"], lambda at: pytest.fail(str(at)),
        workload="w", harness="h", source="s",
    )  # fmt: skip
    trace = builder.build()
    spans = trace.spans.select(["session", "request", "segment", "tokens", "written"]).to_pylist()
    assert [tuple(span.values()) for span in spans] == [
        ("a", 0, 0, 3, True), ("a", 0, 1, 2, True),
        ("b", 0, 0, 5, True), ("b", 1, 0, 7, False), ("b", 1, 0, 5, True),
        ("c", 0, 0, 5, True),
    ]  # fmt: skip
    assert "prompt_tokens" not in trace.quality.filled

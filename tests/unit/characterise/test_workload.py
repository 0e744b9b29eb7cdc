"""What is said of a workload, on traces that are small enough to work out by hand."""

import json

import msgspec
import numpy as np
import pytest

from lachesis.characterise import stats
from lachesis.characterise.reference_clock import ReferenceSchedule, schedule, waiting_share
from lachesis.characterise.segments import SegmentColumns, segment_columns
from lachesis.presets import load_latency
from lachesis.traces import Role, Status, TraceBuilder, concat


@pytest.fixture
def latency():
    """Users take 120 s, tools 3 s."""
    means = msgspec.structs.replace(load_latency().tool_mean_s, retrieval=3.0)
    return msgspec.structs.replace(
        load_latency(), user_sigma=0.0, tool_distribution="lognormal", tool_sigma=0.0,
        tool_mean_s=means,
    )  # fmt: skip


def turns(name="a", workload="w"):
    """Turn 0 writes 40 + 10 + 20 + 20 = 90 laden tokens, 50 of which turn 1 carries on."""
    builder = TraceBuilder(source="turns")
    session = builder.session(name, workload=workload, harness="h", stripping="turn")
    session.request(
        input_tokens=100, prompt_tokens=60, prefix_key="p", output_tokens=10, reasoning_tokens=4,
        tools=["retrieval"],
    )  # fmt: skip
    session.request(input_tokens=130, appended_tokens=20, output_tokens=20, observations=1)
    session.request(
        opens_turn=True, input_tokens=60 + 50 + 7, carried_tokens=50, appended_tokens=7,
        output_tokens=5,
    )  # fmt: skip
    return builder.build()


def delegations(worker_outputs, name="a"):
    """A lead that starts workers one after another, each with one request."""
    builder = TraceBuilder(source="delegations")
    session = builder.session(name, workload="w", harness="h", stripping="off")
    lead = session.request(input_tokens=50, output_tokens=10, tools=["spawn"])
    for agent, output in enumerate(worker_outputs, 1):
        session.spawn(agent, spawned_by=lead, role=Role.WORKER)
        session.request(agent=agent, input_tokens=20, output_tokens=output)
        lead = session.request(
            input_tokens=60 + 20 * agent, output_tokens=10, observations=1, tools=["spawn"]
        )
        session.returns(agent, to=lead)
    return builder.build()


def test_counts_and_classes_of_two_turns(latency):
    (found,) = stats(turns(), latency, seed=0)
    assert (found.sessions, found.turns, found.agents, found.requests) == (1, 2, 1, 3)
    assert found.tokens_processed == 100 + 130 + 117 + 35
    assert found.tokens_written == 60 + 90 + 50 + 12
    assert (found.output_tokens, found.reasoning_tokens) == (35, 4)
    laden = found.classes["reasoning-laden"]
    assert (laden.segments, laden.tokens_written) == (2, 102)
    # 2 s + 3 s tool + 1 observation + 4 s; 1 s.
    assert laden.t_norm_s.p50 == pytest.approx((10.0 + 1.0) / 2)
    assert found.classes["reasoning-stripped"].t_norm_s.p50 == pytest.approx(121.0)
    assert found.laden_share == pytest.approx(51 / (51 + 50))
    assert found.lifetime_ratio == {
        "reasoning-stripped/reasoning-laden": pytest.approx(121.0 / 5.5)
    }
    assert found.closed_by["turn_end"].tokens_written == 102
    assert found.closed_by["session_end"].tokens_written == 60 + 50


def test_a_shared_prompt_counts_once_a_workload(latency):
    joined = concat([turns("a"), turns("b"), turns("c", workload="x")])
    one, other = stats(joined, latency, seed=0)
    assert (one.workload, other.workload) == ("w", "x")
    assert one.tokens_written == 60 + 2 * 152
    assert one.classes["prompt"].tokens_written == 60
    assert one.classes["prompt"].segments == 2
    assert other.tokens_written == 60 + 152


def test_tokens_of_a_stripped_segment_belong_to_the_turn_that_they_come_from(latency):
    columns = segment_columns(turns(), latency, seed=0)
    stripped = columns.kind == "reasoning-stripped"
    assert columns.turn[stripped].tolist() == [0]


def test_aborted_requests_are_written_but_not_processed(latency):
    builder = TraceBuilder(source="aborted")
    session = builder.session("a", workload="w", harness="h", stripping="off")
    session.request(input_tokens=50, output_tokens=10)
    session.request(input_tokens=80, output_tokens=7, status=Status.ABORTED)
    trace = builder.build()
    (found,) = stats(trace, latency, seed=0)
    assert found.requests_by_status == {"ok": 1, "aborted": 1, "error": 0}
    assert found.tokens_processed == 60
    written = trace.spans.filter(trace.spans["written"])["tokens"].to_pylist()
    assert found.tokens_written == sum(written) + sum(trace.requests["output_tokens"].to_pylist())


def test_workers_against_their_lead(latency):
    (found,) = stats(delegations([100, 20, 300]), latency, seed=0)
    assert found.agents == 4
    worker = found.classes["worker"]
    assert worker.t_norm_s.p50 == pytest.approx(20.0)
    # Worker lives of 20, 4 and 60 s, writes of 120, 40 and 320 tokens, in the same order.
    assert found.worker_tau == 1.0
    assert found.worker_spread.t_norm_s == pytest.approx((20 + 0.8 * 40) / (4 + 0.2 * 16))
    assert found.separability["lead/worker"].value == 1.0
    assert found.separability["lead/worker"].low is None
    # 3 observations and 4 outputs of 10 tokens are active: 11 s of 84 + 11.
    assert found.lead_waiting_share == pytest.approx(84 / 95)


def test_the_lead_of_a_compacted_session_waits_over_its_whole_life(latency):
    builder = TraceBuilder(source="compacted")
    session = builder.session("a", workload="w", harness="h", stripping="off")
    session.request(input_tokens=50, output_tokens=50)
    session.request(input_tokens=120, output_tokens=50, compacts=True, delay_s=10.0)
    session.request(input_tokens=90, output_tokens=50, delay_s=30.0)
    trace = builder.build()
    assert trace.segments["class"].to_pylist().count("lead") == 2
    clock = schedule(trace, latency, seed=0)
    assert waiting_share(trace, clock).tolist() == pytest.approx([40 / 70])


def test_lead_requests_side_by_side_are_active_once(latency):
    builder = TraceBuilder(source="retries")
    session = builder.session("a", workload="w", harness="h", stripping="off")
    session.request(input_tokens=50, output_tokens=50)
    session.request(input_tokens=120, output_tokens=50)
    trace = builder.build()
    times = {"start_s": [0.0, 4.0], "end_s": [10.0, 14.0]}
    clock = ReferenceSchedule(
        **{name: np.array(values) for name, values in times.items()},
        birth_s=np.zeros(trace.segments.num_rows),
        death_s=np.full(trace.segments.num_rows, 20.0),
    )
    assert waiting_share(trace, clock).tolist() == pytest.approx([6 / 20])


def test_a_session_without_a_lead_segment_has_no_waiting_share(latency):
    trace = turns()
    assert np.isnan(waiting_share(trace, schedule(trace, latency, seed=0))).all()


def test_sessions_without_subagents_do_not_enter_the_waiting_share(latency):
    builder = TraceBuilder(source="alone")
    alone = builder.session("b", workload="w", harness="h", stripping="off")
    alone.request(input_tokens=50, output_tokens=10)
    joined = concat([delegations([100, 20, 300]), builder.build()])
    (found,) = stats(joined, latency, seed=0)
    assert found.lead_waiting_share == pytest.approx(84 / 95)


def test_names_and_order_of_sessions_change_nothing():
    parts = [delegations([30, 50], "a"), delegations([10, 400], "b"), turns("c"), turns("d")]
    renamed = [delegations([10, 400], "x"), turns("y"), delegations([30, 50], "z"), turns("w")]
    first, second = (
        [each.to_json() for each in stats(concat(traces), load_latency(), seed=3)]
        for traces in (parts, renamed)
    )
    assert first == second


def test_json_leaves_out_what_the_classes_do_not_allow(latency):
    (found,) = stats(delegations([30, 50]), latency, seed=0)
    document = found.to_json()
    assert "laden_share" not in document
    assert "tokens_per_turn" not in document
    assert document["separability"]["lead/worker"] == [1.0, None, None]
    json.dumps(document, allow_nan=False)


def test_segments_of_several_traces_join_as_if_they_were_one(latency):
    parts = [turns("a"), turns("b", workload="x")]
    joined = SegmentColumns.concatenated([segment_columns(each, latency, 0) for each in parts])
    assert len(joined) == 2 * len(segment_columns(turns(), latency, 0))
    assert len(joined.waiting) == 2
    assert joined.session.max() == 1
    assert joined.of_workload("x").tokens.tolist() == joined.of_workload("w").tokens.tolist()

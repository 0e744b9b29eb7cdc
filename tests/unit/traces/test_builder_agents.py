"""Sub-agents, edges, order and delays."""

import pytest
from short_logs import after, built, segments, spans

from lachesis.errors import InputError
from lachesis.traces import Edge, EdgeKind, Role, Trace, TraceBuilder


def test_a_subagent_is_spawned_returns_and_closes():
    def push(session):
        by = session.request(input_tokens=100, prompt_tokens=60, output_tokens=10, tools=["spawn"])
        session.spawn("reviewer", spawned_by=by, role=Role.REVIEWER, instruction="look")
        to = session.request(input_tokens=130, output_tokens=5)
        # Pushed after the lead: the order comes from the edges.
        session.request(agent="reviewer", input_tokens=40, prompt_tokens=30, output_tokens=8)
        session.returns("reviewer", to=to)

    trace = built(push)
    assert trace.requests["agent"].to_pylist() == [0, 1, 0]
    assert after(trace, 1) == [(0, "spawn", 0.0)]
    assert after(trace, 2) == [(0, "tool", 0.0), (1, "return", 0.0)]
    assert ("reviewer", 1, "subagent_return", 1) in segments(trace)
    spawn = trace.spawns.to_pylist()[0]
    assert (spawn["parent"], spawn["spawned_by"], spawn["return_requests"]) == (0, 0, [2])
    assert spawn["instruction"] == "look"


def test_a_late_spawn_relabels_nothing():
    def push(session):
        session.request(input_tokens=10, output_tokens=5, reasoning_tokens=2)
        by = session.request(input_tokens=13, output_tokens=5, opens_turn=True)
        session.spawn("w", spawned_by=by)
        session.request(agent="w", input_tokens=4, output_tokens=1)

    classes = [row[0] for row in segments(built(push, stripping="turn"))]
    assert classes == ["reasoning-laden", "reasoning-stripped", "reasoning-laden", "worker"]


def test_a_background_subagent_returns_in_a_later_turn_and_keeps_its_own():
    def push(session):
        by = session.request(input_tokens=10, output_tokens=5, start_s=0.0, end_s=1.0)
        session.spawn("w", spawned_by=by)
        session.request(input_tokens=20, output_tokens=5, start_s=2.0, end_s=3.0)
        to = session.request(input_tokens=40, output_tokens=5, start_s=90.0, opens_turn=True)
        session.request(agent="w", input_tokens=4, output_tokens=1, start_s=1.5, end_s=80.0)
        session.returns("w", to=to)

    trace = built(push)
    assert trace.requests["agent"].to_pylist() == [0, 1, 0, 0]
    assert trace.requests["turn"].to_pylist() == [0, 0, 0, 1]
    assert after(trace, 3) == [(1, "return", 10.0), (2, "user", 87.0)]


def test_a_resumed_subagent_returns_twice_and_closes_once():
    def push(session):
        by = session.request(input_tokens=10, output_tokens=5)
        session.spawn("w", spawned_by=by)
        again = session.request(input_tokens=20, output_tokens=5)
        last = session.request(input_tokens=30, output_tokens=5)
        session.request(agent="w", input_tokens=4, output_tokens=1)
        session.returns("w", to=again)
        session.resume("w", resumed_by=again)
        session.request(agent="w", input_tokens=9, output_tokens=1)
        session.returns("w", to=last)

    trace = built(push)
    assert trace.requests["agent"].to_pylist() == [0, 1, 0, 1, 0]
    assert trace.spawns["return_requests"].to_pylist() == [[2, 4]]
    assert after(trace, 3) == [(1, "tool", None), (2, "spawn", 0.0)]
    assert segments(trace)[1] == ("worker", 1, "subagent_return", 3)


def test_a_nested_subagent_hangs_on_its_parent():
    def push(session):
        by = session.request(input_tokens=10, output_tokens=5)
        session.spawn("w", spawned_by=by)
        inner = session.request(agent="w", input_tokens=4, output_tokens=1)
        session.spawn("inner", spawned_by=inner)
        session.request(agent="inner", input_tokens=4, output_tokens=1)
        to = session.request(agent="w", input_tokens=9, output_tokens=1)
        session.returns("inner", to=to)
        session.returns("w", to=session.request(input_tokens=20, output_tokens=1))

    trace = built(push)
    assert trace.spawns.select(["agent", "parent", "return_requests", "position"]).to_pylist() == [
        {"agent": 1, "parent": 0, "return_requests": [4], "position": 0},
        {"agent": 2, "parent": 1, "return_requests": [3], "position": 1},
    ]


def test_a_keyed_prompt_is_written_once_a_session():
    def push(session):
        by = session.request(input_tokens=10, output_tokens=5)
        for name in ("a", "b"):
            session.spawn(name, spawned_by=by)
            session.request(
                agent=name, input_tokens=50, prompt_tokens=40, prefix_key="worker", output_tokens=1
            )

    trace = built(push)
    assert spans(trace, 1) == [("prompt", 40, True), ("worker", 10, True)]
    assert spans(trace, 2) == [("prompt", 40, False), ("worker", 10, True)]
    assert trace.segments["prefix_key"].to_pylist().count("worker/40") == 1


def test_recorded_delays_are_taken_and_others_drawn():
    def push(session):
        session.request(input_tokens=10, output_tokens=5, start_s=0.0, end_s=4.0)
        session.request(input_tokens=20, output_tokens=5, start_s=4.5, end_s=6.0)
        session.request(input_tokens=30, output_tokens=5, opens_turn=True)
        session.request(input_tokens=40, output_tokens=5, delay_s=3.0, start_s=5.0)

    assert [after(built(push), n) for n in range(4)] == [
        [], [(0, "tool", 0.5)], [(1, "user", None)], [(2, "tool", 3.0)]
    ]  # fmt: skip
    drawn = built(push, recorded_delays=False)
    assert after(drawn, 1) == [(0, "tool", None)]


def test_a_return_against_the_order_is_left_out_and_counted():
    def push(session):
        by = session.request(input_tokens=10, output_tokens=5)
        session.spawn("w", spawned_by=by)
        session.request(agent="w", input_tokens=4, output_tokens=1)
        session.returns("w", to=by)

    trace = built(push)
    assert trace.spawns["return_requests"].to_pylist() == [[]]
    assert sum(trace.quality.adjusted.values()) == 1


def test_a_circle_of_other_edges_is_an_error():
    def push(session):
        by = session.request(input_tokens=10, output_tokens=5)
        session.spawn("a", spawned_by=by)
        session.spawn("b", spawned_by=by)
        first = session.request(agent="a", input_tokens=1, output_tokens=1)
        session.request(
            agent="b", input_tokens=1, output_tokens=1, after=[Edge(first, EdgeKind.TOOL)]
        )
        session.resume("a", resumed_by=session.request(input_tokens=20, output_tokens=1))
        session.requests[first].after = [Edge(2, EdgeKind.TOOL)]

    with pytest.raises(InputError, match="wait for each other in a circle"):
        built(push)


@pytest.mark.parametrize(
    ("push", "message"),
    [
        (lambda s: s.request(agent="w", input_tokens=1, output_tokens=1), "no spawn names"),
        (lambda s: s.spawn("w", spawned_by=0), "must be a request that was pushed before"),
        (lambda s: s.request(input_tokens=1, output_tokens=0), "at least 1 where"),
        (lambda s: s.request(input_tokens=-1, output_tokens=1), "must not be negative"),
        (lambda s: s.request(input_tokens=2**31, output_tokens=1), "must be at most 2147483647"),
        (lambda s: s.request(input_tokens=1, output_tokens=2, reasoning_tokens=3), "at most"),
        (lambda s: s.request(output_tokens=2), "is needed"),
        (lambda s: s.request(input_tokens=1, output_tokens=2, start_s=float("nan")), "finite"),
        (lambda s: s.request(input_tokens=1, output_tokens=2, row=3, reported_cached_tokens=-1),
         r"log:3: reported_cached_tokens = -1"),
    ],
)  # fmt: skip
def test_what_breaks_a_rule_is_named(push, message):
    with pytest.raises(InputError, match=message) as caught:
        built(push)
    assert "\n" not in str(caught.value)


COUNTS = ("input_tokens", "appended_tokens", "carried_tokens", "prompt_tokens", "output_tokens",
          "reasoning_tokens", "observations", "reported_cached_tokens")  # fmt: skip


@pytest.mark.parametrize("field", COUNTS)
@pytest.mark.parametrize(
    ("value", "rule"), [(-1, "not be negative"), (2**31, "at most 2147483647")]
)
def test_a_count_out_of_bounds_is_named_whatever_the_others_are(field, value, rule):
    largest = dict.fromkeys(COUNTS, 2**31 - 1)
    assert len(built(lambda session: session.request(**largest)).requests) == 1
    with pytest.raises(InputError, match=f"{field} = {value}, must {'be ' * (value > 0)}{rule}"):
        built(lambda session: session.request(**{**largest, field: value}))


def test_empty_sessions_and_orphans_are_counted_and_nothing_left_is_an_error():
    builder = TraceBuilder(source="log")
    builder.session("empty", workload="w", harness="h")
    builder.exclude("greeting", 2)
    with pytest.raises(InputError, match=r"log: no request remains .*2 × greeting; 1 empty"):
        builder.build()
    builder = TraceBuilder(source="log")
    builder.session("empty", workload="w", harness="h")
    orphan = builder.session("o", workload="w", harness="h", orphan=True)
    orphan.request(input_tokens=1, output_tokens=1)
    quality = builder.build().quality.to_json()
    assert (quality["empty_sessions"], quality["orphan_subagents"]) == (1, 1)


def test_names_that_repeat_get_a_suffix():
    builder = TraceBuilder(source="log")
    for name in ("a", "a", "a~2", "a"):
        builder.session(name, workload="w", harness="h").request(input_tokens=1, output_tokens=1)
    trace: Trace = builder.build()
    assert len(set(trace.sessions["session"].to_pylist())) == 4

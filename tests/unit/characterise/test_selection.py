"""Which sessions meet conditions, one at a time and together."""

import pytest

from lachesis.characterise.selection import Conditions, select_sessions
from lachesis.errors import InputError
from lachesis.traces import Role, TraceBuilder


@pytest.fixture
def trace():
    builder = TraceBuilder(source="several")
    for name, workload, requests in (("a1", "x", 1), ("a2", "x", 3), ("b1", "y-1", 2)):
        session = builder.session(
            name, workload=workload, harness="h", stripping="off", ends_open=name == "b1"
        )
        for index in range(requests):
            session.request(
                opens_turn=True, input_tokens=50 * (index + 1), output_tokens=10,
                compacts=name == "a2" and index == 1,
            )  # fmt: skip
    session = builder.session("c1", workload="z", harness="h", stripping="off")
    lead = session.request(input_tokens=10, output_tokens=5, tools=["spawn"])
    session.spawn("w", spawned_by=lead, role=Role.WORKER)
    session.request(agent="w", input_tokens=10, output_tokens=5)
    return builder.build()


@pytest.mark.parametrize(
    ("conditions", "kept"),
    [
        (Conditions(workloads=("x",)), ["a1", "a2"]),
        (Conditions(workloads=("y-*", "z")), ["b1", "c1"]),
        (Conditions(sessions=("?1",)), ["a1", "b1", "c1"]),
        (Conditions(requests_min=2), ["a2", "b1", "c1"]),
        (Conditions(requests_max=2), ["a1", "b1", "c1"]),
        (Conditions(turns_min=2), ["a2", "b1"]),
        (Conditions(agents_min=2), ["c1"]),
        (Conditions(classes=("worker",)), ["c1"]),
        (Conditions(boundaries=("compaction",)), ["a2"]),
        (Conditions(complete=True), ["a1", "a2", "c1"]),
        (Conditions(workloads=("x",), requests_min=2), ["a2"]),
    ],
)
def test_conditions(trace, conditions, kept):
    found = select_sessions(trace, conditions)
    assert found.kept == kept
    assert sum(found.left_out.values()) == 4 - len(kept)


def test_a_session_is_counted_with_the_first_condition_that_it_fails(trace):
    found = select_sessions(trace, Conditions(workloads=("x",), requests_min=2))
    assert found.left_out == {"workload": 2, "too few requests": 1}


def test_what_leaves_nothing_or_asks_nothing_is_refused(trace):
    with pytest.raises(InputError, match="no session of 4 meets the conditions"):
        select_sessions(trace, Conditions(requests_min=99))
    with pytest.raises(InputError, match="at least one condition"):
        select_sessions(trace, Conditions())

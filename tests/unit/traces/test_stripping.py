"""Stripping is recognised from text or from a fall of input tokens, and from nothing else."""

import pytest
from short_logs import built

from lachesis.traces import Part, PartKind


def closings(trace) -> set:
    return set(trace.segments["closed_by"].to_pylist())


@pytest.mark.parametrize(
    ("kept", "closed_by"),
    [("nowhere", "request_end"), ("within the turn", "turn_end"), ("for good", None)],
)
def test_from_text(kept, closed_by):
    reasoning = Part("r", 9, PartKind.REASONING)
    call = Part("c", 4, PartKind.CALL)
    reasoning2, answer = Part("r2", 8, PartKind.REASONING), Part("a", 4, PartKind.ANSWER)
    user, result, user2 = (
        Part("u", 3, PartKind.USER), Part("o", 5, PartKind.OBSERVATION), Part("v", 3, PartKind.USER)
    )  # fmt: skip
    first = [reasoning] if kept != "nowhere" else []
    old = [reasoning] if kept == "for good" else []
    old2 = [reasoning2] if kept == "for good" else []

    def push(session):
        session.request(parts=[user], output_tokens=13, reasoning_tokens=9,
                        output_parts=[reasoning, call])  # fmt: skip
        session.request(parts=[user, *first, call, result], output_tokens=12, reasoning_tokens=8,
                        output_parts=[reasoning2, answer])  # fmt: skip
        session.request(parts=[user, *old, call, result, *old2, answer, user2], output_tokens=1,
                        opens_turn=True, output_parts=[])  # fmt: skip

    assert closings(built(push)) == {closed_by or "session_end"} | (
        {"session_end"} if closed_by else set()
    )


def test_from_a_fall_at_turn_starts():
    def push(session):
        session.request(input_tokens=100, output_tokens=50, reasoning_tokens=40)
        session.request(input_tokens=115, output_tokens=50, reasoning_tokens=40, opens_turn=True)

    assert "turn_end" in closings(built(push))


def test_from_a_fall_within_turns():
    def push(session):
        session.request(input_tokens=100, output_tokens=50, reasoning_tokens=40)
        session.request(input_tokens=115, output_tokens=50, reasoning_tokens=40)

    assert "request_end" in closings(built(push))


def test_a_fall_by_more_than_the_reasoning_is_a_rewrite():
    def push(session):
        session.request(input_tokens=100, output_tokens=50, reasoning_tokens=10)
        session.request(input_tokens=60, output_tokens=50, reasoning_tokens=10, opens_turn=True)

    assert closings(built(push)) == {"reset", "session_end"}


def test_an_expired_cache_is_no_evidence():
    def push(session):
        session.request(input_tokens=100, output_tokens=50, reasoning_tokens=40)
        session.request(
            input_tokens=160, output_tokens=50, opens_turn=True, reported_cached_tokens=0
        )

    assert closings(built(push)) == {"session_end"}


def test_one_rewind_among_many_turns_is_no_stripping():
    def push(session):
        context = 0
        for turn in range(9):
            context += 10
            if turn == 5:
                context -= 15
            session.request(input_tokens=context, output_tokens=20, reasoning_tokens=10,
                            opens_turn=True)  # fmt: skip
            context += 20

    assert "turn_end" not in closings(built(push))

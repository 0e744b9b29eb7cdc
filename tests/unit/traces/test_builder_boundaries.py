"""What closes a segment, and what is written anew because of it."""

import pyarrow.compute as pc
import pytest
from short_logs import built, segments, spans

from lachesis.traces import Part, PartKind, Status, TraceBuilder


def test_a_session_without_stripping_is_one_lead_segment():
    def push(session):
        session.request(input_tokens=100, prompt_tokens=60, output_tokens=20)
        session.request(input_tokens=130, output_tokens=7, opens_turn=True)

    trace = built(push, stripping="off")
    assert segments(trace) == [("prompt", 0, "session_end", 1), ("lead", 0, "session_end", 1)]
    assert spans(trace, 1) == [
        ("prompt", 60, False), ("lead", 60, False), ("lead", 10, True)
    ]  # fmt: skip


def test_turn_end_closes_the_turn_and_writes_what_it_carries():
    def push(session):
        session.request(input_tokens=100, prompt_tokens=60, output_tokens=50, reasoning_tokens=30)
        session.request(input_tokens=160, output_tokens=10)
        # 60 prompt + 80 of the turn's 110 tokens without its reasoning + 5 new
        session.request(input_tokens=145, output_tokens=9, opens_turn=True, appended_tokens=5)

    trace = built(push, stripping="turn")
    assert segments(trace) == [
        ("prompt", 0, "session_end", 2),
        ("reasoning-laden", 0, "turn_end", 1),
        ("reasoning-stripped", 0, "session_end", 2),
        ("reasoning-laden", 0, "turn_end", 2),
    ]
    assert spans(trace, 2) == [
        ("prompt", 60, False), ("reasoning-stripped", 80, True), ("reasoning-laden", 5, True)
    ]  # fmt: skip


def test_the_last_turn_writes_no_stripped_segment():
    trace = built(
        lambda s: s.request(input_tokens=9, output_tokens=5, reasoning_tokens=3), stripping="turn"
    )
    assert segments(trace) == [("reasoning-laden", 0, "turn_end", 0)]


def test_without_known_text_the_carried_part_is_the_turn_without_reasoning():
    def push(session):
        session.request(input_tokens=100, prompt_tokens=60, output_tokens=50, reasoning_tokens=30)
        session.request(input_tokens=130, output_tokens=9, opens_turn=True)

    trace = built(push, stripping="turn")
    assert spans(trace, 1)[1:] == [("reasoning-stripped", 60, True), ("reasoning-laden", 10, True)]
    assert "carried_tokens" in trace.quality.filled


def test_stripping_every_round_closes_each_output_with_its_request():
    def push(session):
        session.request(input_tokens=100, prompt_tokens=60, output_tokens=50, reasoning_tokens=30)
        session.request(input_tokens=125, output_tokens=40, reasoning_tokens=0)
        session.request(input_tokens=170, output_tokens=6, reasoning_tokens=5)

    trace = built(push, stripping="round")
    assert segments(trace) == [
        ("prompt", 0, "session_end", 2),
        ("reasoning-stripped", 0, "session_end", 2),
        ("reasoning-laden", 0, "request_end", 0),
        ("reasoning-laden", 0, "request_end", 2),
    ]
    assert spans(trace, 1)[1:] == [("reasoning-stripped", 40, False),
                                   ("reasoning-stripped", 25, True)]  # fmt: skip
    # An output without reasoning stays as it was written.
    assert spans(trace, 2)[1:] == [("reasoning-stripped", 105, False),
                                   ("reasoning-stripped", 5, True)]  # fmt: skip


def test_compaction_closes_all_but_the_prompt_and_leaves_a_summary():
    def push(session):
        session.request(input_tokens=100, prompt_tokens=60, output_tokens=50)
        session.request(input_tokens=160, output_tokens=30, reasoning_tokens=10, compacts=True)
        session.request(input_tokens=95, output_tokens=5)

    trace = built(push, stripping="off")
    assert segments(trace) == [
        ("prompt", 0, "session_end", 2),
        ("lead", 0, "compaction", 1),
        ("summary", 0, "session_end", 2),
        ("lead", 0, "session_end", 2),
    ]
    assert spans(trace, 2) == [
        ("prompt", 60, False), ("summary", 20, True), ("lead", 15, True)
    ]  # fmt: skip


def test_a_compaction_that_the_log_lacks_can_be_told():
    def push(session):
        session.request(input_tokens=100, prompt_tokens=60, output_tokens=50)
        session.compacted(summary_tokens=25)
        session.request(input_tokens=95, output_tokens=5)

    trace = built(push, stripping="off")
    assert segments(trace)[1] == ("lead", 0, "compaction", 0)
    assert spans(trace, 1)[1:] == [("summary", 25, True), ("lead", 10, True)]


def test_a_shorter_input_is_a_reset_at_the_last_chunk_that_fits():
    def push(session):
        session.request(input_tokens=100, prompt_tokens=60, output_tokens=50)
        session.request(input_tokens=170, output_tokens=10)
        session.request(input_tokens=155, output_tokens=3)

    trace = built(push, stripping="off")
    # 155 hold prompt, first text and first output (150); the rest was rewritten.
    assert spans(trace, 2) == [
        ("prompt", 60, False), ("lead", 90, False), ("lead", 5, True)
    ]  # fmt: skip
    assert ("lead", 0, "reset", 1) in segments(trace)
    assert list(trace.quality.adjusted.values()) == [1]
    # Nothing that stayed was written a second time.
    written = sum(r["tokens"] for r in trace.spans.to_pylist() if r["written"])
    assert written == 100 + 20 + 5


def test_a_stated_rewind_wins_over_counts_that_would_fit():
    def push(session):
        first = session.request(input_tokens=100, prompt_tokens=60, output_tokens=50)
        session.request(input_tokens=170, output_tokens=10)
        session.request(input_tokens=400, output_tokens=3, rewinds_to=first)
        session.request(input_tokens=500, output_tokens=3, rewinds_to=-1)

    trace = built(push, stripping="off")
    assert spans(trace, 2) == [
        ("prompt", 60, False), ("lead", 90, False), ("lead", 250, True)
    ]  # fmt: skip
    assert spans(trace, 3) == [("prompt", 60, False), ("lead", 440, True)]


def test_text_that_was_edited_is_a_reset_at_the_edit():
    system, user, edited = (
        Part("system", 10, PartKind.SYSTEM),
        Part("user", 5, PartKind.USER),
        Part("edited", 6, PartKind.USER),
    )
    answer = Part("answer", 7, PartKind.ANSWER)

    def push(session):
        session.request(parts=[system, user], output_tokens=7, output_parts=[answer])
        session.request(parts=[system, edited], output_tokens=7, output_parts=[answer])

    trace = built(push)
    assert spans(trace, 1) == [("prompt", 10, False), ("lead", 6, True)]
    assert segments(trace) == [
        ("prompt", 0, "session_end", 1), ("lead", 0, "reset", 0), ("lead", 0, "session_end", 1)
    ]  # fmt: skip


def test_another_model_writes_everything_anew():
    def push(session):
        session.request(input_tokens=100, prompt_tokens=60, output_tokens=50, model="m")
        session.request(input_tokens=170, output_tokens=10, model="n")

    trace = built(push, stripping="off")
    assert spans(trace, 1) == [("prompt", 60, True), ("lead", 110, True)]
    assert segments(trace)[:2] == [("prompt", 0, "reset", 0), ("lead", 0, "reset", 0)]


def test_what_an_aborted_request_wrote_stays_and_its_lost_output_does_not():
    user, answer = Part("u", 5, PartKind.USER), Part("a", 3, PartKind.ANSWER)

    def push(session):
        session.request(parts=[user], output_tokens=3, output_parts=[answer], status=Status.ABORTED)
        session.request(parts=[user], output_tokens=4)

    trace = built(push)
    assert spans(trace, 1) == [("lead", 5, False)]
    assert segments(trace) == [("lead", 0, "session_end", 1), ("lead", 0, "reset", 0)]
    assert trace.requests["status"].to_pylist() == ["aborted", "ok"]


def test_reported_input_scales_the_new_text_and_leaves_the_rest_to_the_prompt():
    system, user = Part("system", 10, PartKind.SYSTEM), Part("user", 5, PartKind.USER)
    answer, result = Part("a", 7, PartKind.ANSWER), Part("r", 20, PartKind.OBSERVATION)

    def push(session):
        session.request(parts=[system, user], input_tokens=105, output_tokens=7,
                        output_parts=[answer])  # fmt: skip
        session.request(parts=[system, user, answer, result], input_tokens=142, output_tokens=1)

    trace = built(push)
    assert spans(trace, 0) == [("prompt", 100, True), ("lead", 5, True)]
    assert spans(trace, 1) == [("prompt", 100, False), ("lead", 12, False), ("lead", 30, True)]


def test_a_rewrite_that_ends_where_a_chunk_ends_keeps_that_chunk():
    def push(session):
        session.request(input_tokens=100, prompt_tokens=60, output_tokens=50)
        session.request(input_tokens=170, output_tokens=10)
        session.request(input_tokens=150, output_tokens=3)

    assert spans(built(push, stripping="off"), 2) == [("prompt", 60, False), ("lead", 90, False)]


@pytest.mark.parametrize(
    ("lengths", "prompts"), [((105, 103, 104), [98, 98, 98]), ((105, 900, 105), [100, 895, 100])]
)
def test_sessions_of_one_prompt_agree_on_its_length(lengths, prompts):
    builder = TraceBuilder(source="log")
    for index, length in enumerate(lengths):
        session = builder.session(str(index), workload="w", harness="h")
        parts = [Part("system", 10, PartKind.SYSTEM), Part(index, 5, PartKind.USER)]
        session.request(parts=parts, input_tokens=length, output_tokens=1)
    trace = builder.build()
    written = trace.spans.filter(pc.equal(trace.spans["position"], 0))
    assert written["tokens"].to_pylist() == prompts
    keys = trace.segments["prefix_key"].to_pylist()[::2]
    assert len(set(keys)) == len(set(prompts))

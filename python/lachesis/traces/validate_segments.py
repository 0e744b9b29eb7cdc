"""Segments: written before they are matched, matched whole, closed once and not named after."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from lachesis.traces.schema import Boundary, SegmentClass
from lachesis.traces.trace_view import Bools, Ints, TraceView, bools, ints, pair_keys

_ENDS_ANYWHERE = (Boundary.COMPACTION, Boundary.RESET)
#: What may close a segment of each class.
CLOSED_BY: dict[SegmentClass, tuple[Boundary, ...]] = {
    SegmentClass.PROMPT: (Boundary.SESSION_END, Boundary.SUBAGENT_RETURN, Boundary.RESET),
    SegmentClass.LADEN: (Boundary.TURN_END, Boundary.REQUEST_END, *_ENDS_ANYWHERE),
    SegmentClass.STRIPPED: (Boundary.SESSION_END, *_ENDS_ANYWHERE),
    SegmentClass.LEAD: (Boundary.SESSION_END, *_ENDS_ANYWHERE),
    SegmentClass.WORKER: (Boundary.SUBAGENT_RETURN, *_ENDS_ANYWHERE),
    SegmentClass.REVIEWER: (Boundary.SUBAGENT_RETURN, *_ENDS_ANYWHERE),
    SegmentClass.SUMMARY: (
        Boundary.SESSION_END,
        Boundary.SUBAGENT_RETURN,
        *_ENDS_ANYWHERE,
    ),
}
_MATCHED, _WRITTEN, _OUTPUT = 0, 1, 2


def check_segments(view: TraceView) -> None:
    """All rules about what requests read from and write to segments."""
    _check_classes(view)
    span_segment, span_request = view.segment_of_span, view.request_of_span
    written = bools(view.trace.spans["written"])
    _check_prefix(view, span_request, written)
    output_segment = view.segment_of_output
    _check_owners(view, span_segment, span_request, written, output_segment)

    # One row a mention, in order of segment, request, and matched before written before output.
    count = len(output_segment)
    segment = np.concatenate([span_segment, output_segment])
    request = np.concatenate([span_request, np.arange(count)])
    kind = np.concatenate([np.where(written, _WRITTEN, _MATCHED), np.full(count, _OUTPUT)])
    tokens = np.concatenate(
        [view.column("spans", "tokens"), view.column("requests", "output_tokens")]
    )
    order = np.lexsort((kind, request, segment))
    span_row = np.where(order < len(span_segment), order, -1)
    segment, request, kind, tokens = (column[order] for column in (segment, request, kind, tokens))
    _check_mentions(view, segment, request, kind, tokens, span_row)
    _check_closing(view, segment, request)
    _check_prefix_keys(view, segment, kind, tokens)


def _check_classes(view: TraceView) -> None:
    for segment_class, boundaries in CLOSED_BY.items():
        view.require(
            ~view.is_any("segments", "class", segment_class)
            | view.is_any("segments", "closed_by", *boundaries),
            "segments", "closed_by",
            f"a {segment_class} segment is closed by {', '.join(boundaries)}",
        )  # fmt: skip
    keyed = ~bools(view.trace.segments["prefix_key"].is_null())
    view.require(
        ~keyed | view.is_any("segments", "class", SegmentClass.PROMPT),
        "segments", "prefix_key", "only a prompt has one",
    )  # fmt: skip


def _check_prefix(view: TraceView, span_request: Ints, written: Bools) -> None:
    same = span_request[1:] == span_request[:-1]
    holds = np.ones(len(written), np.bool_)
    holds[1:] = ~(same & written[:-1] & ~written[1:])
    view.require(holds, "spans", "written", "matched spans come before written ones")


def _check_owners(
    view: TraceView,
    span_segment: Ints,
    span_request: Ints,
    written: Bools,
    output_segment: Ints,
) -> None:
    prompt = view.is_any("segments", "class", SegmentClass.PROMPT)
    owner = view.column("segments", "agent")
    agent = view.column("requests", "agent")
    rule = "requests write only to their own agent's segments"
    view.require(
        ~written | prompt[span_segment] | (owner[span_segment] == agent[span_request]),
        "spans", "segment", rule,
    )  # fmt: skip
    view.require(
        prompt[output_segment] | (owner[output_segment] == agent), "requests", "segment", rule
    )
    shared = bools(view.trace.segments["prefix_key"].is_valid())
    view.require(
        ~shared[output_segment] | (view.column("requests", "output_tokens") == 0),
        "requests", "segment", "a shared prompt takes no output",
    )  # fmt: skip


def _check_mentions(
    view: TraceView, segment: Ints, request: Ints, kind: Ints, tokens: Ints, span_row: Ints
) -> None:
    new_segment = np.ones(len(segment), np.bool_)
    new_segment[1:] = segment[1:] != segment[:-1]
    bad = new_segment & (kind == _MATCHED)
    if bad.any():
        raise view.fail(
            "spans", int(span_row[np.argmax(bad)]), "segment",
            "a segment's first mention must be written",
        )  # fmt: skip
    added = np.where(kind == _MATCHED, 0, tokens)
    before = np.cumsum(added) - added
    start = np.maximum.accumulate(np.where(new_segment, np.arange(len(segment)), 0))
    live = before - before[start]
    wrong = (kind == _MATCHED) & (tokens != live)
    if wrong.any():
        index = int(np.argmax(wrong))
        raise view.fail(
            "spans", int(span_row[index]), "tokens",
            f"must match all {int(live[index])} live tokens of segment "
            f"{view.trace.segments['segment'][int(segment[index])].as_py()}",
        )  # fmt: skip
    same_as_before = np.zeros(len(segment), np.bool_)
    same_as_before[1:] = ~new_segment[1:] & (request[1:] == request[:-1])
    twice = same_as_before & (kind == _MATCHED)
    if twice.any():
        raise view.fail(
            "spans", int(span_row[np.argmax(twice)]), "segment",
            "a request matches a segment once",
        )  # fmt: skip
    unmatched = ~same_as_before & (kind != _MATCHED) & (live > 0)
    if unmatched.any():
        index = int(np.argmax(unmatched))
        raise view.fail(
            "requests", int(request[index]), "segment",
            f"writes to a segment of {int(live[index])} live tokens without matching them",
            view.trace.segments["segment"][int(segment[index])].as_py(),
        )  # fmt: skip


def _check_closing(view: TraceView, segment: Ints, request: Ints) -> None:
    count = view.trace.segments.num_rows
    closed = view.rows_of_requests("segments", view.column("segments", "closed_after"))
    view.require(closed >= 0, "segments", "closed_after", "no such request")
    mentioned = np.isin(np.arange(count), segment)
    view.require(mentioned, "segments", "segment", "is never written")
    first = np.searchsorted(segment, np.arange(count), "left")
    last = np.searchsorted(segment, np.arange(count), "right") - 1
    view.require(
        closed >= request[first], "segments", "closed_after",
        "a boundary must not be before its segment",
    )  # fmt: skip
    late = closed < request[last]
    if late.any():
        row = int(np.argmax(late))
        raise view.fail(
            "requests", int(request[last[row]]), "segment",
            f"names a segment after it was closed (by {view.trace.segments['closed_by'][row]} "
            f"after request {view.trace.segments['closed_after'][row]})",
            view.trace.segments["segment"][row].as_py(),
        )  # fmt: skip


def _check_prefix_keys(view: TraceView, segment: Ints, kind: Ints, tokens: Ints) -> None:
    """Equal keys stand for equal prompts: the same number of tokens, once a session."""
    count = view.trace.segments.num_rows
    total = np.bincount(
        segment, weights=np.where(kind == _MATCHED, 0, tokens), minlength=count
    ).astype(np.int64)
    encoded = pc.dictionary_encode(view.trace.segments["prefix_key"].combine_chunks())
    code = ints(pc.fill_null(encoded.indices, -1))
    rows = np.flatnonzero(code >= 0)
    codes, first = np.unique(code[rows], return_index=True)
    expected = total[rows[first]][np.searchsorted(codes, code[rows])]
    wrong = total[rows] != expected
    own = pair_keys(view.session["segments"][rows], code[rows])
    again = np.ones(len(rows), np.bool_)
    again[np.unique(own, return_index=True)[1]] = False
    for index in np.flatnonzero(wrong | again)[:1].tolist():
        if not wrong[index]:
            raise view.fail("segments", int(rows[index]), "prefix_key",
                            "must be unique in its session")  # fmt: skip
        raise view.fail(
            "segments", int(rows[index]), "prefix_key",
            f"has {int(total[rows[index]])} tokens here and {int(expected[index])} in another "
            "session",
        )  # fmt: skip

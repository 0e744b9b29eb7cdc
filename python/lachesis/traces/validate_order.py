"""Whoever names a segment comes after whoever named it before, along the edges."""

from __future__ import annotations

import numpy as np

from lachesis.traces.schema import SegmentClass
from lachesis.traces.trace_view import Ints, TraceView, lookup, pair_keys


def check_naming_order(view: TraceView) -> None:
    """Every request that names a non-prompt segment is after the previous one that named it.

    Nearly always by a direct edge, which is settled over whole columns; the rest by a walk back
    along the edges.
    """
    segments, requests = _mentions(view)
    prompt = view.is_any("segments", "class", SegmentClass.PROMPT)
    keep = ~prompt[segments]
    keys = np.unique(pair_keys(segments[keep], requests[keep]))
    segments, requests = keys >> 32, keys & 0xFFFFFFFF
    same = np.flatnonzero(segments[1:] == segments[:-1])
    earlier, later = requests[same], requests[same + 1]
    edge_keys = np.unique(pair_keys(view.after_of, view.after_request))
    direct = lookup(edge_keys, pair_keys(later, earlier)) >= 0
    for index in np.flatnonzero(~direct):
        if not _reaches(view, int(later[index]), int(earlier[index])):
            segment = int(view.trace.segments["segment"][int(segments[same[index]])].as_py())
            before = int(view.trace.requests["request"][int(earlier[index])].as_py())
            raise view.fail(
                "requests", int(later[index]), "after",
                f"must lead back to request {before}, which named segment {segment} before",
            )  # fmt: skip


def _mentions(view: TraceView) -> tuple[Ints, Ints]:
    spans = view.segment_rows(view.session["spans"], view.column("spans", "segment"))
    outputs = view.segment_rows(view.session["requests"], view.column("requests", "segment"))
    span_requests = view.rows_of_requests("spans", view.column("spans", "request"))
    return (
        np.concatenate([spans, outputs]),
        np.concatenate([span_requests, np.arange(len(outputs))]),
    )


def _reaches(view: TraceView, later: int, earlier: int) -> bool:
    """Whether a walk along `after` from row `later` comes to row `earlier`."""
    waiting = [later]
    seen = {later}
    while waiting:
        row = waiting.pop()
        start, end = np.searchsorted(view.after_of, [row, row + 1])
        for before in view.after_request[start:end].tolist():
            if before == earlier:
                return True
            if before > earlier and before not in seen:
                seen.add(before)
                waiting.append(before)
    return False

"""Short ways to write a log down and to read a trace back."""

from lachesis.traces import Trace, TraceBuilder


def built(push, **session) -> Trace:
    """The trace of one session that `push(session)` fills."""
    builder = TraceBuilder(source="log")
    push(builder.session("s", **{"workload": "w", "harness": "h", **session}))
    return builder.build()


def segments(trace: Trace) -> list[tuple]:
    """(class, agent, closed_by, closed_after) of every segment."""
    return [
        (row["class"], row["agent"], row["closed_by"], row["closed_after"])
        for row in trace.segments.to_pylist()
    ]


def spans(trace: Trace, request: int) -> list[tuple]:
    """(class, tokens, written) of a request's spans."""
    classes = dict(
        zip(trace.segments["segment"].to_pylist(), trace.segments["class"].to_pylist(), strict=True)
    )
    return [
        (classes[row["segment"]], row["tokens"], row["written"])
        for row in trace.spans.to_pylist()
        if row["request"] == request
    ]


def after(trace: Trace, request: int) -> list[tuple]:
    """(request, kind, delay_s) of a request's edges."""
    row = trace.requests["after"][request].as_py()
    return [(edge["request"], edge["kind"], edge["delay_s"]) for edge in row]

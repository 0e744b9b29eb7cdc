"""The reference clock: how long each segment must stay readable, whatever served the session.

A session's graph of requests is scheduled on a clock with fixed costs (paper, section 3.2, eq. 1):

    start(r) = max over edges of r (end(earlier) + delay of the edge), 0 without edges
    end(r)   = start(r) + observations(r) x TTFT_ref + output tokens(r) x TPOT_ref
    T_norm(s) = death(s) - birth(s)

A delay that the trace leaves open is drawn: for a tool edge the longest of the calls of the earlier
request, each drawn around the mean of its class (exponential, as in the paper, or log-normal); for
a user edge a log-normal. A segment is born when the request that first writes it starts; a
reasoning-stripped one already when its turn ends, since its tokens are fixed from there. It dies
when the request that closes it ends, or with the session.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lachesis.presets import LatencyPreset
from lachesis.traces.schema import Boundary, EdgeKind, SegmentClass
from lachesis.traces.trace import Trace, session_digests

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ReferenceSchedule:
    """When everything of a trace happens on the reference clock (seconds since session start).

    Rows follow the trace's ``requests`` and ``segments`` tables.
    """

    start_s: Floats
    end_s: Floats
    birth_s: Floats
    death_s: Floats

    @property
    def t_norm_s(self) -> Floats:
        """Normalised lifetime of each segment."""
        return self.death_s - self.birth_s


@dataclass(frozen=True)
class TraceRows:
    """Row numbers that join a trace's tables: request and segment rows of each span, and more."""

    request_of_span: Ints
    segment_of_span: Ints
    segment_of_request: Ints
    """Segment row that each request's output goes to."""
    first_request: Ints
    """Request row with which each session begins, in the order of ``sessions``."""
    session_of_request: Ints
    session_of_segment: Ints


def join_rows(trace: Trace) -> TraceRows:
    """Row numbers of requests and segments for every span and output."""
    of_request, of_segment, of_span = (
        _session_index(trace, table) for table in ("requests", "segments", "spans")
    )
    count = len(trace)
    first_request = _starts(of_request, count)
    first_segment = _starts(of_segment, count)
    spans, requests = trace.spans, trace.requests
    return TraceRows(
        request_of_span=first_request[of_span] + _ints(spans["request"]),
        segment_of_span=first_segment[of_span] + _ints(spans["segment"]),
        segment_of_request=first_segment[of_request] + _ints(requests["segment"]),
        first_request=first_request,
        session_of_request=of_request,
        session_of_segment=of_segment,
    )


def schedule(trace: Trace, latency: LatencyPreset, seed: int) -> ReferenceSchedule:
    """Schedule every session of ``trace`` on the reference clock.

    A session's draws depend on ``seed`` and on its content alone, not on its name or place.

    >>> from lachesis.presets import load_latency
    >>> from lachesis.traces.generator import generate
    >>> clock = schedule(generate("tau3-airline"), load_latency(), seed=0)
    >>> bool((clock.t_norm_s > 0).all())
    True
    """
    rows = join_rows(trace)
    output = _ints(trace.requests["output_tokens"])
    observations = _ints(trace.requests["observations"])
    active_s = observations * latency.ttft_ref_s + output * latency.tpot_ref_s
    tool_delay_s, user_delay_s = _draw_delays(trace, rows, latency, seed)
    start_s, end_s = _run(trace, rows, active_s, tool_delay_s, user_delay_s)
    birth_s, death_s = _lives(trace, rows, start_s, end_s)
    return ReferenceSchedule(start_s, end_s, birth_s, death_s)


def waiting_share(trace: Trace, clock: ReferenceSchedule) -> Floats:
    """Of each session's lead life, the part in which no lead request is active; one a session.

    The lead's life goes from the birth of the first of its `lead` segments to the death of the
    last (real logs have several: resets and compactions close one and open the next). NaN where a
    session has none, or one that takes no time.
    """
    rows = join_rows(trace)
    leads = np.flatnonzero(_equals(trace, "class", SegmentClass.LEAD))
    session = rows.session_of_segment[leads]
    born_s, died_s = np.full(len(trace), np.inf), np.full(len(trace), -np.inf)
    np.minimum.at(born_s, session, clock.birth_s[leads])
    np.maximum.at(died_s, session, clock.death_s[leads])
    active_s = np.zeros(len(trace))
    busy_until_s = born_s.copy()
    requests = np.flatnonzero(_ints(trace.requests["agent"]) == 0)
    order = np.lexsort((clock.start_s[requests], rows.session_of_request[requests]))
    # Retries can run side by side, so what they share counts once.
    for request in requests[order].tolist():
        owner = rows.session_of_request[request]
        begin_s = max(clock.start_s[request], busy_until_s[owner])
        end_s = min(clock.end_s[request], died_s[owner])
        if end_s > begin_s:
            active_s[owner] += end_s - begin_s
            busy_until_s[owner] = end_s
    life_s = died_s - born_s
    share = np.full(len(trace), np.nan)
    lived = life_s > 0
    share[lived] = 1.0 - active_s[lived] / life_s[lived]
    return share


def first_writers(trace: Trace, rows: TraceRows) -> Ints:
    """Row of the request that first writes into each segment, by its input or its output."""
    written = trace.spans["written"].to_numpy()
    writer = np.full(trace.segments.num_rows, trace.requests.num_rows, dtype=np.int64)
    np.minimum.at(writer, rows.segment_of_span[written], rows.request_of_span[written])
    np.minimum.at(writer, rows.segment_of_request, np.arange(trace.requests.num_rows))
    return writer


def written_tokens(trace: Trace) -> Ints:
    """Tokens written into each segment: its written spans and the outputs that go there."""
    rows = join_rows(trace)
    written = trace.spans["written"].to_numpy()
    count = trace.segments.num_rows
    tokens = np.bincount(
        rows.segment_of_span[written],
        weights=_ints(trace.spans["tokens"])[written],
        minlength=count,
    )
    outputs = np.bincount(
        rows.segment_of_request,
        weights=_ints(trace.requests["output_tokens"]),
        minlength=count,
    )
    total: Ints = np.rint(tokens + outputs).astype(np.int64)
    return total


def read_write_ratio(trace: Trace) -> Floats:
    """Decode-stage reads of each segment per token written to it (paper, appendix B, eq. 2, 3).

    A request with L output tokens reads the n tokens of a segment that it holds L times; of the
    segment that its output goes to, step i reads i - 1 more.
    """
    rows = join_rows(trace)
    output = _ints(trace.requests["output_tokens"]).astype(np.float64)
    count = trace.segments.num_rows
    held = np.bincount(
        rows.segment_of_span,
        weights=_ints(trace.spans["tokens"]) * output[rows.request_of_span],
        minlength=count,
    )
    growth = np.bincount(
        rows.segment_of_request, weights=output * (output - 1.0) / 2.0, minlength=count
    )
    written = written_tokens(trace)
    # A prompt that an earlier agent of the session wrote is never empty, so no division by zero.
    return (held + growth) / np.maximum(written, 1)


def _run(
    trace: Trace, rows: TraceRows, active_s: Floats, tool_delay_s: Floats, user_delay_s: Floats
) -> tuple[Floats, Floats]:
    after = trace.requests["after"].combine_chunks()
    bounds: list[int] = after.offsets.to_pylist()
    edges = after.values
    earlier: list[int] = edges.field("request").to_pylist()
    kinds: list[str] = edges.field("kind").to_pylist()
    delays: list[float | None] = edges.field("delay_s").to_pylist()
    first: list[int] = rows.first_request[rows.session_of_request].tolist()
    active, tool, user = active_s.tolist(), tool_delay_s.tolist(), user_delay_s.tolist()
    count = len(active)
    start, end = [0.0] * count, [0.0] * count
    for request in range(count):
        ready = 0.0
        for edge in range(bounds[request], bounds[request + 1]):
            source = first[request] + earlier[edge]
            delay = delays[edge]
            if delay is None:
                kind = kinds[edge]
                if kind == EdgeKind.TOOL:
                    delay = tool[source]
                else:
                    delay = user[request] if kind == EdgeKind.USER else 0.0
            ready = max(ready, end[source] + delay)
        start[request] = ready
        end[request] = ready + active[request]
    return np.array(start), np.array(end)


def _draw_delays(
    trace: Trace, rows: TraceRows, latency: LatencyPreset, seed: int
) -> tuple[Floats, Floats]:
    """The longest call of each request, and the user's delay before each request."""
    means = latency.tool_means()
    tools = trace.requests["tools"].combine_chunks()
    bounds = tools.offsets.to_numpy().astype(np.int64)
    words = tools.values.to_pylist()[bounds[0] : bounds[-1]]
    call_mean_s = np.array([means[word] for word in words], dtype=np.float64)
    calls = np.diff(bounds)
    first_call = bounds[:-1] - bounds[0]
    ends = np.append(rows.first_request[1:], len(calls))
    tool_s, user_s = np.zeros(len(calls)), np.zeros(len(calls))
    digests = session_digests(trace)
    for index, name in enumerate(trace.sessions["session"].to_pylist()):
        low, high = int(rows.first_request[index]), int(ends[index])
        key = int.from_bytes(digests[name][:16], "big")
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, key])))
        user_s[low:high] = latency.user_median_s * np.exp(
            latency.user_sigma * rng.standard_normal(high - low)
        )
        session_calls = calls[low:high]
        begin = int(first_call[low])
        mean_s = call_mean_s[begin : begin + int(session_calls.sum())]
        drawn_s = _draw_calls(mean_s, latency, rng)
        np.maximum.at(tool_s, np.repeat(np.arange(low, high), session_calls), drawn_s)
    return tool_s, user_s


def _draw_calls(mean_s: Floats, latency: LatencyPreset, rng: np.random.Generator) -> Floats:
    """One duration a call, around its mean."""
    if latency.tool_distribution == "exponential":
        return rng.exponential(mean_s)
    # The mean of a log-normal is its median times exp(sigma^2 / 2).
    scores = rng.standard_normal(len(mean_s))
    drawn_s: Floats = mean_s * np.exp(latency.tool_sigma * (scores - latency.tool_sigma / 2.0))
    return drawn_s


def _lives(trace: Trace, rows: TraceRows, start_s: Floats, end_s: Floats) -> tuple[Floats, Floats]:
    writer = first_writers(trace, rows)
    birth_s = start_s[writer]
    stripped = np.flatnonzero(_equals(trace, "class", SegmentClass.STRIPPED))
    after = trace.requests["after"].combine_chunks()
    bounds = after.offsets.to_numpy()
    earlier = after.values.field("request").to_numpy()
    for segment in stripped.tolist():
        request = int(writer[segment])
        edges = earlier[bounds[request] : bounds[request + 1]]
        base = rows.first_request[rows.session_of_segment[segment]]
        if len(edges):
            birth_s[segment] = end_s[base + edges].max()
    closing = rows.first_request[rows.session_of_segment] + _ints(trace.segments["closed_after"])
    session_end_s = np.maximum.reduceat(end_s, rows.first_request)
    with_session = _equals(trace, "closed_by", Boundary.SESSION_END)
    death_s = np.where(with_session, session_end_s[rows.session_of_segment], end_s[closing])
    return birth_s, death_s


def _equals(trace: Trace, column: str, word: str) -> NDArray[np.bool_]:
    words: NDArray[np.object_] = trace.segments[column].to_numpy()
    same: NDArray[np.bool_] = words == str(word)
    return same


def _ints(column: object) -> Ints:
    values: Ints = column.to_numpy().astype(np.int64)  # type: ignore[attr-defined]
    return values


def _session_index(trace: Trace, table: str) -> Ints:
    names = trace.sessions["session"].to_pylist()
    index = {name: position for position, name in enumerate(names)}
    encoded = trace.tables[table]["session"].combine_chunks().dictionary_encode()
    order = np.array([index[name] for name in encoded.dictionary.to_pylist()], dtype=np.int64)
    codes: Ints = encoded.indices.to_numpy()
    return order[codes] if len(order) else codes.astype(np.int64)


def _starts(session_of_row: Ints, sessions: int) -> Ints:
    counts = np.bincount(session_of_row, minlength=sessions)
    return np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.int64)

"""Reads per write of each segment class, and how much memory a class holds at one time.

Read-to-write ratio (paper, section 3.2 and appendix B, eq. 2 and 3), by spans of the trace:

    rho(s) = V_R(s) / V_W(s)
    V_W(s) = tokens that are materialised in s
    V_R(s) = sum over requests that hold n tokens of s and generate L tokens:
                 n L                     where the output goes elsewhere
                 n L + L (L - 1) / 2     where it goes to s, which grows by one token a step

The footprint of a class is what a live session keeps of it, averaged over the session's time on the
reference clock. An input is there from its request's start, an output grows evenly to its request's
end, and all of a segment goes when the segment dies. Prompts that sessions share are not part of
that mean: one copy lies on each GPU, as in the engine, and stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lachesis.characterise.reference_clock import (
    ReferenceSchedule,
    TraceRows,
    join_rows,
    read_write_ratio,
    written_tokens,
)
from lachesis.presets import LatencyPreset
from lachesis.traces.schema import SegmentClass
from lachesis.traces.trace import Trace

__all__ = ["ClassFootprint", "footprints", "mean_read_write_ratio", "read_write_ratio"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ClassFootprint:
    """Memory that one class holds.

    Attributes:
        tokens_per_session: of segments that no other session reads, per live session (time mean).
        blocks_per_session: the same in blocks, part-filled ones counted whole.
        shared_tokens: of prompts that sessions share, all different ones, one copy each.
        shared_blocks: the same in blocks.
    """

    tokens_per_session: float
    blocks_per_session: float
    shared_tokens: int
    shared_blocks: int

    def node_blocks(self, sessions: int, gpus: int) -> float:
        """Blocks of a node with that many live sessions; shared prompts lie once on each GPU.

        Example:
            >>> ClassFootprint(100.0, 7.0, 64, 4).node_blocks(sessions=10, gpus=8)
            102.0
        """
        return sessions * self.blocks_per_session + min(sessions, gpus) * self.shared_blocks


def mean_read_write_ratio(trace: Trace) -> dict[str, float]:
    """Mean rho of the segments of each class in the trace, every segment counted once.

    Segments into which nothing was written have no ratio and are left out. The result does not
    depend on the order of the sessions.

    Example:
        >>> from lachesis.traces import TraceBuilder
        >>> builder = TraceBuilder(source="one")
        >>> session = builder.session("a", workload="w", harness="h", stripping="off")
        >>> _ = session.request(input_tokens=6, output_tokens=4)
        >>> mean_read_write_ratio(builder.build())  # reads 6 + 7 + 8 + 9 of 10 tokens written
        {'lead': 3.0}
    """
    rho, written = read_write_ratio(trace), written_tokens(trace)
    of_class = _class_rows(trace)
    means: dict[str, float] = {}
    for name, rows in of_class.items():
        ratios = rho[rows][written[rows] > 0]
        if len(ratios):
            # fsum rounds once, whatever the order of the segments.
            means[name] = math.fsum(ratios) / len(ratios)
    return means


def footprints(
    trace: Trace, clock: ReferenceSchedule, latency: LatencyPreset, *, block_tokens: int = 16
) -> dict[str, ClassFootprint]:
    """Footprint of each class in the trace per live session, on the reference clock.

    Sessions of a closed loop are drawn equally often, so a long one is met in proportion to its
    length: the mean is all sessions' token-seconds over all sessions' seconds. A trace in which no
    time passes has footprints of 0.

    Args:
        trace: any trace.
        clock: from `lachesis.characterise.reference_clock.schedule`, of the same trace.
        latency: the latencies that the clock was scheduled with.
        block_tokens: tokens a block.

    Example:
        >>> from lachesis.characterise.reference_clock import schedule
        >>> from lachesis.presets import load_latency
        >>> from lachesis.traces import TraceBuilder
        >>> builder = TraceBuilder(source="one")
        >>> session = builder.session("a", workload="w", harness="h", stripping="off")
        >>> _ = session.request(input_tokens=6, output_tokens=4)
        >>> trace, latency = builder.build(), load_latency()
        >>> clock = schedule(trace, latency, seed=0)
        >>> lead = footprints(trace, clock, latency)["lead"]
        >>> lead.tokens_per_session, lead.blocks_per_session  # 6 growing to 10
        (8.0, 1.0)
    """
    rows = join_rows(trace)
    token_s, block_s = _held(trace, clock, latency, rows, block_tokens)
    session_s = math.fsum(np.maximum.reduceat(clock.end_s, rows.first_request))
    keys: list[str | None] = trace.segments["prefix_key"].to_pylist()
    private = np.array([key is None for key in keys])
    written = written_tokens(trace)
    found: dict[str, ClassFootprint] = {}
    for name, members in _class_rows(trace).items():
        own, shared = members[private[members]], members[~private[members]]
        copies: dict[str | None, int] = {}
        for segment in shared.tolist():
            tokens = int(written[segment])
            copies[keys[segment]] = max(copies.get(keys[segment], 0), tokens)
        found[name] = ClassFootprint(
            tokens_per_session=_ratio(math.fsum(token_s[own]), session_s),
            blocks_per_session=_ratio(math.fsum(block_s[own]), session_s),
            shared_tokens=sum(copies.values()),
            shared_blocks=sum(-(-tokens // block_tokens) for tokens in copies.values()),
        )
    return found


def _held(
    trace: Trace,
    clock: ReferenceSchedule,
    latency: LatencyPreset,
    rows: TraceRows,
    block_tokens: int,
) -> tuple[Floats, Floats]:
    """Token-seconds and block-seconds that each segment holds until it dies."""
    written = np.flatnonzero(trace.spans["written"].to_numpy())
    output = trace.requests["output_tokens"].to_numpy().astype(np.int64)
    span_request = rows.request_of_span[written]
    span_segment = rows.segment_of_span[written]
    # Tokens fixed at a turn's end are there before the request that first names them starts.
    span_s = np.minimum(clock.start_s[span_request], clock.birth_s[span_segment])
    first = span_request == _first_writer(rows, written, trace.segments.num_rows)[span_segment]
    span_s = np.where(first, span_s, clock.start_s[span_request])
    requests = np.arange(len(output))
    segment = np.concatenate([span_segment, rows.segment_of_request])
    request = np.concatenate([span_request, requests])
    tokens = np.concatenate([trace.spans["tokens"].to_numpy().astype(np.int64)[written], output])
    begin_s = np.concatenate([span_s, clock.end_s - output * latency.tpot_ref_s])
    end_s = np.concatenate([span_s, clock.end_s])
    is_output = np.concatenate([np.zeros(len(written), bool), np.ones(len(output), bool)])

    order = np.lexsort((is_output, request, segment))
    segment, tokens = segment[order], tokens[order]
    begin_s = begin_s[order]
    end_s = end_s[order]
    total = np.cumsum(tokens)
    starts = np.flatnonzero(np.diff(segment, prepend=-1))
    before_segment = np.repeat((total - tokens)[starts], np.diff(starts, append=len(segment)))
    after = total - before_segment
    before = after - tokens
    # What stands after one write stays so until the next write into the segment, or its death.
    next_s = clock.death_s[segment].copy()
    follows = np.flatnonzero(segment[1:] == segment[:-1])
    next_s[follows] = begin_s[follows + 1]

    def integral(level: Floats, grown: Floats) -> Floats:
        growing_s = end_s - begin_s
        held = grown / np.maximum(tokens, 1) * growing_s + level * (next_s - end_s)
        sums = np.bincount(segment, weights=held, minlength=trace.segments.num_rows)
        return sums.astype(np.float64)

    token_s = integral(after.astype(np.float64), (before + after) / 2.0 * tokens)
    blocks: Floats = np.ceil(after / block_tokens)
    grown = _block_integral(after, block_tokens) - _block_integral(before, block_tokens)
    return token_s, integral(blocks, grown)


def _first_writer(rows: TraceRows, written: Ints, segments: int) -> Ints:
    """Row of the request whose input first writes into each segment."""
    writer = np.full(segments, np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(writer, rows.segment_of_span[written], rows.request_of_span[written])
    return writer


def _block_integral(tokens: Ints, block_tokens: int) -> Floats:
    """Integral of ceil(x / block) for x from 0 to `tokens`."""
    whole = tokens // block_tokens
    rest = tokens - whole * block_tokens
    area: Floats = (block_tokens * whole * (whole + 1) // 2 + rest * (whole + 1)).astype(np.float64)
    return area


def _class_rows(trace: Trace) -> dict[str, Ints]:
    """Segment rows of each class that occurs, in the order of the classes."""
    words: NDArray[np.object_] = trace.segments["class"].to_numpy()
    rows = {str(name): np.flatnonzero(words == str(name)) for name in SegmentClass}
    return {name: members for name, members in rows.items() if len(members)}


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0

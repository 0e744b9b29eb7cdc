"""When every request of a trace starts, on one clock for the whole export.

Inside a session times are those of the reference clock (``docs/characterisation.md``); a load says
when sessions start. Where a trace has recorded starts and the load is ``recorded``, they are kept.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lachesis.characterise.reference_clock import join_rows, schedule
from lachesis.errors import InputError
from lachesis.presets import LatencyPreset
from lachesis.simulation import Load
from lachesis.traces.trace import Trace

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RequestTimes:
    """Seconds from the first start of the export, a row a request.

    Attributes:
        start_s: when the request starts.
        wait_s: from the end of the last request that it waits for to its start; 0 without any.
        how: where the times come from, for people.
    """

    start_s: Floats
    wait_s: Floats
    how: str


def request_times(
    trace: Trace, load: Load | None, latency: LatencyPreset, seed: int
) -> RequestTimes:
    """Time every request.

    Args:
        trace: what is exported.
        load: how sessions start, each once and in the order of the trace; None: as recorded where
            every session has a start, else all at once.
        latency: the reference clock's costs and the distributions of open delays.
        seed: of every draw.

    Raises:
        InputError: a recorded load on a trace without starts, or a load that is a search.
    """
    rows = join_rows(trace)
    clock = schedule(trace, latency, seed)
    recorded_s = _recorded(trace)
    first_s = recorded_s[rows.first_request]
    if load is None:
        load = Load("closed", len(trace)) if np.isnan(first_s).any() else Load("recorded")
    length_s = np.maximum.reduceat(clock.end_s, rows.first_request)
    if load.kind == "recorded":
        if np.isnan(first_s).any():
            raise InputError("has sessions without start_s, which a recorded load needs",
                             path=trace.source)  # fmt: skip
        starts_s = _cut(first_s - first_s.min(), load.longest_gap_s)
        how = "as recorded"
        if not np.isnan(recorded_s).any() and np.isinf(load.longest_gap_s):
            start_s = recorded_s - recorded_s.min()
            return RequestTimes(start_s, _waits(trace, clock.start_s, clock.end_s), how)
        how = "sessions as recorded, inside them by the reference clock"
    elif load.kind == "poisson":
        gaps_s = np.random.default_rng(seed).exponential(1.0 / load.sessions_per_s, len(trace))
        starts_s = np.cumsum(gaps_s)
        how = f"Poisson, {load.sessions_per_s:g} sessions/s; inside them by the reference clock"
    elif load.kind == "closed":
        starts_s = _closed(length_s, load.sessions)
        how = f"{min(load.sessions, len(trace))} sessions at once, by the reference clock"
    else:
        raise InputError("must be N, poisson:RATE or recorded: an export searches for no load",
                         field="--load", value=load.kind)  # fmt: skip
    start_s = starts_s[rows.session_of_request] + clock.start_s
    return RequestTimes(start_s, _waits(trace, clock.start_s, clock.end_s), how)


def _recorded(trace: Trace) -> Floats:
    column = trace.requests["start_s"].combine_chunks()
    found: Floats = column.to_numpy(zero_copy_only=False).astype(np.float64)
    return found


def _cut(starts_s: Floats, longest_gap_s: float) -> Floats:
    """Starts moved together where two in a row lie too far apart."""
    order = np.argsort(starts_s, kind="stable")
    moved_s = np.empty_like(starts_s)
    moved_s[order] = np.cumsum(np.minimum(np.diff(starts_s[order], prepend=0.0), longest_gap_s))
    return moved_s


def _closed(length_s: Floats, sessions: int) -> Floats:
    """Starts where the next session follows as soon as one ends."""
    ends_s: list[float] = []
    starts_s = np.zeros(len(length_s))
    for session, length in enumerate(length_s.tolist()):
        if len(ends_s) >= sessions:
            starts_s[session] = heapq.heappop(ends_s)
        heapq.heappush(ends_s, starts_s[session] + length)
    return starts_s


def _waits(trace: Trace, start_s: Floats, end_s: Floats) -> Floats:
    """What the reference clock waits once all that a request depends on is over."""
    rows = join_rows(trace)
    after = trace.requests["after"].combine_chunks()
    bounds = after.offsets.to_numpy()
    edges = bounds[1:] - bounds[:-1]
    owner = np.repeat(np.arange(len(edges)), edges)
    base = rows.first_request[rows.session_of_request[owner]]
    earlier = after.values.field("request").to_numpy()[bounds[0] : bounds[-1]]
    latest_s = np.full(len(edges), -np.inf)
    np.maximum.at(latest_s, owner, end_s[base + earlier])
    waits: Floats = np.where(edges > 0, np.maximum(start_s - latest_s, 0.0), 0.0)
    return waits

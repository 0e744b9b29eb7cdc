"""The sessions of a trace, one line each: how large, and how much of it was thrown away early."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lachesis.characterise.reference_clock import join_rows, written_tokens
from lachesis.traces.schema import Boundary
from lachesis.traces.trace import Trace

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SessionSummary:
    """One session.

    Attributes:
        written_tokens: materialised, a shared prompt included.
        peak_tokens: the largest context of any of its agents, output included.
        dropped_tokens: of the written tokens, those that ended before the session did, by
            boundary; the largest first.
    """

    session: str
    workload: str
    turns: int
    agents: int
    requests: int
    written_tokens: int
    peak_tokens: int
    dropped_tokens: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """As ``trace show --json`` lists it."""
        return asdict(self)


def session_list(trace: Trace) -> list[SessionSummary]:
    """All sessions in the trace's order.

    Example:
        >>> from lachesis.traces import open_trace
        >>> first = session_list(open_trace("tau3-airline"))[0]
        >>> list(first.dropped_tokens)
        ['turn_end']
    """
    rows = join_rows(trace)
    count = len(trace)
    tokens = written_tokens(trace)
    closed_by = trace.segments["closed_by"].to_numpy()
    early: dict[str, list[int]] = {}
    for why in Boundary:
        if why is not Boundary.SESSION_END:
            of_why = np.where(closed_by == str(why), tokens, 0)
            early[str(why)] = _sums(rows.session_of_segment, of_why, count)
    context = trace.requests["output_tokens"].to_numpy().astype(np.int64)
    np.add.at(context, rows.request_of_span, trace.spans["tokens"].to_numpy())
    peak = np.zeros(count, dtype=np.int64)
    np.maximum.at(peak, rows.session_of_request, context)
    names: list[str] = trace.sessions["session"].to_pylist()
    workloads: list[str] = trace.sessions["workload"].to_pylist()
    turns = _distinct(rows.session_of_request, trace.requests["turn"].to_numpy(), count)
    agents = _distinct(rows.session_of_request, trace.requests["agent"].to_numpy(), count)
    requests = np.bincount(rows.session_of_request, minlength=count).tolist()
    written = _sums(rows.session_of_segment, tokens, count)
    return [
        SessionSummary(
            session=name,
            workload=workloads[index],
            turns=turns[index],
            agents=agents[index],
            requests=requests[index],
            written_tokens=written[index],
            peak_tokens=int(peak[index]),
            dropped_tokens=_largest_first(early, index),
        )
        for index, name in enumerate(names)
    ]


def _largest_first(early: dict[str, list[int]], session: int) -> dict[str, int]:
    dropped = {why: tokens[session] for why, tokens in early.items() if tokens[session]}
    return dict(sorted(dropped.items(), key=lambda item: (-item[1], item[0])))


def _sums(session: Ints, values: Ints, count: int) -> list[int]:
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, session, values)
    found: list[int] = sums.tolist()
    return found


def _distinct(session: Ints, ordinal: Ints, count: int) -> list[int]:
    pairs = np.unique(np.stack((session, ordinal.astype(np.int64)), axis=1), axis=0)
    found: list[int] = np.bincount(pairs[:, 0], minlength=count).tolist()
    return found

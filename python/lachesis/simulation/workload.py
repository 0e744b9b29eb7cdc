"""From a trace's Arrow tables to the engine's columns, vectorised."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lachesis import _engine
from lachesis.errors import InputError
from lachesis.simulation.faults import engine_errors
from lachesis.traces.schema import Boundary, EdgeKind, SegmentClass, ToolClass
from lachesis.traces.trace import Trace

# The core numbers these sets in this order.
CLASS_NUMBERS = {str(name): number for number, name in enumerate(SegmentClass)}
_EDGE_NUMBERS = {str(name): number for number, name in enumerate(EdgeKind)}
_BOUNDARY_NUMBERS = {str(name): number for number, name in enumerate(Boundary)}
TOOL_CLASSES = tuple(str(name) for name in ToolClass)
_TOOL_NUMBERS = {name: number for number, name in enumerate(TOOL_CLASSES)}

Ints = NDArray[np.int64]


def to_workload(
    trace: Trace, *, recorded: bool = False, longest_gap_s: float = math.inf
) -> _engine.Workload:
    """The engine's workload of a trace.

    Args:
        trace: validated.
        recorded: whether sessions are to arrive as recorded. Other loads need no recorded starts,
            so that none can be missing or too far apart for them.
        longest_gap_s: the most that two recorded starts in a row may lie apart.

    Raises:
        InputError: the trace breaks a rule that only the replay needs; names session and row.

    Example:
        >>> from lachesis.traces import open_trace
        >>> to_workload(open_trace("tau3-airline")).sessions
        58
    """
    names = trace.sessions["session"].to_pylist()
    with engine_errors(trace.source, names):
        return _engine.Workload(
            **workload_columns(trace, recorded=recorded, longest_gap_s=longest_gap_s)
        )


def workload_columns(
    trace: Trace, *, recorded: bool = False, longest_gap_s: float = math.inf
) -> dict[str, NDArray[Any]]:
    """The columns that `_engine.Workload` takes.

    Rows of every table are put in the order of ``sessions``; several spans of a request in one
    segment are left to the engine to merge.
    """
    sessions = trace.sessions["session"].combine_chunks()
    requests = _sorted(trace.requests, sessions, ["request"])
    segments = _sorted(trace.segments, sessions, ["segment"])
    spans = _sorted(trace.spans, sessions, ["request", "position"])
    request_session = _session_numbers(requests, sessions)
    count = len(sessions)

    request_offsets = _offsets(request_session, count)
    starts_s = np.full(count, np.nan)
    if recorded:
        first_starts_s = _floats(requests["start_s"])[request_offsets[:-1]]
        starts_s = _recorded_starts(trace, first_starts_s, longest_gap_s)
    after = requests["after"].combine_chunks()
    edges = after.flatten()
    tools = requests["tools"].combine_chunks()
    span_request = request_offsets[_session_numbers(spans, sessions)] + spans["request"].to_numpy()
    written = np.where(spans["written"].to_numpy(), spans["tokens"].to_numpy(), 0)
    return {
        "session_request_offsets": request_offsets,
        "session_segment_offsets": _offsets(_session_numbers(segments, sessions), count),
        "session_start_s": starts_s,
        "edge_offsets": _list_offsets(after),
        "edge_request": edges.field("request").to_numpy(zero_copy_only=False).astype(np.int32),
        "edge_kind": _numbers(edges.field("kind"), _EDGE_NUMBERS),
        "edge_delay_s": _floats(edges.field("delay_s")),
        "use_offsets": _offsets(span_request, len(requests)),
        "use_segment": spans["segment"].to_numpy().astype(np.int32),
        "use_written": written.astype(np.int64),
        "output_segment": requests["segment"].to_numpy().astype(np.int32),
        "output_tokens": requests["output_tokens"].to_numpy().astype(np.int64),
        "tool_offsets": _list_offsets(tools),
        "tool_class": _numbers(tools.flatten(), _TOOL_NUMBERS),
        "segment_class": _numbers(segments["class"], CLASS_NUMBERS),
        "segment_prefix": _prompt_numbers(segments["prefix_key"]),
        "segment_closed_by": _numbers(segments["closed_by"], _BOUNDARY_NUMBERS),
        "segment_closed_after": segments["closed_after"].to_numpy().astype(np.int32),
    }


def in_workload_order(trace: Trace, of_segments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values by row of ``trace.segments`` in the order in which the engine numbers segments."""
    sessions = trace.sessions["session"].combine_chunks()
    keys = (trace.segments["segment"].to_numpy(), _session_numbers(trace.segments, sessions))
    return of_segments[np.lexsort(keys)]


def _recorded_starts(
    trace: Trace, starts_s: NDArray[np.float64], longest_gap_s: float
) -> NDArray[np.float64]:
    """Seconds from the earliest start of a session to each; clocks count from anywhere.

    Starts that lie further apart than `longest_gap_s` are moved together.
    """
    missing = np.isnan(starts_s)
    if missing.any():
        raise InputError(
            "has no start_s, which a recorded load needs of every session",
            path=trace.source,
            row=f"session {trace.sessions['session'][int(np.argmax(missing))]}, request 0",
        )
    order = np.argsort(starts_s, kind="stable")
    gaps_s = np.minimum(np.diff(starts_s[order], prepend=starts_s[order[0]]), longest_gap_s)
    moved_s = np.empty_like(starts_s)
    moved_s[order] = np.cumsum(gaps_s)
    return moved_s


def _session_numbers(table: pa.Table, sessions: pa.Array) -> Ints:
    found = pc.index_in(table["session"], value_set=sessions).to_numpy()
    return np.asarray(found, dtype=np.int64)


def _sorted(table: pa.Table, sessions: pa.Array, keys: list[str]) -> pa.Table:
    """The table in the order of the sessions, then of `keys`; as it is where it already is."""
    columns = [_session_numbers(table, sessions), *(table[key].to_numpy() for key in keys)]
    order = np.lexsort(columns[::-1])
    if np.array_equal(order, np.arange(len(order))):
        return table.combine_chunks()
    return table.take(pa.array(order)).combine_chunks()


def _offsets(owner: Ints, owners: int) -> Ints:
    """Where each owner's rows begin, in a column whose rows are grouped by owner."""
    counts = np.bincount(owner, minlength=owners)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _list_offsets(column: pa.ListArray) -> Ints:
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _floats(column: pa.Array | pa.ChunkedArray) -> NDArray[np.float64]:
    """A float column with NaN for null."""
    filled = pc.fill_null(column.cast(pa.float64()), float("nan"))
    if isinstance(filled, pa.ChunkedArray):
        filled = filled.combine_chunks()
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.float64)


def _numbers(column: pa.Array | pa.ChunkedArray, numbers: dict[str, int]) -> NDArray[np.uint8]:
    """A column of words from a closed set as their numbers."""
    found = pc.index_in(column, value_set=pa.array(list(numbers), pa.string()))
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    return np.asarray(found.to_numpy(zero_copy_only=False)).astype(np.uint8)


def _prompt_numbers(keys: pa.ChunkedArray) -> NDArray[np.int32]:
    """Shared prompts numbered by their sorted keys: the order of sessions must not matter."""
    distinct = pa.array(sorted(pc.unique(keys).drop_null().to_pylist()), pa.string())
    found = pc.fill_null(pc.index_in(keys, value_set=distinct, skip_nulls=True), -1)
    return np.asarray(found.combine_chunks().to_numpy(zero_copy_only=False)).astype(np.int32)

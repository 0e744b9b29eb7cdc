"""Checks a trace against every rule of the canonical form, once, at reading.

The first rule that is broken raises `InputError` with file, table, ids, field, value and rule.
Checks run over whole columns; only what they cannot settle is looked at row by row.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lachesis.errors import InputError
from lachesis.traces.schema import CLOSED_SETS, TABLES, TOKENS_MAX, EdgeKind
from lachesis.traces.trace import Trace
from lachesis.traces.trace_view import (
    Bools,
    Floats,
    TraceView,
    bools,
    floats,
    ints,
    pair_keys,
    run_starts,
)
from lachesis.traces.validate_order import check_naming_order
from lachesis.traces.validate_segments import check_segments
from lachesis.traces.validate_spawns import check_spawns

_TOKEN_COLUMNS = {
    "requests": ("output_tokens", "reasoning_tokens", "observations", "reported_cached_tokens"),
    "spans": ("tokens",),
    "spawns": ("instruction_tokens", "context_tokens"),
}


def validate(trace: Trace, path: str | Path | None = None) -> None:
    """Raise `InputError` for the first broken rule; `path` names the file in the message."""
    view = TraceView(trace, str(path if path is not None else trace.source))
    _check_nulls(view)
    _check_words(view)
    _check_keys(view)
    _check_requests(view)
    _check_after(view)
    check_segments(view)
    check_naming_order(view)
    check_spawns(view)


def _check_nulls(view: TraceView) -> None:
    for name, schema in TABLES.items():
        table = view.trace.tables[name]
        for field in schema:
            if not field.nullable and table[field.name].null_count:
                row = int(np.argmax(bools(table[field.name].is_null())))
                raise view.fail(name, row, field.name, "must not be null")


def _check_words(view: TraceView) -> None:
    for (name, column), words in CLOSED_SETS.items():
        values = view.trace.tables[name][column]
        flat = values
        if pa.types.is_list(values.type):
            flat = pc.list_flatten(values)
        known = bools(pc.is_in(flat, value_set=pa.array(sorted(words), pa.string())))
        if not known.all():
            position = int(np.argmin(known))
            row = position
            if flat is not values:
                row = int(pc.list_parent_indices(values)[position].as_py())
            raise view.fail(
                name, row, column, f"must be one of {', '.join(sorted(words))}",
                flat[position].as_py(),
            )  # fmt: skip


def _check_keys(view: TraceView) -> None:
    """Ids are unique, exist, and rows stand in order."""
    names = view.trace.sessions["session"].to_pylist()
    if not names:
        raise InputError("holds no session", path=view.path)
    if len(set(names)) < len(names):
        seen: set[str] = set()
        for row, name in enumerate(names):
            if name in seen:
                raise view.fail("sessions", row, "session", "must be unique")
            seen.add(name)
    for name in TABLES:
        codes = view.session[name]
        view.require(codes >= 0, name, "session", "no such session in the sessions table")
        ordered = np.diff(codes, prepend=0) >= 0
        view.require(ordered, name, "session", "rows must stand together, in the order of sessions")
    codes = view.session["requests"]
    empty = np.isin(np.arange(len(names)), codes, invert=True)
    view.require(~empty, "sessions", "session", "has no request")

    view.require(
        view.column("requests", "request") == np.arange(len(codes)) - run_starts(codes),
        "requests", "request", "numbers must be 0, 1, 2, … without a gap in each session",
    )  # fmt: skip
    segment_keys = pair_keys(view.session["segments"], view.column("segments", "segment"))
    view.require(view.column("segments", "segment") >= 0, "segments", "segment", "must be ≥ 0")
    if len(segment_keys):
        ascending = np.diff(segment_keys, prepend=segment_keys[0] - 1) > 0
        view.require(ascending, "segments", "segment", "must be unique and ascending")

    span_request = view.request_of_span
    view.require(span_request >= 0, "spans", "request", "no such request")
    view.require(
        np.diff(span_request, prepend=0) >= 0, "spans", "request",
        "spans must stand in the order of requests",
    )  # fmt: skip
    first = run_starts(span_request)
    view.require(
        view.column("spans", "position") == np.arange(len(span_request)) - first,
        "spans", "position", "must be 0, 1, 2, … without a gap in each request",
    )  # fmt: skip
    view.require(view.segment_of_span >= 0, "spans", "segment", "no such segment")
    view.require(view.segment_of_output >= 0, "requests", "segment", "no such segment")


def _check_requests(view: TraceView) -> None:
    for table, columns in _TOKEN_COLUMNS.items():
        for name in columns:
            values = view.trace.tables[table][name]
            present = ints(pc.fill_null(values, 0))
            view.require(present >= 0, table, name, "must not be negative")
            view.require(present <= TOKENS_MAX, table, name, f"must be at most {TOKENS_MAX}")
    output = view.column("requests", "output_tokens")
    view.require(
        (output >= 1) | ~view.is_any("requests", "status", "ok"),
        "requests", "output_tokens", "must be at least 1 where the request is ok",
    )  # fmt: skip
    view.require(
        view.column("requests", "reasoning_tokens") <= output,
        "requests", "reasoning_tokens", "must be at most output_tokens",
    )  # fmt: skip
    view.require(view.column("spans", "tokens") >= 1, "spans", "tokens", "must be at least 1")
    view.require(view.column("requests", "turn") >= 0, "requests", "turn", "must be ≥ 0")
    view.require(view.column("requests", "agent") >= 0, "requests", "agent", "must be ≥ 0")
    times: dict[str, Floats] = {}
    known: dict[str, Bools] = {}
    for name in ("start_s", "end_s"):
        column = view.trace.requests[name]
        given = ~bools(column.is_null())
        times[name] = floats(column)
        view.require(np.isfinite(times[name]) | ~given, "requests", name, "must be a finite time")
        known[name] = given
    both = known["start_s"] & known["end_s"]
    view.require(
        ~both | (times["end_s"] >= times["start_s"]),
        "requests", "end_s", "must not be before start_s",
    )  # fmt: skip


def _check_after(view: TraceView) -> None:
    column = view.trace.requests["after"].combine_chunks()
    edges = pc.list_flatten(column)
    view.after_of = ints(pc.list_parent_indices(column))
    request = edges.field("request")
    delay = edges.field("delay_s")

    def fail(edge: int, field: str, rule: str) -> InputError:
        value = edges.field(field)[edge].as_py()
        return view.fail("requests", int(view.after_of[edge]), f"after.{field}", rule, value)

    if request.null_count or edges.field("kind").null_count or edges.null_count:
        raise InputError("edges must name request and kind", path=view.path, field="after")
    earlier = ints(request)
    own = view.column("requests", "request")[view.after_of]
    holds = (earlier >= 0) & (earlier < own)
    if not holds.all():
        raise fail(int(np.argmin(holds)), "request", "must be an earlier request of the session")
    known = bools(pc.is_in(edges.field("kind"), value_set=pa.array(sorted(EdgeKind), pa.string())))
    if not known.all():
        raise fail(int(np.argmin(known)), "kind", f"must be one of {', '.join(sorted(EdgeKind))}")
    values = floats(delay)
    holds = np.isfinite(values) & (values >= 0)
    if not holds.all():
        raise fail(int(np.argmin(holds)), "delay_s", "must be finite and not negative")
    count = np.bincount(view.after_of, minlength=len(view.session["requests"]))
    first = view.column("requests", "request") == 0
    view.require(first | (count > 0), "requests", "after", "is empty for the first request only")
    view.after_request = view.after_of - own + earlier

"""Mooncake request traces, and the agentic ones that carry the graph of a session's requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from lachesis.results.export.requests import ExportedRequest


def agentic_row(request: ExportedRequest) -> dict[str, Any]:
    """A row of agentic Mooncake (version 1).

    A request without `wait_for` starts at `timestamp`; any other once all of those are over and
    `tool_wait_ms` more have passed.
    """
    row: dict[str, Any] = {
        "session_id": request.agent,
        "request_id": request.name,
        "timestamp": _milliseconds(request.start_s),
        "wait_for": request.wait_for,
        "branches": request.branches,
        "prefix_reset": not request.is_first and request.matched_tokens == 0,
    }
    if request.wait_for:
        row["tool_wait_ms"] = _milliseconds(request.wait_s)
    return row | _lengths(request)


def mooncake_row(request: ExportedRequest) -> dict[str, Any]:
    """A row of Mooncake's request trace."""
    return {"timestamp": _milliseconds(request.start_s)} | _lengths(request)


def _lengths(request: ExportedRequest) -> dict[str, Any]:
    return {
        "input_length": request.input_tokens,
        "output_length": request.output_tokens,
        "hash_ids": request.hash_ids,
    }


def json_lines(rows: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    """Rows as JSON, one a line."""
    encode = msgspec.json.Encoder().encode
    return (encode(row) + b"\n" for row in rows)


def _milliseconds(seconds: float) -> float | int:
    """Milliseconds to a nanosecond, whole ones as such."""
    rounded = round(seconds * 1e3, 6)
    return int(rounded) if rounded.is_integer() else rounded

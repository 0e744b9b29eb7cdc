"""Reader of BurstGPT: CSV, one request a row.

`Timestamp` (seconds on the trace's own clock), `Model`, `Request tokens`, `Response tokens`, and in
newer releases `Session ID` and `Elapsed time` (seconds until the answer was there). Rows of one
session id are one conversation, in order of time, and every request in it opens a turn; whether an
input holds what came before is seen from its length alone. Without the id each request is a session
of its own, counted.

**Left out**, counted: failed requests (`Response tokens` 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.readers.request_rows import (
    LoneColumns,
    LoneRequest,
    RequestRow,
    has_columns,
    push_lone,
    request_rows,
)

_DESCRIPTION: Final = __doc__ or ""
_NEEDED: Final = ("Timestamp", "Request tokens", "Response tokens")
_KNOWN: Final = (*_NEEDED, "Model", "Session ID", "Elapsed time", "Total tokens", "Log Type")
_LONE: Final = LoneColumns(
    "Request tokens", "Response tokens", "Timestamp", "Elapsed time", "Model"
)


class BurstGptReader:
    """BurstGPT traces."""

    name = "burstgpt"
    joins_files = False
    description = _DESCRIPTION

    def recognises(self, file: SourceFile) -> bool:
        """A table with the needed columns."""
        return has_columns(file, *_NEEDED)

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push every conversation, or every request where conversations are not known."""
        for file in files:
            if has_columns(file, "Session ID"):
                _push_conversations(file, list(request_rows(file, _KNOWN, builder)), builder)
            else:
                push_lone(file, _KNOWN, _LONE, builder, harness="burstgpt")


READER = BurstGptReader()


def _push_conversations(file: SourceFile, rows: list[RequestRow], builder: TraceBuilder) -> None:
    conversations: dict[str, list[tuple[RequestRow, LoneRequest]]] = {}
    for row in rows:
        request = _LONE.request(row)
        name = row.text("Session ID")
        if name is None:
            raise row.broken("Session ID", "is needed in every row", "missing")
        if not request.output_tokens:
            builder.exclude("request without output")
            continue
        conversations.setdefault(name, []).append((row, request))
    if not conversations:
        builder.skip(file.name, "holds no request with output")
    for name, pairs in conversations.items():
        if all(request.start_s is not None for _, request in pairs):
            pairs.sort(key=lambda pair: pair[1].start_s or 0.0)
        session = builder.session(
            name,
            workload=Path(file.name).name.split(".")[0],
            harness="burstgpt",
            source=file.name,
            stripping="off",
        )
        for row, request in pairs:
            session.request(
                opens_turn=True,
                input_tokens=request.input_tokens,
                output_tokens=request.output_tokens,
                model=request.model,
                start_s=request.start_s,
                end_s=request.end_s,
                tools=[],
                row=row.number,
            )
        builder.finish(session)

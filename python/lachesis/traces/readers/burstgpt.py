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
from typing import Final, NamedTuple

import msgspec

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.readers.request_rows import (
    LoneColumns,
    LoneRequest,
    has_columns,
    push_lone,
    request_rows,
)
from lachesis.traces.record_groups import NameNumbers, RecordGroups

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
                _push_conversations(file, builder, options)
            else:
                push_lone(file, _KNOWN, _LONE, builder, harness="burstgpt")


READER = BurstGptReader()


class _Request(NamedTuple):
    """A request of a conversation, and the line where it stands."""

    conversation: str
    number: int
    request: LoneRequest


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_Request)


def _push_conversations(file: SourceFile, builder: TraceBuilder, options: ReadOptions) -> None:
    numbers = NameNumbers()
    conversations = RecordGroups(options.scratch)
    for row in request_rows(file, _KNOWN, builder):
        request = _LONE.request(row)
        name = row.text("Session ID")
        if name is None:
            raise row.broken("Session ID", "is needed in every row", "missing")
        if not request.output_tokens:
            builder.exclude("request without output")
            continue
        record = _ENCODER.encode(_Request(name, row.number, request))
        conversations.append(numbers.of(name), record)
    if not len(numbers):
        builder.skip(file.name, "holds no request with output")
    for _, records in conversations:
        requests = [_DECODER.decode(record) for record in records]
        if all(each.request.start_s is not None for each in requests):
            requests.sort(key=lambda each: each.request.start_s or 0.0)
        session = builder.session(
            requests[0].conversation,
            workload=Path(file.name).name.split(".")[0],
            harness="burstgpt",
            source=file.name,
            stripping="off",
        )
        for _, number, request in requests:
            session.request(
                opens_turn=True,
                input_tokens=request.input_tokens,
                output_tokens=request.output_tokens,
                model=request.model,
                start_s=request.start_s,
                end_s=request.end_s,
                tools=[],
                row=number,
            )
        builder.finish(session)

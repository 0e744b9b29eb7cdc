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
from functools import partial
from typing import Final

import numpy as np

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.readers.request_rows import (
    LoneColumns,
    check_columns,
    has_columns,
    push_lone,
    session_columns,
)
from lachesis.traces.readers.session_rows import SessionBlock, SessionRows, known_seconds

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


def _push_conversations(file: SourceFile, builder: TraceBuilder, options: ReadOptions) -> None:
    check_columns(file, _KNOWN, builder)
    sessions = SessionRows(options.scratch)
    for columns in session_columns(file, _LONE, "Session ID"):
        speaks = columns.output_tokens > 0
        if not speaks.all():
            builder.exclude("request without output", int((~speaks).sum()))
        sessions.append(columns.where(speaks))
    if not len(sessions):
        builder.skip(file.name, "holds no request with output")
    for block in sessions:
        requests = block.counted(opens_turn=np.ones(len(block.requests), np.bool_))
        builder.add_counted(
            requests,
            requests.grow(),
            block.names,
            partial(_push_one, file, block, builder),
            workload=file.workload,
            harness="burstgpt",
            source=file.name,
        )


def _push_one(file: SourceFile, block: SessionBlock, builder: TraceBuilder, place: int) -> None:
    session = builder.session(
        block.names[place],
        workload=file.workload,
        harness="burstgpt",
        source=file.name,
        stripping="off",
    )
    for each, model in zip(*block.of(place), strict=True):
        session.request(
            opens_turn=True,
            input_tokens=int(each["input_tokens"]),
            output_tokens=int(each["output_tokens"]),
            model=model,
            start_s=known_seconds(each["start_s"]),
            end_s=known_seconds(each["end_s"]),
            tools=[],
            row=int(each["row"]),
        )
    builder.finish(session)

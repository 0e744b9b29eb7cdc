"""Reader of Mooncake request traces: JSONL, one request a line, with hashes of its blocks.

`timestamp` (or `created_time`) in milliseconds, `input_length` (with `hash_ids`, it may be left
out: whole blocks), `output_length`, `hash_ids`. The size of a block is what makes the counts fit:
512 tokens in the published traces. Dynamo's variant adds `session_id`, and `delay` in milliseconds
after the session's last request in place of a timestamp. (Its delta variant, whose rows hold only
what is new, looks the same and must not be read with this.)

**Sessions.** Where rows have no `session_id`, a request continues the session whose last input's
block chain is the longest proper start of its own (see `session_chains`); without hashes either,
each request is a session of its own. Both are counted. What first inputs share is taken for a
prompt.

**Context** is matched by block hashes; without them, by counts. **Turns**: none in the trace, so a
session is one turn, counted. Tools are not in it either, and no request has an end, so every
latency but a stated `delay` is drawn. **Times** are seconds on the trace's own clock.

**Left out**, counted: requests without output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from lachesis.errors import InputError
from lachesis.traces.builder import TraceBuilder
from lachesis.traces.column_groups import ColumnGroups, Records
from lachesis.traces.grown_sessions import CountedRequests
from lachesis.traces.readers.context_pieces import ContextPieces
from lachesis.traces.readers.json_head import first_object
from lachesis.traces.readers.json_rows import decoded_blocks
from lachesis.traces.readers.mooncake_rows import MooncakeColumns, MooncakeRow, block_size
from lachesis.traces.readers.mooncake_sessions import MooncakeSessions
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.readers.session_rows import known_seconds
from lachesis.traces.schema import TOKENS_MAX, UsageSource

_DESCRIPTION: Final = __doc__ or ""
_DECODER: Final = msgspec.json.Decoder(MooncakeRow)
#: A request while its session is not complete; seconds are NaN where there are none.
_REQUEST: Final = np.dtype(
    [
        ("session", np.int64),
        ("row", np.int64),
        ("input_tokens", np.int64),
        ("output_tokens", np.int64),
        ("agreed_tokens", np.int64),
        ("start_s", np.float64),
        ("wait_s", np.float64),
        ("is_whole", np.bool_),
    ]
)
_ONE_TURN: Final = "turn", "none in the trace: a session is one turn"
_SHARED: Final = "prompt_tokens", "whole blocks that first inputs share"
_WHOLE: Final = "input_tokens", "whole blocks"


class MooncakeReader:
    """Mooncake request traces."""

    name = "mooncake"
    joins_files = False
    description = _DESCRIPTION

    def recognises(self, file: SourceFile) -> bool:
        """JSONL whose first row has an output's length and hashes, or a time, and no request id."""
        first = first_object(file)
        return (
            first is not None
            and "output_length" in first
            and ("hash_ids" in first or {"input_length", "timestamp"} <= first.keys())
            and "request_id" not in first
        )

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push every file; ids of blocks and sessions are local to it."""
        for file in files:
            sessions = MooncakeSessions(block_size(file, _DECODER), options.scratch)
            requests = _gather(file, sessions, builder, options)
            if not sessions.count:
                builder.skip(file.name, "holds no request with output")
            names = sessions.names()
            for block in requests:
                _Block(file, block, sessions, names).push(builder)


READER = MooncakeReader()


def _gather(
    file: SourceFile, sessions: MooncakeSessions, builder: TraceBuilder, options: ReadOptions
) -> ColumnGroups:
    requests = ColumnGroups(_REQUEST, options.scratch)
    dropped: list[str] = []
    for numbers, rows in decoded_blocks(file, _DECODER, dropped):
        columns = MooncakeColumns.of(file, numbers, rows, sessions.block_tokens)
        speaks = columns.output_tokens > 0
        if not speaks.all():
            builder.exclude("request without output", int((~speaks).sum()))
            columns = columns.where(speaks)
        for index in np.flatnonzero(columns.input_tokens > TOKENS_MAX)[:1].tolist():
            raise InputError(f"must be at most {TOKENS_MAX}", path=file.name,
                             row=int(columns.number[index]), field="input_tokens",
                             value=int(columns.input_tokens[index]))  # fmt: skip
        records = np.zeros(len(columns.number), _REQUEST)
        records["session"], records["agreed_tokens"] = sessions.place(columns)
        records["row"] = columns.number
        for name in ("input_tokens", "output_tokens", "start_s", "wait_s", "is_whole"):
            records[name] = getattr(columns, name)
        requests.append(records)
    for reason in dropped:
        builder.drop(reason)
    if sessions.recovered:
        builder.fill("session", "recovered from chains of block hashes", sessions.recovered)
    if sessions.alone:
        how = "none in the log: each request is one of its own"
        builder.fill("session", how, sessions.alone)
    return requests


class _Block:
    """Requests of some sessions, all that these have."""

    def __init__(
        self,
        file: SourceFile,
        requests: Records,
        sessions: MooncakeSessions,
        names: Iterator[tuple[int, str]],
    ) -> None:
        self.file = file
        self.workload = file.workload
        self.requests = requests
        self.starts = np.flatnonzero(np.diff(requests["session"], prepend=-1))
        numbers = requests["session"][self.starts]
        self.prompt_tokens, keys = sessions.prompts_of(numbers)
        self.keys = [f"{file.name} block {key}" for key in keys.tolist()]
        self.names = [f"request-{row}" for row in requests["row"][self.starts].tolist()]
        for place in np.flatnonzero(sessions.is_named(numbers)).tolist():
            number, self.names[place] = next(names)
            assert number == numbers[place], "Invariant: names are in the order of sessions"

    def push(self, builder: TraceBuilder) -> None:
        """Push them: by columns those whose contexts only grow."""
        requests, count = self.requests, len(self.requests)
        input_tokens = requests["input_tokens"]
        prompt_tokens = np.minimum(self.prompt_tokens, input_tokens[self.starts])
        counted = CountedRequests(
            lengths=np.diff(self.starts, append=count),
            input_tokens=input_tokens,
            output_tokens=requests["output_tokens"],
            reasoning_tokens=np.zeros(count, np.int64),
            agreed_tokens=requests["agreed_tokens"],
            start_s=requests["start_s"],
            end_s=np.full(count, np.nan),
            delay_s=requests["wait_s"],
            opens_turn=np.zeros(count, np.bool_),
            inferred=requests["is_whole"],
            cached_tokens=pa.nulls(count, pa.int64()),
            model=pa.nulls(count, pa.string()),
            prompt_tokens=prompt_tokens,
            prompt_key=pa.array(
                [
                    f"{key}/{tokens}"
                    for key, tokens in zip(self.keys, prompt_tokens.tolist(), strict=True)
                ],
                pa.string(),
            ),
        )
        grown = counted.grow()
        builder.add_counted(
            counted, grown, self.names, lambda place: self._push_one(place, builder),
            workload=self.workload, harness="mooncake", source=self.file.name,
        )  # fmt: skip
        columns = counted.where(grown)
        _fill(builder, _ONE_TURN, len(columns.lengths))
        _fill(builder, _SHARED, int((columns.prompts > 0).sum()))
        _fill(builder, _WHOLE, int(columns.inferred.sum()))

    def _push_one(self, place: int, builder: TraceBuilder) -> None:
        """Push a session whose context was cut back."""
        begin, end = next(
            pair for pair in pairwise([*self.starts[place : place + 2], len(self.requests)])
        )
        own = self.requests[begin:end]
        session = builder.session(
            self.names[place],
            workload=self.workload,
            harness="mooncake",
            source=self.file.name,
            stripping="off",
        )
        _fill(builder, _ONE_TURN, 1)
        prompt_tokens = int(self.prompt_tokens[place])
        _fill(builder, _SHARED, int(prompt_tokens > 0))
        _fill(builder, _WHOLE, int(own["is_whole"].sum()))
        pieces = ContextPieces()
        for each in own:
            pieces.add_agreed(
                int(each["input_tokens"]), int(each["output_tokens"]), int(each["agreed_tokens"])
            )
        for index, (each, context) in enumerate(zip(own, pieces.parts(prompt_tokens), strict=True)):
            session.request(
                parts=context.parts,
                output_parts=context.output_parts,
                input_tokens=int(each["input_tokens"]),
                prompt_tokens=None if index else prompt_tokens,
                prefix_key=self.keys[place] if prompt_tokens else None,
                output_tokens=int(each["output_tokens"]),
                start_s=known_seconds(each["start_s"]),
                delay_s=known_seconds(each["wait_s"]) if index else None,
                usage_source=UsageSource.INFERRED if each["is_whole"] else UsageSource.REPORTED,
                row=int(each["row"]),
            )
        builder.finish(session)


def _fill(builder: TraceBuilder, field_and_how: tuple[str, str], count: int) -> None:
    if count:
        builder.fill(*field_and_how, count)

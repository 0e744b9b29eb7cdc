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

import math
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Annotated, Final, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from lachesis.errors import InputError
from lachesis.traces.builder import TraceBuilder
from lachesis.traces.readers.block_chains import (
    agreed_tokens,
    block_tokens_of,
    blocks_of,
    whole_blocks,
)
from lachesis.traces.readers.block_numbers import BlockNumbers
from lachesis.traces.readers.context_pieces import ContextPieces
from lachesis.traces.readers.json_head import first_object
from lachesis.traces.readers.json_rows import decoded_lines
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.readers.session_chains import SessionChains, SharedPrompts
from lachesis.traces.schema import TOKENS_MAX, UsageSource

_DESCRIPTION: Final = __doc__ or ""
USUAL_BLOCK_TOKENS: Final = 512
_ROWS_FOR_BLOCK_SIZE: Final = 1000

Count = Annotated[int, msgspec.Meta(ge=0, le=TOKENS_MAX)]
Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=1e15)]


class MooncakeRow(msgspec.Struct):
    """One request. `timestamp` and `delay` in milliseconds."""

    output_length: Count | None = None
    output_tokens: Count | None = None
    input_length: Count | None = None
    input_tokens: Count | None = None
    hash_ids: list[int] | None = None
    timestamp: Milliseconds | None = None
    created_time: Milliseconds | None = None
    delay: Milliseconds | None = None
    delay_ms: Milliseconds | None = None
    session_id: str | int | None = None

    def output(self, file: SourceFile, row: int) -> int:
        """The output's tokens; raises `InputError` where there are none given."""
        return self._given(self.output_length, self.output_tokens, "output_length", file, row)

    def input(self, block_tokens: int, file: SourceFile, row: int) -> int:
        """The input's tokens: as given, else of whole blocks."""
        if self.input_length is None and self.input_tokens is None and self.hash_ids:
            return len(self.hash_ids) * block_tokens
        found = self._given(self.input_length, self.input_tokens, "input_length", file, row)
        if self.hash_ids and len(self.hash_ids) < found // block_tokens:
            raise InputError(
                f"must hold an id for each of the {found // block_tokens} blocks of {block_tokens} "
                "tokens that the input fills",
                path=file.name, row=row, field="hash_ids", value=f"{len(self.hash_ids)} ids",
            )  # fmt: skip
        return found

    def start_s(self) -> float | None:
        """When it came in, in seconds."""
        at = self.timestamp if self.timestamp is not None else self.created_time
        return None if at is None else at / 1000

    def wait_s(self) -> float | None:
        """The stated wait after what it depends on, in seconds."""
        wait = self.delay if self.delay is not None else self.delay_ms
        return None if wait is None else wait / 1000

    @staticmethod
    def _given(value: int | None, other: int | None, field: str, file: SourceFile, row: int) -> int:
        found = value if value is not None else other
        if found is None:
            raise InputError("is needed in every row", path=file.name, row=row, field=field,
                             value="missing")  # fmt: skip
        return found


AnyRow = TypeVar("AnyRow", bound=MooncakeRow)
_DECODER: Final = msgspec.json.Decoder(MooncakeRow)


class _Requests:
    """The requests of one file while they wait for their sessions to end, as columns."""

    def __init__(self) -> None:
        self.session = array("i")
        self.row = array("q")
        self.input_tokens = array("q")
        self.output_tokens = array("q")
        self.agreed_tokens = array("q")
        self.start_s = array("d")  # NaN: not told, here and in `wait_s`
        self.wait_s = array("d")
        self.is_whole = array("b")

    def add(
        self, session: int, number: int, row: MooncakeRow, tokens: tuple[int, int], agreed: int
    ) -> None:
        """Take a request of a session: its line, and how much of its input matched."""
        self.session.append(session)
        self.row.append(number)
        self.input_tokens.append(tokens[0])
        self.output_tokens.append(tokens[1])
        self.agreed_tokens.append(agreed)
        start_s, wait_s = row.start_s(), row.wait_s()
        self.start_s.append(math.nan if start_s is None else start_s)
        self.wait_s.append(math.nan if wait_s is None else wait_s)
        self.is_whole.append(row.input_length is None and row.input_tokens is None)

    def by_session(self) -> Iterator[NDArray[np.int64]]:
        """The requests of each session, in the order of the file."""
        sessions = np.frombuffer(self.session, np.int32)
        order = np.argsort(sessions, kind="stable")
        starts = np.flatnonzero(np.diff(sessions[order], prepend=-1))
        for start, end in pairwise([*starts.tolist(), len(order)]):
            yield order[start:end]


class _Sessions:
    """The sessions of one file: their names, and where each one's context is."""

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        numbers = BlockNumbers()
        self.finder = SessionChains(block_tokens, numbers)
        self.prompts = SharedPrompts(block_tokens, numbers)
        self.names: list[str | int] = []  # a number: named after the line of its first request
        self.recovered = 0
        self.alone = 0
        self._numbers: dict[str | int, int] = {}
        self._before: dict[int, tuple[int, int]] = {}
        self._held: dict[int, array[int]] = {}

    def place(self, number: int, row: MooncakeRow, tokens: tuple[int, int]) -> tuple[int, int]:
        """The session of a request, and how much of its input its context held."""
        blocks = blocks_of(row.hash_ids or ())
        key: str | int
        if row.session_id is not None:
            key = str(row.session_id)
        elif blocks:
            key = self.finder.session_of(*tokens, blocks)
        else:
            self.alone += 1
            self.prompts.add(blocks)
            self.names.append(number)
            return len(self.names) - 1, 0
        session = self._numbers.get(key)
        whole = whole_blocks(blocks, tokens[0], self.block_tokens)
        agreed = 0
        if session is None:
            session = self._numbers[key] = len(self.names)
            self.recovered += not isinstance(key, str)
            self.names.append(key if isinstance(key, str) else number)
            self.prompts.add(whole)
        elif isinstance(key, str):
            agreed = agreed_tokens(
                self._held[session], self._before[session], whole, tokens[0], self.block_tokens
            )
        else:
            # It was found because all that the session held is the start of this input.
            agreed = sum(self._before[session])
        if isinstance(key, str):
            self._held[session] = whole
        self._before[session] = tokens
        return session, agreed


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
            block_tokens = block_size(file, _DECODER)
            requests, sessions = _gather(file, block_tokens, builder)
            if not sessions.names:
                builder.skip(file.name, "holds no request with output")
            for session, own in enumerate(requests.by_session()):
                name = sessions.names[session]
                prompt = sessions.prompts.of(session)
                _push(file, name, requests, own, prompt, builder)


READER = MooncakeReader()


def _gather(
    file: SourceFile, block_tokens: int, builder: TraceBuilder
) -> tuple[_Requests, _Sessions]:
    requests = _Requests()
    sessions = _Sessions(block_tokens)
    dropped: list[str] = []
    for number, _, row in decoded_lines(file, _DECODER, dropped):
        tokens = row.input(block_tokens, file, number), row.output(file, number)
        if not tokens[1]:
            builder.exclude("request without output")
            continue
        session, agreed = sessions.place(number, row, tokens)
        requests.add(session, number, row, tokens, agreed)
    for reason in dropped:
        builder.drop(reason)
    if sessions.recovered:
        builder.fill("session", "recovered from chains of block hashes", sessions.recovered)
    if sessions.alone:
        how = "none in the log: each request is one of its own"
        builder.fill("session", how, sessions.alone)
    return requests, sessions


def block_size(file: SourceFile, decoder: msgspec.json.Decoder[AnyRow]) -> int:
    """The tokens of a block, from the first rows; the usual 512 where they have no hashes."""
    rows = islice(decoded_lines(file.peeked(), decoder, []), _ROWS_FOR_BLOCK_SIZE)
    lengths = [
        (found, len(row.hash_ids))
        for _, _, row in rows
        if row.hash_ids
        and (found := row.input_length if row.input_length is not None else row.input_tokens)
    ]
    size = block_tokens_of(lengths, USUAL_BLOCK_TOKENS)
    if size is None:
        raise InputError("no size of block fits the lengths of input_length and hash_ids",
                         path=file.name, field="hash_ids")  # fmt: skip
    return size


def _push(
    file: SourceFile,
    name: str | int,
    requests: _Requests,
    own: NDArray[np.int64],
    prompt: tuple[int, int | None],
    builder: TraceBuilder,
) -> None:
    session = builder.session(
        name if isinstance(name, str) else f"request-{name}",
        workload=Path(file.name).name.split(".")[0],
        harness="mooncake",
        source=file.name,
        stripping="off",
    )
    builder.fill("turn", "none in the trace: a session is one turn")
    prompt_tokens, key = prompt
    if prompt_tokens:
        builder.fill("prompt_tokens", "whole blocks that first inputs share")
    pieces = ContextPieces()
    for at in own.tolist():
        pieces.add_agreed(
            requests.input_tokens[at], requests.output_tokens[at], requests.agreed_tokens[at]
        )
    for index, (at, context) in enumerate(
        zip(own.tolist(), pieces.parts(prompt_tokens), strict=True)
    ):
        is_whole = bool(requests.is_whole[at])
        if is_whole:
            builder.fill("input_tokens", "whole blocks")
        session.request(
            parts=context.parts,
            output_parts=context.output_parts,
            input_tokens=requests.input_tokens[at],
            prompt_tokens=None if index else prompt_tokens,
            prefix_key=None if key is None else f"{file.name} block {key}",
            output_tokens=requests.output_tokens[at],
            start_s=_known(requests.start_s[at]),
            delay_s=_known(requests.wait_s[at]) if index else None,
            usage_source=UsageSource.INFERRED if is_whole else UsageSource.REPORTED,
            row=requests.row[at],
        )
    builder.finish(session)


def _known(seconds: float) -> float | None:
    return None if math.isnan(seconds) else seconds

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

from array import array
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeVar

import msgspec

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
from lachesis.traces.record_groups import NameNumbers, RecordGroups
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


class _Request(NamedTuple):
    """A request while its session is not complete: its line, and how much of its input matched.

    `named` is the session's name, where the log has one.
    """

    row: int
    named: str | None
    input_tokens: int
    output_tokens: int
    agreed_tokens: int
    start_s: float | None
    wait_s: float | None
    is_whole: bool


_REQUEST_ENCODER: Final = msgspec.msgpack.Encoder()
_REQUEST_DECODER: Final = msgspec.msgpack.Decoder(_Request)


class _Sessions:
    """The sessions of one file, and where each one's context is."""

    def __init__(self, block_tokens: int, scratch: Path | None) -> None:
        self.block_tokens = block_tokens
        numbers = BlockNumbers()
        self.finder = SessionChains(block_tokens, numbers, scratch)
        self.prompts = SharedPrompts(block_tokens, numbers, scratch)
        self.count = 0
        self.recovered = 0
        self.alone = 0
        self._of_chain = array("i")
        self._names = NameNumbers()
        self._of_name = array("i")
        self._held: dict[int, tuple[array[int], tuple[int, int]]] = {}

    def place(self, row: MooncakeRow, tokens: tuple[int, int]) -> tuple[int, int]:
        """The session of a request, and how much of its input its context held."""
        blocks = blocks_of(row.hash_ids or ())
        whole = whole_blocks(blocks, tokens[0], self.block_tokens)
        if row.session_id is not None:
            return self._place_named(str(row.session_id), whole, tokens)
        if not blocks:
            self.alone += 1
            return self._new(blocks), 0
        chain, held = self.finder.place(*tokens, blocks)
        if chain == len(self._of_chain):
            self._of_chain.append(self._new(whole))
            self.recovered += 1
        return self._of_chain[chain], held

    def _place_named(
        self, name: str, whole: array[int], tokens: tuple[int, int]
    ) -> tuple[int, int]:
        number = self._names.of(name)
        agreed = 0
        if number == len(self._of_name):
            self._of_name.append(self._new(whole))
        else:
            agreed = agreed_tokens(*self._held[number], whole, tokens[0], self.block_tokens)
        self._held[number] = whole, tokens
        return self._of_name[number], agreed

    def _new(self, whole: array[int]) -> int:
        self.prompts.add(whole)
        self.count += 1
        return self.count - 1


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
            requests, sessions = _gather(file, block_tokens, builder, options)
            if not sessions.count:
                builder.skip(file.name, "holds no request with output")
            for session, records in requests:
                own = [_REQUEST_DECODER.decode(record) for record in records]
                _push(file, own, sessions.prompts.of(session), builder)


READER = MooncakeReader()


def _gather(
    file: SourceFile, block_tokens: int, builder: TraceBuilder, options: ReadOptions
) -> tuple[RecordGroups, _Sessions]:
    requests = RecordGroups(options.scratch)
    sessions = _Sessions(block_tokens, options.scratch)
    dropped: list[str] = []
    for number, _, row in decoded_lines(file, _DECODER, dropped):
        tokens = row.input(block_tokens, file, number), row.output(file, number)
        if not tokens[1]:
            builder.exclude("request without output")
            continue
        session, agreed = sessions.place(row, tokens)
        named = None if row.session_id is None else str(row.session_id)
        is_whole = row.input_length is None and row.input_tokens is None
        request = _Request(number, named, *tokens, agreed, row.start_s(), row.wait_s(), is_whole)
        requests.append(session, _REQUEST_ENCODER.encode(request))
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
    own: Sequence[_Request],
    prompt: tuple[int, int | None],
    builder: TraceBuilder,
) -> None:
    name = own[0].named
    session = builder.session(
        name if name is not None else f"request-{own[0].row}",
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
    for each in own:
        pieces.add_agreed(each.input_tokens, each.output_tokens, each.agreed_tokens)
    for index, (each, context) in enumerate(zip(own, pieces.parts(prompt_tokens), strict=True)):
        if each.is_whole:
            builder.fill("input_tokens", "whole blocks")
        session.request(
            parts=context.parts,
            output_parts=context.output_parts,
            input_tokens=each.input_tokens,
            prompt_tokens=None if index else prompt_tokens,
            prefix_key=None if key is None else f"{file.name} block {key}",
            output_tokens=each.output_tokens,
            start_s=each.start_s,
            delay_s=each.wait_s if index else None,
            usage_source=UsageSource.INFERRED if each.is_whole else UsageSource.REPORTED,
            row=each.row,
        )
    builder.finish(session)

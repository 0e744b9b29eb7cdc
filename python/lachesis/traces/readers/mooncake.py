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
from typing import Annotated, Final, TypeVar

import msgspec

from lachesis.errors import InputError
from lachesis.traces.builder import TraceBuilder
from lachesis.traces.readers.block_chains import (
    BlockContext,
    block_tokens_of,
    blocks_of,
    whole_blocks,
)
from lachesis.traces.readers.json_head import first_object
from lachesis.traces.readers.json_rows import decoded_lines
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.readers.session_chains import SessionChains, shared_prompts
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


class _Request(msgspec.Struct, gc=False):
    row: int
    input_tokens: int
    output_tokens: int
    start_s: float | None
    wait_s: float | None
    is_whole: bool


class _Chain:
    """One session while it grows."""

    def __init__(self, name: str, block_tokens: int) -> None:
        self.name = name
        self.context = BlockContext(block_tokens)
        self.requests: list[_Request] = []
        self.first: array[int] = blocks_of(())

    def add(self, request: _Request, blocks: array[int]) -> None:
        if not self.requests:
            self.first = whole_blocks(blocks, request.input_tokens, self.context.block_tokens)
        self.context.add(request.input_tokens, request.output_tokens, blocks)
        self.requests.append(request)


class MooncakeReader:
    """Mooncake request traces."""

    name = "mooncake"
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
            chains = self._gather(file, block_tokens, builder)
            if not chains:
                builder.skip(file.name, "holds no request with output")
            prompts = shared_prompts([chain.first for chain in chains], block_tokens)
            chains.reverse()
            for prompt_tokens, prompt in prompts:
                _push(file, chains.pop(), prompt_tokens, prompt, builder)

    def _gather(self, file: SourceFile, block_tokens: int, builder: TraceBuilder) -> list[_Chain]:
        finder = SessionChains(block_tokens)
        chains: dict[str | int, _Chain] = {}
        dropped: list[str] = []
        alone = 0
        for number, _, row in decoded_lines(file, _DECODER, dropped):
            request = _Request(
                number,
                row.input(block_tokens, file, number),
                row.output(file, number),
                row.start_s(),
                row.wait_s(),
                row.input_length is None and row.input_tokens is None,
            )
            if not request.output_tokens:
                builder.exclude("request without output")
                continue
            blocks = blocks_of(row.hash_ids or ())
            key: str | int
            if row.session_id is not None:
                key = str(row.session_id)
            elif blocks:
                key = finder.session_of(request.input_tokens, request.output_tokens, blocks)
            else:
                key = -1 - alone  # apart from the numbers of recovered sessions
                alone += 1
            if key not in chains:
                name = key if isinstance(key, str) else f"request-{number}"
                chains[key] = _Chain(name, block_tokens)
            chains[key].add(request, blocks)
        for reason in dropped:
            builder.drop(reason)
        recovered = sum(isinstance(key, int) and key >= 0 for key in chains)
        if recovered:
            builder.fill("session", "recovered from chains of block hashes", recovered)
        if alone:
            builder.fill("session", "none in the log: each request is one of its own", alone)
        return list(chains.values())


READER = MooncakeReader()


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
    chain: _Chain,
    prompt_tokens: int,
    prompt: int | None,
    builder: TraceBuilder,
) -> None:
    session = builder.session(
        chain.name,
        workload=Path(file.name).name.split(".")[0],
        harness="mooncake",
        source=file.name,
        stripping="off",
    )
    builder.fill("turn", "none in the trace: a session is one turn")
    contexts = chain.context.parts(prompt_tokens)
    if prompt_tokens:
        builder.fill("prompt_tokens", "whole blocks that first inputs share")
    for index, (request, context) in enumerate(zip(chain.requests, contexts, strict=True)):
        if request.is_whole:
            builder.fill("input_tokens", "whole blocks")
        session.request(
            parts=context.parts,
            output_parts=context.output_parts,
            input_tokens=request.input_tokens,
            prompt_tokens=None if index else prompt_tokens,
            prefix_key=None if prompt is None else f"{file.name} block {prompt}",
            output_tokens=request.output_tokens,
            start_s=request.start_s,
            delay_s=request.wait_s if index else None,
            usage_source=UsageSource.INFERRED if request.is_whole else UsageSource.REPORTED,
            row=request.row,
        )
    builder.finish(session)

"""Reader of request CSVs of Frontier and vidur.

`arrived_at` (seconds), `num_prefill_tokens` (input), `num_decode_tokens` (output); Frontier adds
`session_id`, `block_hash_ids` (`11|22|33`) and `tool_call_latency` (seconds before the request).

**Sessions.** Rows of one `session_id` are one session, in order of arrival. Without ids they are
recovered from chains of block hashes, if there are any (see `session_chains`); else each request is
a session of its own. Both are counted.

**Input.** With block hashes `num_prefill_tokens` is the whole input. Frontier's session mode, which
has ids and no hashes, gives only what each request adds: the input is then that and everything
before it, if the rows of some session do not grow, which is counted (`input_tokens`).

**Context** is matched by block hashes, else by counts. A session is one turn, counted. **Left
out**, counted: requests without output.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple

import msgspec
import numpy as np

from lachesis.errors import InputError
from lachesis.traces.builder import TraceBuilder
from lachesis.traces.readers.block_chains import BlockContext, BlockSize, blocks_of
from lachesis.traces.readers.block_numbers import BlockNumbers
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.readers.request_rows import (
    LoneColumns,
    LoneRequest,
    RequestRow,
    has_columns,
    push_lone,
    request_rows,
)
from lachesis.traces.readers.session_chains import SessionChains
from lachesis.traces.record_groups import NameNumbers, RecordGroups
from lachesis.traces.schema import TOKENS_MAX

_DESCRIPTION: Final = __doc__ or ""
_NEEDED: Final = ("num_prefill_tokens", "num_decode_tokens")
_KNOWN: Final = (
    *_NEEDED,
    "arrived_at",
    "session_id",
    "session_turn_index",
    "block_hash_ids",
    "tool_call_latency",
)
_LONE: Final = LoneColumns("num_prefill_tokens", "num_decode_tokens", "arrived_at")
_USUAL_BLOCK_TOKENS: Final = 16
_ROWS_AT_ONCE: Final = 1024


class _Row(NamedTuple):
    """What is kept of a row until its session is complete."""

    number: int
    session: str | None
    request: LoneRequest
    blocks: list[int]
    delay_s: float | None


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_Row)


class FrontierReader:
    """Request CSVs of Frontier and vidur."""

    name = "frontier"
    joins_files = False
    description = _DESCRIPTION

    def recognises(self, file: SourceFile) -> bool:
        """A table with columns for the tokens of prefill and decode."""
        return has_columns(file, *_NEEDED)

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push every session of every file."""
        for file in files:
            if has_columns(file, "session_id") or has_columns(file, "block_hash_ids"):
                _File(file, builder, options).push(request_rows(file, _KNOWN, builder))
            else:
                push_lone(file, _KNOWN, _LONE, builder, harness="frontier")


READER = FrontierReader()


class _File:
    """One file that has session ids, block hashes, or both."""

    def __init__(self, file: SourceFile, builder: TraceBuilder, options: ReadOptions) -> None:
        self.file = file
        self.builder = builder
        self.scratch = options.scratch
        self.named = has_columns(file, "session_id")
        self.block_tokens = _USUAL_BLOCK_TOKENS
        self.has_blocks = False

    def push(self, rows: Iterator[RequestRow]) -> None:
        """Group the rows into sessions and push these."""
        taken = self._in_order_of_time(rows)
        if taken is None:
            self.builder.skip(self.file.name, "holds no request with output")
            return
        numbers = NameNumbers()
        sessions = RecordGroups(self.scratch)
        chains, blocks = SessionChains(self.scratch), BlockNumbers(self.scratch)
        recovered = alone = 0
        waiting = (record for _, record in taken.records())
        while some := [_DECODER.decode(record) for record in islice(waiting, _ROWS_AT_ONCE)]:
            chained = self._chained(some, chains, blocks)
            for each in some:
                name = each.session
                if self.named and name is None:
                    raise self._broken(each, "session_id", "is needed in every row", "missing")
                known = len(numbers)
                if name is not None:
                    number = numbers.of(name)
                elif each.blocks:
                    name = f"chain-{next(chained)}"
                    number = numbers.of(name)
                    recovered += number == known
                else:
                    name = f"request-{each.number}"
                    number = numbers.of(name)
                    alone += 1
                sessions.append(number, _ENCODER.encode(each._replace(session=name)))
        if recovered:
            self.builder.fill("session", "recovered from chains of block hashes", recovered)
        if alone:
            how = "none in the log: each request is one of its own"
            self.builder.fill("session", how, alone)
        only_new = not self.has_blocks and not all(
            _grows([_DECODER.decode(record) for record in records]) for _, records in sessions
        )
        for _, records in sessions:
            self._push_session([_DECODER.decode(record) for record in records], only_new=only_new)

    def _chained(
        self, rows: Sequence[_Row], chains: SessionChains, blocks: BlockNumbers
    ) -> Iterator[int]:
        """The sessions of those rows that name none and have blocks."""
        own = [each for each in rows if each.session is None and each.blocks]
        inputs = np.array([each.request.input_tokens for each in own], np.int64)
        outputs = np.array([each.request.output_tokens for each in own], np.int64)
        counts = np.minimum([len(each.blocks) for each in own], inputs // self.block_tokens)
        whole = [each.blocks[:count] for each, count in zip(own, counts.tolist(), strict=True)]
        ids = np.array(list(chain.from_iterable(whole)), np.uint64)
        sessions, _ = chains.place(inputs, outputs, blocks.of(ids), counts.astype(np.int64))
        return iter(sessions.tolist())

    def _in_order_of_time(self, rows: Iterator[RequestRow]) -> RecordGroups | None:
        """The requests, by time if every one has one; None if there is none."""
        taken = RecordGroups(self.scratch)
        starts_s = array("d")
        size = BlockSize(_USUAL_BLOCK_TOKENS)
        for row in rows:
            each = self._taken(row)
            if each is None:
                continue
            start_s = each.request.start_s
            taken.append(len(starts_s), _ENCODER.encode(each))
            starts_s.append(math.nan if start_s is None else start_s)
            if each.blocks:
                self.has_blocks = True
                size.take(each.request.input_tokens, len(each.blocks))
        if not starts_s:
            return None
        block_tokens = size.found()
        if block_tokens is None:
            raise InputError("no size of block fits num_prefill_tokens and the number of hashes",
                             path=self.file.name, field="block_hash_ids")  # fmt: skip
        self.block_tokens = block_tokens
        starts = np.frombuffer(starts_s, np.float64)
        if np.isnan(starts).any() or (np.diff(starts) >= 0).all():
            return taken
        places = np.empty(len(starts), np.int64)
        places[np.argsort(starts, kind="stable")] = np.arange(len(starts))
        ordered = RecordGroups(self.scratch)
        for number, record in taken.records():
            ordered.append(int(places[number]), record)
        return ordered

    def _taken(self, row: RequestRow) -> _Row | None:
        request = _LONE.request(row)
        if not request.output_tokens:
            self.builder.exclude("request without output")
            return None
        words = (row.text("block_hash_ids") or "").strip("[]").replace("|", ",").split(",")
        try:
            blocks = blocks_of([int(word) for word in words if word.strip()])
        except ValueError as fault:
            raise row.broken("block_hash_ids", "must be whole numbers between bars") from fault
        delay_s = row.number_of("tool_call_latency")
        if delay_s is not None and delay_s < 0:
            raise row.broken("tool_call_latency", "must not be negative")
        return _Row(row.number, row.text("session_id"), request, blocks.tolist(), delay_s)

    def _broken(self, each: _Row, field: str, rule: str, value: object) -> InputError:
        return InputError(rule, path=self.file.name, row=each.number, field=field, value=value)

    def _push_session(self, own: list[_Row], *, only_new: bool) -> None:
        block_tokens = self.block_tokens
        self.builder.fill("turn", "none in the table: a session is one turn")
        session = self.builder.session(
            own[0].session or "",
            workload=self.file.workload,
            harness="frontier",
            source=self.file.name,
            stripping="off",
        )
        context = BlockContext(block_tokens)
        inputs: list[int] = []
        held = 0
        for each in own:
            tokens = each.request.input_tokens + (held if only_new else 0)
            if tokens > TOKENS_MAX:
                rule = f"adds up to more tokens than there may be ({TOKENS_MAX})"
                given = each.request.input_tokens
                raise self._broken(each, "num_prefill_tokens", rule, given)
            if each.blocks and len(each.blocks) < tokens // block_tokens:
                rule = (
                    f"must hold an id for each of the {tokens // block_tokens} blocks of "
                    f"{block_tokens} tokens that the input fills"
                )
                raise self._broken(each, "block_hash_ids", rule, f"{len(each.blocks)} ids")
            if only_new and held:
                self.builder.fill("input_tokens", "what is new and what the session held")
            held = tokens + each.request.output_tokens
            inputs.append(tokens)
            context.add(tokens, each.request.output_tokens, array("Q", each.blocks))
        by_blocks = any(each.blocks for each in own) and not context.only_grows
        parts = context.parts() if by_blocks else [None] * len(own)
        for index, (each, tokens, part) in enumerate(zip(own, inputs, parts, strict=True)):
            session.request(
                parts=None if part is None else part.parts,
                output_parts=None if part is None else part.output_parts,
                input_tokens=tokens,
                prompt_tokens=None if index else 0,
                output_tokens=each.request.output_tokens,
                start_s=each.request.start_s,
                delay_s=each.delay_s if index else None,
                row=each.number,
            )
        self.builder.finish(session)


def _grows(own: Sequence[_Row]) -> bool:
    """Whether every input of the session has room for all that came before it."""
    held = 0
    for each in own:
        if each.request.input_tokens < held:
            return False
        held = each.request.input_tokens + each.request.output_tokens
    return True

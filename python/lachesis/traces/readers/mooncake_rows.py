"""Rows of Mooncake request traces: one by one, and many as columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import Annotated, Final, NamedTuple, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lachesis.errors import InputError
from lachesis.traces.readers.block_chains import block_tokens_of
from lachesis.traces.readers.json_rows import decoded_lines
from lachesis.traces.readers.protocol import SourceFile
from lachesis.traces.schema import TOKENS_MAX

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

_fields_of = attrgetter(
    "input_length", "input_tokens", "output_length", "output_tokens", "timestamp", "created_time",
    "delay", "delay_ms", "session_id", "hash_ids",
)  # fmt: skip


class MooncakeColumns(NamedTuple):
    """Requests by columns: as of `MooncakeRow`, seconds NaN where there are none.

    `blocks` are the ids of all rows, one after another, and `block_counts` how many each has.
    `is_whole`: the input has no count of its own, and fills its blocks.
    """

    number: NDArray[np.int64]
    input_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    start_s: NDArray[np.float64]
    wait_s: NDArray[np.float64]
    is_whole: NDArray[np.bool_]
    session_id: list[str | int | None]
    blocks: NDArray[np.uint64]
    block_counts: NDArray[np.int64]

    @classmethod
    def of(
        cls, file: SourceFile, numbers: list[int], rows: Sequence[MooncakeRow], block_tokens: int
    ) -> MooncakeColumns:
        """The columns of some rows, with their lines; raises `InputError` for the first bad one."""
        fields = dict(zip(
            ("input", "more_input", "output", "more_output", "start", "more_start", "wait",
             "more_wait", "session", "blocks"),
            zip(*map(_fields_of, rows), strict=True), strict=True,
        ))  # fmt: skip
        blocks = [each or () for each in fields["blocks"]]
        counts = np.fromiter(map(len, blocks), np.int64, len(blocks))
        given = _either(fields["input"], fields["more_input"], pa.int64())
        made = _either(fields["output"], fields["more_output"], pa.int64())
        is_whole = given.is_null().to_numpy(zero_copy_only=False)
        inputs = np.where(is_whole, counts * block_tokens, given.fill_null(0).to_numpy())
        bad = (is_whole & (counts == 0)) | made.is_null().to_numpy(zero_copy_only=False)
        bad |= (counts > 0) & (counts < inputs // block_tokens)
        for index in np.flatnonzero(bad).tolist():
            rows[index].input(block_tokens, file, numbers[index])
            rows[index].output(file, numbers[index])
        return cls(
            np.array(numbers, np.int64),
            inputs,
            made.to_numpy(),
            _seconds(fields["start"], fields["more_start"]),
            _seconds(fields["wait"], fields["more_wait"]),
            is_whole,
            list(fields["session"]),
            ids_of(chain.from_iterable(blocks)),
            counts,
        )

    def where(self, kept: NDArray[np.bool_]) -> MooncakeColumns:
        """Those rows for which `kept` is true."""
        if kept.all():
            return self
        return MooncakeColumns(
            self.number[kept], self.input_tokens[kept], self.output_tokens[kept],
            self.start_s[kept], self.wait_s[kept], self.is_whole[kept],
            [each for each, keep in zip(self.session_id, kept.tolist(), strict=True) if keep],
            self.blocks[np.repeat(kept, self.block_counts)], self.block_counts[kept],
        )  # fmt: skip


def ids_of(blocks: Iterable[int]) -> NDArray[np.uint64]:
    """Ids of blocks in 64 bits, in which signed ones are some unsigned ones."""
    ids = list(blocks)
    try:
        return np.frombuffer(array("Q", ids), np.uint64)
    except OverflowError:
        return np.array([block % 2**64 for block in ids], np.uint64)


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


def _either(
    values: Sequence[float | None], others: Sequence[float | None], kind: pa.DataType
) -> pa.Array:
    return pc.coalesce(pa.array(values, kind), pa.array(others, kind))


def _seconds(
    milliseconds: Sequence[float | None], others: Sequence[float | None]
) -> NDArray[np.float64]:
    given = _either(milliseconds, others, pa.float64())
    return np.asarray(given.fill_null(np.nan).to_numpy(), np.float64) / 1000

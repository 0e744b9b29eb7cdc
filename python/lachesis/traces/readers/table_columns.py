"""Requests of a per-request table without agents, by columns: as `parsed` gives them row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.readers.csv_blocks import Columns
from lachesis.traces.readers.protocol import SourceFile
from lachesis.traces.readers.session_rows import RequestColumns
from lachesis.traces.readers.table_rows import (
    NEEDED,
    TIME_UNITS,
    Row,
    csv_file,
    is_csv,
    parsed,
    rows_of,
)
from lachesis.traces.readers.text_columns import OddValueError, counts_of, numbers_of, seconds_of
from lachesis.traces.schema import TOKENS_MAX

_ROWS_AT_ONCE: Final = 16_384


def table_columns(
    file: SourceFile, names: Mapping[str, str], builder: TraceBuilder
) -> Iterator[RequestColumns]:
    """The requests with output; others, and rows without counts, are counted.

    `names`: our columns' names to the file's. Raises `InputError` for the first broken value.
    """
    if not is_csv(file):
        yield from _one_by_one(checked_rows(file, rows_of(file), names, builder))
        return
    for block in csv_file(file):
        read = block.columns(list(names.values()))
        columns = None if read is None else _columns(read, names)
        if columns is None:
            yield from _one_by_one(checked_rows(file, block.rows(), names, builder))
            continue
        speaks = columns.output_tokens > 0
        if not speaks.all():
            builder.exclude("request without output", int((~speaks).sum()))
        yield columns.where(speaks)


def checked_rows(
    file: SourceFile,
    rows: Iterable[tuple[int, Mapping[str, Any]]],
    names: Mapping[str, str],
    builder: TraceBuilder,
) -> Iterator[Row]:
    """The same row by row."""
    for number, values in rows:
        if all(values.get(names[ours]) in (None, "") for ours in NEEDED[1:]):
            builder.drop("row without token counts")
            continue
        row = parsed(file, number, values, names)
        if row.output_tokens == 0:
            builder.exclude("request without output")
            continue
        yield row


def _one_by_one(rows: Iterator[Row]) -> Iterator[RequestColumns]:
    while taken := list(islice(rows, _ROWS_AT_ONCE)):
        columns = dict(zip(Row._fields, zip(*taken, strict=True), strict=True))
        yield RequestColumns(
            row=np.array(columns["number"], np.int64),
            session=pa.array(columns["session"], pa.string()),
            input_tokens=np.array(columns["input_tokens"], np.int64),
            output_tokens=np.array(columns["output_tokens"], np.int64),
            start_s=np.array(columns["timestamp_s"], np.float64),
            end_s=np.full(len(taken), np.nan),
            model=pa.array(columns["model"], pa.string()),
            cached_tokens=pa.array(columns["cached_tokens"], pa.int64()),
            reasoning_tokens=pa.array(columns["reasoning_tokens"], pa.int64()),
            turn=pa.array(columns["turn"], pa.string()),
        )


def _columns(read: Columns, names: Mapping[str, str]) -> RequestColumns | None:
    """None where a row needs a closer look: because it breaks a rule, or may."""
    nothing = pa.nulls(len(read.numbers), pa.string())

    def text(ours: str) -> pa.Array:
        return read.texts[names[ours]] if ours in names else nothing

    if text("session").null_count:
        return None
    try:
        inputs, outputs = counts_of(text("input_tokens")), counts_of(text("output_tokens"))
        cached, reasoning, hit, made = (
            _known_counts(text(ours))
            for ours in ("cached_tokens", "reasoning_tokens", "cache_read_input_tokens",
                         "cache_creation_input_tokens")
        )  # fmt: skip
        start_s = _seconds(text("timestamp"))
    except (pa.ArrowInvalid, OddValueError):
        return None
    # The usage of Anthropic's interface: three counts that exclude each other.
    inputs = inputs + hit.fill_null(0).to_numpy() + made.fill_null(0).to_numpy()
    cached = pc.coalesce(cached, hit)
    too_many = (inputs > TOKENS_MAX) | (cached.fill_null(0).to_numpy() > inputs)
    if (too_many | (reasoning.fill_null(0).to_numpy() > outputs)).any():
        return None
    return RequestColumns(
        row=read.numbers,
        session=text("session"),
        input_tokens=inputs,
        output_tokens=outputs,
        start_s=start_s,
        end_s=np.full(len(inputs), np.nan),
        model=text("model"),
        cached_tokens=cached,
        reasoning_tokens=reasoning,
        turn=text("turn"),
    )


def _known_counts(texts: pa.Array) -> pa.Array:
    """Counts, nulls kept."""
    missing = texts.is_null()
    return pa.array(counts_of(texts.fill_null("0")), mask=missing.to_numpy(zero_copy_only=False))


def _seconds(texts: pa.Array) -> np.ndarray:
    """Seconds since the epoch, of numbers by their size; NaN for nulls."""
    try:
        numbers = numbers_of(texts).fill_null(np.nan).to_numpy()
    except pa.ArrowInvalid:
        return np.asarray(seconds_of(texts).fill_null(np.nan).to_numpy())
    per_second = np.ones(len(numbers))
    for least, units in reversed(TIME_UNITS):
        per_second[np.abs(numbers) >= least] = units
    return np.asarray(numbers / per_second)

"""Tables of single requests, as serving traces are published: columns checked value by value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lachesis.errors import InputError
from lachesis.traces.builder import TraceBuilder
from lachesis.traces.lone_requests import LoneRequests
from lachesis.traces.readers.csv_blocks import Columns, CsvBlock
from lachesis.traces.readers.protocol import SourceFile
from lachesis.traces.readers.session_rows import RequestColumns
from lachesis.traces.readers.table_rows import column_names, csv_file, is_csv, rows_of
from lachesis.traces.readers.text_columns import OddValueError, counts_of, numbers_of, seconds_of
from lachesis.traces.schema import TOKENS_MAX

_ROWS_AT_ONCE: Final = 16_384


class RequestRow:
    """One row: its line, and its values by column as text (or as Parquet has them)."""

    __slots__ = ("file", "number", "values")

    def __init__(self, file: SourceFile, number: int, values: Mapping[str, Any]) -> None:
        self.file = file
        self.number = number
        self.values = values

    def text(self, column: str | None) -> str | None:
        """The value as text; None where it is empty or there is no such column."""
        value = None if column is None else self.values.get(column)
        found = "" if value is None else str(value).strip()
        return found or None

    def number_of(self, column: str | None) -> float | None:
        """A finite number; None where there is none."""
        found = self.text(column)
        if found is None:
            return None
        try:
            number = float(found)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise self.broken(column, "must be a finite number")
        return number

    def count(self, column: str) -> int:
        """A needed whole number of tokens."""
        number = self.number_of(column)
        if number is None:
            raise self.broken(column, "is needed in every row", "missing")
        if number != int(number):
            raise self.broken(column, "must be a whole number")
        if number < 0:
            raise self.broken(column, "must not be negative")
        if number > TOKENS_MAX:
            raise self.broken(column, f"must be at most {TOKENS_MAX}")
        return int(number)

    def seconds(self, column: str) -> float | None:
        """A number of seconds, or a date and time as seconds since the epoch (UTC if unsaid)."""
        found = self.text(column)
        if found is None:
            return None
        try:
            number = float(found)
        except ValueError:
            try:
                stamp = datetime.fromisoformat(found)
            except ValueError as fault:
                raise self.broken(column, "must be seconds or a date and time") from fault
            return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
        if not math.isfinite(number):
            raise self.broken(column, "must be a finite time")
        return number

    def broken(self, column: str | None, rule: str, value: object = None) -> InputError:
        """The error for a value that breaks a rule."""
        shown = self.values.get(column or "") if value is None else value
        return InputError(rule, path=self.file.name, row=self.number, field=column, value=shown)


class LoneRequest(NamedTuple):
    """A request of which no session is known."""

    input_tokens: int
    output_tokens: int
    start_s: float | None = None
    end_s: float | None = None
    model: str | None = None


@dataclass(frozen=True)
class LoneColumns:
    """What the columns of a table of single requests are called; the last two may be absent."""

    input_tokens: str
    output_tokens: str
    start: str
    elapsed: str | None = None
    model: str | None = None

    def request(self, row: RequestRow) -> LoneRequest:
        """The request of a row; raises `InputError` for the first value that breaks a rule."""
        start_s = row.seconds(self.start)
        elapsed_s = row.number_of(self.elapsed)
        if elapsed_s is not None and elapsed_s < 0:
            raise row.broken(self.elapsed, "must not be negative")
        return LoneRequest(
            row.count(self.input_tokens),
            row.count(self.output_tokens),
            start_s,
            None if start_s is None or elapsed_s is None else start_s + elapsed_s,
            row.text(self.model),
        )

    def requests(self, block: CsvBlock) -> LoneRequests | None:
        """The requests of a block; None if it has to be read row by row."""
        read = block.columns(self.names)
        return None if read is None else self.requests_of(read)

    @property
    def names(self) -> list[str]:
        """What those columns are called that there may be."""
        named = (self.input_tokens, self.output_tokens, self.start, self.elapsed, self.model)
        return [name for name in named if name is not None]

    def requests_of(self, read: Columns) -> LoneRequests | None:
        """The requests in columns; None if they have to be read row by row."""
        nothing = pa.nulls(len(read.numbers), pa.string())
        tokens_in, tokens_out, start, elapsed, model = (
            nothing if name is None else read.texts.get(name, nothing)
            for name in (
                self.input_tokens, self.output_tokens, self.start, self.elapsed, self.model
            )
        )  # fmt: skip
        try:
            start_s, elapsed_s = seconds_of(start), numbers_of(elapsed)
            if pc.any(pc.less(elapsed_s, 0.0)).as_py():
                return None
            return LoneRequests(
                read.numbers,
                counts_of(tokens_in),
                counts_of(tokens_out),
                start_s,
                pc.add(start_s, elapsed_s),
                model,
            )
        except (pa.ArrowInvalid, OddValueError):
            return None


def has_columns(file: SourceFile, *columns: str) -> bool:
    """Whether the file is a table with all these columns."""
    try:
        present = column_names(file)
    except InputError:
        return False
    return all(column in present for column in columns)


def request_rows(
    file: SourceFile, known: Sequence[str], builder: TraceBuilder
) -> Iterator[RequestRow]:
    """Rows of the file; columns besides the `known` ones are counted as ignored."""
    check_columns(file, known, builder)
    for number, values in rows_of(file):
        yield RequestRow(file, number, values)


def check_columns(file: SourceFile, known: Sequence[str], builder: TraceBuilder) -> None:
    """Refuse a column that stands there twice, and count those that are not `known`."""
    present = column_names(file)
    for column in dict.fromkeys(present):
        if present.count(column) > 1:
            raise InputError("stands there twice", path=file.name, field=f"column {column}")
        if column not in known:
            builder.ignore(f"column {column}")


def session_columns(
    file: SourceFile, columns: LoneColumns, session: str
) -> Iterator[RequestColumns]:
    """The requests of a table that has a column which names sessions."""

    def checked(rows: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[tuple[Any, ...]]:
        for number, values in rows:
            row = RequestRow(file, number, values)
            request = columns.request(row)
            name = row.text(session)
            if name is None:
                raise row.broken(session, "is needed in every row", "missing")
            yield number, request, name

    def one_by_one(rows: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[RequestColumns]:
        found = checked(rows)
        while taken := list(islice(found, _ROWS_AT_ONCE)):
            numbers, requests, names = zip(*taken, strict=True)
            yield _with_sessions(_columns_of(numbers, requests), pa.array(names, pa.string()))

    if not is_csv(file):
        yield from one_by_one(rows_of(file))
        return
    for block in csv_file(file):
        read = block.columns([*columns.names, session])
        requests = None if read is None else columns.requests_of(read)
        if read is None or requests is None or read.texts[session].null_count:
            yield from one_by_one(block.rows())
        else:
            yield _with_sessions(requests, read.texts[session])


def _with_sessions(requests: LoneRequests, session: pa.Array) -> RequestColumns:
    count = len(session)
    return RequestColumns(
        row=requests.numbers,
        session=session,
        input_tokens=requests.input_tokens,
        output_tokens=requests.output_tokens,
        start_s=requests.start_s.fill_null(math.nan).to_numpy(),
        end_s=requests.end_s.fill_null(math.nan).to_numpy(),
        model=requests.model,
        cached_tokens=pa.nulls(count, pa.int64()),
        reasoning_tokens=pa.nulls(count, pa.int64()),
        turn=pa.nulls(count, pa.string()),
    )


def push_lone(
    file: SourceFile,
    known: Sequence[str],
    columns: LoneColumns,
    builder: TraceBuilder,
    *,
    harness: str,
) -> None:
    """Push every row as a session of its own; those without output are excluded, all counted."""
    check_columns(file, known, builder)
    workload = file.workload
    pushed = 0
    for requests in _lone_requests(file, columns):
        silent = requests.output_tokens == 0
        if silent.any():
            builder.exclude("request without output", int(silent.sum()))
            requests = requests.where(~silent)
        if len(requests.numbers):
            builder.add_lone(requests, workload=workload, harness=harness, source=file.name)
            pushed += len(requests.numbers)
    if pushed:
        how = "none in the log: each request is one of its own"
        builder.fill("session", how, pushed)
    else:
        builder.skip(file.name, "holds no request with output")


def _lone_requests(file: SourceFile, columns: LoneColumns) -> Iterator[LoneRequests]:
    if not is_csv(file):
        yield from _row_by_row(file, columns, rows_of(file))
        return
    for block in csv_file(file):
        requests = columns.requests(block)
        if requests is None:
            yield from _row_by_row(file, columns, block.rows())
        else:
            yield requests


def _row_by_row(
    file: SourceFile, columns: LoneColumns, rows: Iterable[tuple[int, Mapping[str, Any]]]
) -> Iterator[LoneRequests]:
    found = ((number, columns.request(RequestRow(file, number, values))) for number, values in rows)
    while taken := list(islice(found, _ROWS_AT_ONCE)):
        yield _columns_of(*zip(*taken, strict=True))


def _columns_of(numbers: Sequence[int], requests: Sequence[LoneRequest]) -> LoneRequests:
    return LoneRequests(
        np.array(numbers, np.int64),
        np.array([request.input_tokens for request in requests], np.int64),
        np.array([request.output_tokens for request in requests], np.int64),
        pa.array([request.start_s for request in requests], pa.float64()),
        pa.array([request.end_s for request in requests], pa.float64()),
        pa.array([request.model for request in requests], pa.string()),
    )

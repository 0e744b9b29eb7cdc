"""Tables of single requests, as serving traces are published: columns checked value by value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from lachesis.errors import InputError
from lachesis.traces.builder import TraceBuilder
from lachesis.traces.readers.protocol import SourceFile
from lachesis.traces.readers.table_rows import column_names, rows_of
from lachesis.traces.schema import TOKENS_MAX


class RequestRow:
    """One row: its line, and its values by column as text (or as Parquet has them)."""

    __slots__ = ("file", "number", "values")

    def __init__(self, file: SourceFile, number: int, values: Mapping[str, Any]) -> None:
        self.file = file
        self.number = number
        self.values = values

    def text(self, column: str) -> str | None:
        """The value as text; None where it is empty or there is no such column."""
        value = self.values.get(column)
        found = "" if value is None else str(value).strip()
        return found or None

    def number_of(self, column: str) -> float | None:
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

    def broken(self, column: str, rule: str, value: object = None) -> InputError:
        """The error for a value that breaks a rule."""
        shown = self.values.get(column) if value is None else value
        return InputError(rule, path=self.file.name, row=self.number, field=column, value=shown)


class LoneRequest(NamedTuple):
    """A request of which no session is known."""

    input_tokens: int
    output_tokens: int
    start_s: float | None = None
    end_s: float | None = None
    model: str | None = None


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
    present = column_names(file)
    for column in dict.fromkeys(present):
        if present.count(column) > 1:
            raise InputError("stands there twice", path=file.name, field=f"column {column}")
        if column not in known:
            builder.ignore(f"column {column}")
    for number, values in rows_of(file):
        yield RequestRow(file, number, values)


def push_lone(
    file: SourceFile,
    rows: Iterator[RequestRow],
    taken: Callable[[RequestRow], LoneRequest],
    builder: TraceBuilder,
    *,
    harness: str,
) -> None:
    """Push every row as a session of its own; those without output are excluded, all counted."""
    workload = Path(file.name).name.split(".")[0]
    pushed = 0
    for row in rows:
        request = taken(row)
        if not request.output_tokens:
            builder.exclude("request without output")
            continue
        session = builder.session(
            f"request-{row.number}",
            workload=workload,
            harness=harness,
            source=file.name,
            stripping="off",
        )
        session.request(
            input_tokens=request.input_tokens,
            prompt_tokens=0,
            output_tokens=request.output_tokens,
            model=request.model,
            start_s=request.start_s,
            end_s=request.end_s,
            row=row.number,
        )
        builder.finish(session)
        pushed += 1
    if pushed:
        how = "none in the log: each request is one of its own"
        builder.fill("session", how, pushed)
    else:
        builder.skip(file.name, "holds no request with output")

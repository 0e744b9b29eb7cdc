"""Rows of a per-request table, from CSV, TSV, JSONL or Parquet, checked value by value."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lachesis.errors import InputError
from lachesis.traces.readers.csv_blocks import CsvFile
from lachesis.traces.readers.protocol import SourceFile
from lachesis.traces.schema import TOKENS_MAX
from lachesis.traces.session_builder import encodable

NEEDED: Final = ("session", "input_tokens", "output_tokens")
OPTIONAL: Final = (
    "cached_tokens",
    "reasoning_tokens",
    "timestamp",
    "agent",
    "parent",
    "model",
    "turn",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
#: Short names under which tables also have them.
_ALIASES: Final = {
    "cache_read_input_tokens": "cache_read",
    "cache_creation_input_tokens": "cache_creation",
}
COLUMNS: Final = NEEDED + OPTIONAL
_PARQUET_MAGIC: Final = b"PAR1"
# Epoch seconds of the year 5138 end where milliseconds of 1973 begin, and so on upwards.
TIME_UNITS: Final = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
_PER_SECOND: Final = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


class Row(NamedTuple):
    """One request as the table has it; `number` is its line (row of a Parquet file)."""

    number: int
    session: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int | None
    reasoning_tokens: int | None
    timestamp_s: float | None
    agent: str | None
    parent: str | None
    model: str | None
    turn: str | None


def column_names(file: SourceFile) -> list[str]:
    """The file's columns, from its head; raises `InputError` where it is no table at all."""
    if file.head.startswith(_PARQUET_MAGIC):
        return list(_parquet(file).schema_arrow.names)
    first, _, rest = file.head.lstrip(b"\xef\xbb\xbf").lstrip().partition(b"\n")
    if first.startswith(b"{"):
        try:
            row = json.loads(first)
        except (ValueError, RecursionError) as fault:
            raise InputError(f"not valid JSON: {fault}", path=file.name, row=1) from fault
        # Optional columns may be absent from the first row, so a look at some more.
        names = dict.fromkeys(row)
        for line in rest.split(b"\n")[:-1]:
            try:
                more = json.loads(line)
            except (ValueError, RecursionError):
                break  # reading the rows reports it with its line
            if isinstance(more, dict):
                names.update(dict.fromkeys(more))
        return list(names)
    try:
        header = first.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise InputError("is no table: its first line is no text", path=file.name) from fault
    try:
        fields: list[str] = next(csv.reader([header], delimiter=_delimiter(header)), [])
    except csv.Error as fault:
        raise InputError(f"not valid CSV: {fault}", path=file.name, row=1) from fault
    return [name.strip() for name in fields]


def _delimiter(header: str) -> str:
    return max((",", "\t", ";"), key=lambda mark: (header.count(mark), mark == ","))


def _parquet(file: SourceFile) -> pq.ParquetFile:
    try:
        if file.path.suffix.lower() in (".gz", ".zst"):
            return pq.ParquetFile(pa.BufferReader(file.read_bytes()))
        # Arrow takes texts in UTF-8 only; as bytes a name may be any.
        return pq.ParquetFile(pa.OSFile(os.fsencode(file.path)))
    except (pa.ArrowException, OSError) as fault:
        raise InputError(f"no valid Parquet: {str(fault).splitlines()[0]}", path=file.name) from (
            fault
        )


def _parquet_batches(file: SourceFile) -> Iterator[list[dict[str, Any]]]:
    parquet = _parquet(file)
    batches = parquet.iter_batches()
    taken = 0
    while True:
        try:
            batch = next(batches, None)
            if batch is None:
                return
            taken += batch.num_rows
            file.note_read(taken / parquet.metadata.num_rows)
            yield pa.table(
                [_as_seconds(column) for column in batch.columns], names=batch.schema.names
            ).to_pylist()
        except (pa.ArrowException, OSError, OverflowError, UnicodeDecodeError) as fault:
            rule = f"no valid Parquet: {str(fault).splitlines()[0]}"
            raise InputError(rule, path=file.name) from fault


def _as_seconds(column: pa.Array) -> pa.Array:
    """Timestamps as seconds since the epoch, whatever their unit and zone; others as they are."""
    if not pa.types.is_timestamp(column.type):
        return column
    counts = pc.cast(column.cast(pa.int64()), pa.float64(), safe=False)
    return pc.divide(counts, _PER_SECOND[column.type.unit])


def names_in_file(file: SourceFile, mapped: Mapping[str, str]) -> dict[str, str]:
    """Our column names to the file's, for those that it has."""
    present = column_names(file)
    shown = ", ".join(present)
    for name in dict.fromkeys(present):
        if present.count(name) > 1:
            raise InputError("stands there twice", path=file.name, field=f"column {name}")
    for ours, theirs in mapped.items():
        if theirs not in present:
            raise InputError(
                f"no such column (mapped to {ours}); there are {shown}",
                path=file.name,
                field="map",
                value=theirs,
            )
    names = {ours: mapped.get(ours, ours) for ours in COLUMNS}
    for ours, alias in _ALIASES.items():
        if names[ours] not in present and alias in present:
            names[ours] = alias
    missing = [ours for ours in NEEDED if names[ours] not in present]
    if missing:
        raise InputError(
            f"needed column {', '.join(missing)} is missing; there are {shown} "
            f"(--map {missing[0]}=NAME)",
            path=file.name,
        )
    return {ours: theirs for ours, theirs in names.items() if theirs in present}


def rows_of(file: SourceFile) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Rows as mappings, with line numbers (row numbers from 1 for Parquet)."""
    if file.head.startswith(_PARQUET_MAGIC):
        number = 0
        for batch in _parquet_batches(file):
            for values in batch:
                number += 1
                yield number, values
        return
    if not is_csv(file):
        for number, value in file.json_lines():
            if not isinstance(value, dict):
                raise InputError("must be an object", path=file.name, row=number, value=value)
            yield number, value
        return
    for block in csv_file(file):
        yield from block.rows()


def csv_file(file: SourceFile) -> CsvFile:
    """The file as CSV, if it is neither Parquet nor JSONL."""
    header = file.head.lstrip(b"\xef\xbb\xbf").partition(b"\n")[0].decode("utf-8")
    return CsvFile(file, column_names(file), _delimiter(header))


def is_csv(file: SourceFile) -> bool:
    """Whether the file is read as CSV."""
    first = file.head.lstrip(b"\xef\xbb\xbf").lstrip()
    return not file.head.startswith(_PARQUET_MAGIC) and not first.startswith(b"{")


def parsed(
    file: SourceFile, number: int, values: Mapping[str, Any], names: Mapping[str, str]
) -> Row:
    """The row with its values checked; raises `InputError` for the first that breaks a rule."""

    def broken(ours: str, rule: str) -> InputError:
        field = names[ours]
        return InputError(rule, path=file.name, row=number, field=field, value=values.get(field))

    def raw(ours: str) -> object:
        value = values.get(names[ours]) if ours in names else None
        return None if value is None or (isinstance(value, str) and not value.strip()) else value

    def count(ours: str) -> int | None:
        value = raw(ours)
        if value is None:
            return None
        try:
            found = float(value) if isinstance(value, (str, int, float)) else math.nan
        except (ValueError, OverflowError):
            found = math.nan
        if isinstance(value, bool) or not math.isfinite(found) or found != int(found):
            raise broken(ours, "must be a whole number")
        if found < 0:
            raise broken(ours, "must not be negative")
        if found > TOKENS_MAX:
            raise broken(ours, f"must be at most {TOKENS_MAX}")
        return int(found)

    def word(ours: str) -> str | None:
        value = raw(ours)
        return None if value is None else encodable(str(value).strip())

    def needed_count(ours: str) -> int:
        found = count(ours)
        if found is None:
            raise InputError(
                "is needed in every row", path=file.name, row=number, field=names[ours],
                value="missing",
            )  # fmt: skip
        return found

    session = word("session")
    if session is None:
        raise InputError(
            "is needed in every row", path=file.name, row=number, field=names["session"],
            value="missing",
        )  # fmt: skip
    input_tokens = needed_count("input_tokens")
    cached_tokens = count("cached_tokens")
    cache_read_tokens = count("cache_read_input_tokens")
    cache_creation_tokens = count("cache_creation_input_tokens")
    if cache_read_tokens is not None or cache_creation_tokens is not None:
        # The usage of Anthropic's interface: three counts that exclude each other.
        input_tokens += (cache_read_tokens or 0) + (cache_creation_tokens or 0)
        cached_tokens = cache_read_tokens if cached_tokens is None else cached_tokens
        if input_tokens > TOKENS_MAX:
            raise broken("input_tokens", f"must be at most {TOKENS_MAX} with the cached tokens")
    row = Row(
        number,
        session,
        input_tokens,
        needed_count("output_tokens"),
        cached_tokens,
        count("reasoning_tokens"),
        _seconds(raw("timestamp"), lambda rule: broken("timestamp", rule)),
        word("agent"),
        word("parent"),
        word("model"),
        word("turn"),
    )
    if row.cached_tokens is not None and row.cached_tokens > row.input_tokens:
        raise broken(
            "cached_tokens", f"must be at most input_tokens ({row.input_tokens}), which include it"
        )
    if row.reasoning_tokens is not None and row.reasoning_tokens > row.output_tokens:
        raise broken(
            "reasoning_tokens",
            f"must be at most output_tokens ({row.output_tokens}), which include it",
        )
    return row


def _seconds(value: object, broken: Any) -> float | None:  # noqa: ANN401 - a closure of ours
    if value is None:
        return None
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    try:
        number = float(cast(Any, value))
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError):
        try:
            stamp = datetime.fromisoformat(str(value).strip())
        except ValueError as fault:
            raise broken("must be seconds since the epoch, or ISO 8601") from fault
        return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(number):
        raise broken("must be a finite time")
    for least, per_second in TIME_UNITS:
        if abs(number) >= least:
            return number / per_second
    return number

"""Reader of per-request tables: CSV, TSV, JSONL or Parquet, as a proxy or an engine logs them.

One row a request. Needed columns: `session`, `input_tokens` (the whole input, cached tokens
included) and `output_tokens` (reasoning included). Optional: `cached_tokens`, `reasoning_tokens`,
`timestamp` (when the request came in: seconds since the epoch, larger numbers as milli-, micro- or
nanoseconds, or ISO 8601), `agent`, `parent` (the agent that spawned this one), `model`, `turn` (a
change of value in the lead's rows opens a turn). Other names are mapped: ``--map
session=trace_id``.

**Order.** By timestamp where every row of a session has one, else by row.

**Agents.** The agent of a session's first row without a parent is the lead. Another one is spawned
by the latest request of its parent (the lead, where none is named) before its first row, and
returns to the parent's first request after its last row. Where its parent has no earlier request it
becomes a session of its own, counted.

**Context** is recovered from counts alone. Inputs shorter than what came before are counted
(`adjusted`); if they are many, the log's `input_tokens` may leave out the cached part. The prompt's
length is the first request's cache hit, where there is one. Tools are not in the table, so every
latency is drawn. Without `turn` each session is one turn, which is counted.

**Left out**, counted: requests without output (`output_tokens` 0), rows with neither token count
(tables that also hold messages or tool calls), and columns that have no meaning here.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq

from lachesis.errors import InputError
from lachesis.traces.builder import SessionBuilder, TraceBuilder
from lachesis.traces.logged import LEAD
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.schema import TOKENS_MAX

NEEDED: Final = ("session", "input_tokens", "output_tokens")
OPTIONAL: Final = (
    "cached_tokens",
    "reasoning_tokens",
    "timestamp",
    "agent",
    "parent",
    "model",
    "turn",
)
COLUMNS: Final = NEEDED + OPTIONAL
_DESCRIPTION: Final = __doc__ or ""
_PARQUET_MAGIC: Final = b"PAR1"
# Epoch seconds of the year 5138 end where milliseconds of 1973 begin, and so on upwards.
_TIME_UNITS: Final = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))


class _Row(NamedTuple):
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


class TableReader:
    """Generic table, one row a request."""

    name = "table"
    description = _DESCRIPTION

    def recognises(self, file: SourceFile) -> bool:
        """Whether the needed columns are there under their own names."""
        return self.recognises_with(file, {})

    def recognises_with(self, file: SourceFile, columns: Mapping[str, str]) -> bool:
        """Whether the needed columns are there, some of them under the names in `columns`."""
        try:
            present = _column_names(file)
        except InputError:
            return False
        return all(columns.get(name, name) in present for name in NEEDED)

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push every session of every file; a session name is local to its file."""
        for name in options.columns:
            if name not in COLUMNS:
                raise InputError(
                    f"no such column to map; there are {', '.join(COLUMNS)}",
                    field="map",
                    value=name,
                )
        for file in files:
            names = _names_in_file(file, options.columns)
            for column in _column_names(file):
                if column not in names.values():
                    builder.ignore(f"column {column}")
            sessions: dict[str, list[_Row]] = {}
            for number, values in _rows(file):
                if all(values.get(names[ours]) in (None, "") for ours in NEEDED[1:]):
                    builder.drop("row without token counts")
                    continue
                row = _parsed(file, number, values, names)
                if row.output_tokens == 0:
                    builder.exclude("request without output")
                    continue
                sessions.setdefault(row.session, []).append(row)
            if not sessions:
                builder.skip(file.name, "holds no request with output")
            if "turn" not in names:
                builder.fill("turn", "none in the table: a session is one turn", len(sessions))
            for session, rows in sessions.items():
                _push_session(file, session, rows, builder)


READER = TableReader()


def _column_names(file: SourceFile) -> list[str]:
    """The file's columns, from its head; raises `InputError` where it is no table at all."""
    if file.head.startswith(_PARQUET_MAGIC):
        return list(_parquet(file).schema_arrow.names)
    first, _, rest = file.head.lstrip(b"\xef\xbb\xbf").lstrip().partition(b"\n")
    if first.startswith(b"{"):
        try:
            row = json.loads(first)
        except ValueError as fault:
            raise InputError(f"not valid JSON: {fault}", path=file.name, row=1) from fault
        # Optional columns may be absent from the first row, so a look at some more.
        names = dict.fromkeys(row)
        for line in rest.split(b"\n")[:-1]:
            try:
                more = json.loads(line)
            except ValueError:
                break  # reading the rows reports it with its line
            if isinstance(more, dict):
                names.update(dict.fromkeys(more))
        return list(names)
    try:
        header = first.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise InputError("is no table: its first line is no text", path=file.name) from fault
    return [name.strip() for name in next(csv.reader([header], delimiter=_delimiter(header)), [])]


def _delimiter(header: str) -> str:
    return max((",", "\t", ";"), key=lambda mark: (header.count(mark), mark == ","))


def _parquet(file: SourceFile) -> pq.ParquetFile:
    try:
        if file.path.suffix.lower() in (".gz", ".zst"):
            return pq.ParquetFile(pa.BufferReader(file.read_bytes()))
        return pq.ParquetFile(file.path)
    except (pa.ArrowException, OSError) as fault:
        raise InputError(f"no valid Parquet: {str(fault).splitlines()[0]}", path=file.name) from (
            fault
        )


def _names_in_file(file: SourceFile, mapped: Mapping[str, str]) -> dict[str, str]:
    """Our column names to the file's, for those that it has."""
    present = _column_names(file)
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
    missing = [ours for ours in NEEDED if names[ours] not in present]
    if missing:
        raise InputError(
            f"needed column {', '.join(missing)} is missing; there are {shown} "
            f"(--map {missing[0]}=NAME)",
            path=file.name,
        )
    return {ours: theirs for ours, theirs in names.items() if theirs in present}


def _rows(file: SourceFile) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Rows as mappings, with line numbers (row numbers from 1 for Parquet)."""
    if file.head.startswith(_PARQUET_MAGIC):
        number = 0
        for batch in _parquet(file).iter_batches():
            for values in batch.to_pylist():
                number += 1
                yield number, values
        return
    if file.head.lstrip(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        for number, value in file.json_lines():
            if not isinstance(value, dict):
                raise InputError("must be an object", path=file.name, row=number, value=value)
            yield number, value
        return
    yield from _csv_rows(file)


def _csv_rows(file: SourceFile) -> Iterator[tuple[int, Mapping[str, Any]]]:
    names = _column_names(file)
    first = file.head.lstrip(b"\xef\xbb\xbf").partition(b"\n")[0].decode("utf-8")
    with file.open() as stream:
        text = io.TextIOWrapper(cast(Any, stream), encoding="utf-8-sig", newline="")
        reader = csv.reader(text, delimiter=_delimiter(first), strict=True)
        try:
            next(reader, None)
            for values in reader:
                if not values:
                    continue
                if len(values) != len(names):
                    raise InputError(
                        f"has {len(values)} fields, the header {len(names)}",
                        path=file.name,
                        row=reader.line_num,
                    )
                yield reader.line_num, dict(zip(names, values, strict=True))
        except (csv.Error, UnicodeDecodeError, OSError, EOFError) as fault:
            raise InputError(
                f"not valid CSV: {fault}", path=file.name, row=reader.line_num + 1
            ) from fault


def _parsed(
    file: SourceFile, number: int, values: Mapping[str, Any], names: Mapping[str, str]
) -> _Row:
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
        return None if value is None else str(value).strip()

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
    row = _Row(
        number,
        session,
        needed_count("input_tokens"),
        needed_count("output_tokens"),
        count("cached_tokens"),
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
    except (TypeError, ValueError):
        try:
            stamp = datetime.fromisoformat(str(value).strip())
        except ValueError as fault:
            raise broken("must be seconds since the epoch, or ISO 8601") from fault
        return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(number):
        raise broken("must be a finite time")
    for least, per_second in _TIME_UNITS:
        if abs(number) >= least:
            return number / per_second
    return number


def _push_session(file: SourceFile, name: str, rows: list[_Row], builder: TraceBuilder) -> None:
    if all(row.timestamp_s is not None for row in rows):
        rows.sort(key=lambda row: cast(float, row.timestamp_s))
    lead = next((row.agent for row in rows if row.parent is None), rows[0].agent)
    agents: dict[str | None, list[int]] = {}
    for index, row in enumerate(rows):
        agents.setdefault(row.agent, []).append(index)
    spawned_by: dict[str | None, int | None] = {}
    orphans: list[str | None] = []
    for agent, indices in agents.items():
        if agent == lead:
            continue
        parent = next((rows[i].parent for i in indices if rows[i].parent is not None), lead)
        # Agents come in order of first row, so a parent among them was settled before.
        known = parent == lead or (parent in spawned_by and parent not in orphans)
        before = [i for i in agents.get(parent, []) if i < indices[0]] if known else []
        spawned_by[agent] = before[-1] if before else None
        if not before:
            orphans.append(agent)

    workload = Path(file.name).name.split(".")[0]

    def open_session(session: str, *, orphan: bool) -> SessionBuilder:
        return builder.session(
            session,
            workload=workload,
            harness="table",
            source=file.name,
            orphan=orphan,
        )

    whole = open_session(name, orphan=False)
    handles: dict[int, int] = {}
    turn: str | None = None
    for index, row in enumerate(rows):
        if row.agent in orphans:
            continue
        is_lead = row.agent == lead
        opens = is_lead and row.turn is not None and turn is not None and row.turn != turn
        if is_lead and row.turn is not None:
            turn = row.turn
        if not is_lead and agents[row.agent][0] == index:
            by = spawned_by[row.agent]
            assert by is not None, "Invariant: who has no spawn is an orphan"
            whole.spawn(row.agent, spawned_by=handles[by], model=row.model)
        handles[index] = _push(whole, row, LEAD if is_lead else row.agent, opens_turn=opens)
    for agent, indices in agents.items():
        by = spawned_by.get(agent)
        if by is None:
            continue
        after = [i for i in agents[rows[by].agent] if i > indices[-1]]
        if after:
            whole.returns(agent, to=handles[after[0]])
    for agent in orphans:
        own = open_session(f"{name}/{agent}", orphan=True)
        for index in agents[agent]:
            _push(own, rows[index], LEAD, opens_turn=False)


def _push(session: SessionBuilder, row: _Row, agent: object, *, opens_turn: bool) -> int:
    return session.request(
        agent=cast(Any, agent),
        opens_turn=opens_turn,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        reasoning_tokens=row.reasoning_tokens or 0,
        model=row.model,
        start_s=row.timestamp_s,
        reported_cached_tokens=row.cached_tokens,
        row=row.number,
    )

"""Reader of per-request tables: CSV, TSV, JSONL or Parquet, as a proxy or an engine logs them.

One row a request. Needed columns: `session`, `input_tokens` (the whole input, cached tokens
included) and `output_tokens` (reasoning included). Optional: `cached_tokens`, `reasoning_tokens`,
`timestamp` (when the request came in: seconds since the epoch, larger numbers as milli-, micro- or
nanoseconds, or ISO 8601), `agent`, `parent` (the agent that spawned this one), `model`, `turn` (a
change of value in the lead's rows opens a turn). Where there are `cache_read_input_tokens` and
`cache_creation_input_tokens` (or `cache_read`, `cache_creation`), as in the usage of Anthropic's
interface, `input_tokens` is what neither of them holds, and the input is the sum of the three.
Other names are mapped: ``--map session=trace_id``.

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

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

import msgspec

from lachesis.errors import InputError
from lachesis.traces.builder import TraceBuilder
from lachesis.traces.logged import LEAD
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.readers.session_rows import SessionBlock, SessionRows, known_seconds
from lachesis.traces.readers.table_columns import checked_rows, table_columns
from lachesis.traces.readers.table_rows import (
    COLUMNS,
    NEEDED,
    Row,
    column_names,
    names_in_file,
    rows_of,
)
from lachesis.traces.record_groups import NameNumbers, RecordGroups
from lachesis.traces.session_builder import SessionBuilder

_DESCRIPTION: Final = __doc__ or ""
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Row)


class TableReader:
    """Generic table, one row a request."""

    name = "table"
    joins_files = False
    description = _DESCRIPTION

    def recognises(self, file: SourceFile) -> bool:
        """Whether the needed columns are there under their own names."""
        return self.recognises_with(file, {})

    def recognises_with(self, file: SourceFile, columns: Mapping[str, str]) -> bool:
        """Whether the needed columns are there, some of them under the names in `columns`."""
        try:
            present = column_names(file)
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
            names = names_in_file(file, options.columns)
            for column in column_names(file):
                if column not in names.values():
                    builder.ignore(f"column {column}")
            if "agent" in names or "parent" in names:
                _push_with_agents(file, names, builder, options)
            else:
                _push_by_columns(file, names, builder, options)


READER = TableReader()


def _push_by_columns(
    file: SourceFile, names: Mapping[str, str], builder: TraceBuilder, options: ReadOptions
) -> None:
    sessions = SessionRows(options.scratch)
    for columns in table_columns(file, names, builder):
        sessions.append(columns)
    _note_sessions(file, names, len(sessions), builder)
    for block in sessions:
        requests = block.counted(opens_turn=block.changes_of_turn())
        builder.add_counted(
            requests,
            requests.grow(),
            block.names,
            partial(_push_of_block, file, block, builder),
            workload=file.workload,
            harness="table",
            source=file.name,
            stripping="auto",
        )


def _push_of_block(
    file: SourceFile, block: SessionBlock, builder: TraceBuilder, place: int
) -> None:
    name = block.names[place]
    rows = [
        Row(
            number=int(each["row"]),
            session=name,
            input_tokens=int(each["input_tokens"]),
            output_tokens=int(each["output_tokens"]),
            cached_tokens=int(each["cached_tokens"]) if each["cached_tokens"] >= 0 else None,
            reasoning_tokens=int(each["reasoning_tokens"])
            if each["reasoning_tokens"] >= 0
            else None,
            timestamp_s=known_seconds(each["start_s"]),
            agent=None,
            parent=None,
            model=model,
            turn=str(each["turn"]) if each["turn"] else None,
        )
        for each, model in zip(*block.of(place), strict=True)
    ]
    _push_session(file, name, rows, builder)


def _push_with_agents(
    file: SourceFile, names: Mapping[str, str], builder: TraceBuilder, options: ReadOptions
) -> None:
    numbers = NameNumbers()
    sessions = RecordGroups(options.scratch)
    for row in checked_rows(file, rows_of(file), names, builder):
        sessions.append(numbers.of(row.session), _ENCODER.encode(row))
    _note_sessions(file, names, len(numbers), builder)
    for _, records in sessions:
        rows = [_DECODER.decode(record) for record in records]
        _push_session(file, rows[0].session, rows, builder)


def _note_sessions(
    file: SourceFile, names: Mapping[str, str], count: int, builder: TraceBuilder
) -> None:
    if not count:
        builder.skip(file.name, "holds no request with output")
    if "turn" not in names:
        builder.fill("turn", "none in the table: a session is one turn", count)


def _push_session(file: SourceFile, name: str, rows: list[Row], builder: TraceBuilder) -> None:
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

    workload = file.workload

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
    builder.finish(whole)
    for agent in orphans:
        own = open_session(f"{name}/{agent}", orphan=True)
        for index in agents[agent]:
            _push(own, rows[index], LEAD, opens_turn=False)
        builder.finish(own)


def _push(session: SessionBuilder, row: Row, agent: object, *, opens_turn: bool) -> int:
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

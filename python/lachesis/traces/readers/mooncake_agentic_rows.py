"""Rows of agentic Mooncake traces, of both versions, as requests with what they wait for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

import msgspec

from lachesis.errors import InputError
from lachesis.traces.readers.json_rows import decoded_lines
from lachesis.traces.readers.mooncake_rows import Milliseconds, MooncakeRow, block_size
from lachesis.traces.readers.protocol import SourceFile
from lachesis.traces.tool_classes import tool_class

SCHEMA: Final = "dynamo.agentic_mooncake"
_VERSION: Final = 2


class _ToolEvent(msgspec.Struct):
    tool_class: str


class _Row(MooncakeRow, kw_only=True):
    """A row of version 1."""

    request_id: str
    wait_for: list[str] = msgspec.field(default_factory=list)
    branches: list[str] = msgspec.field(default_factory=list)
    prefix_reset: bool = False
    tool_wait_ms: Milliseconds | None = None
    tool_events: list[_ToolEvent] = msgspec.field(default_factory=list)


class _Dependency(msgspec.Struct):
    request_id: str
    trigger: Literal["dispatch", "completion"]
    relation: Literal["sequence", "spawn", "join", "replay_barrier"]
    delay_ms: Milliseconds


class _LineOfVersion2(MooncakeRow, kw_only=True):
    """The header, which names a schema, or a row."""

    schema: str | None = None
    version: int | None = None
    block_size: Annotated[int, msgspec.Meta(ge=1, le=2**31)] | None = None
    hash_id_scope: str | None = None
    request_id: str | None = None
    play_id: str | None = None
    session_id: str | None = None
    model: str | None = None
    not_before_ms: Milliseconds | None = None
    dependencies: list[_Dependency] = msgspec.field(default_factory=list)


_DECODER: Final = msgspec.json.Decoder(_Row)
_DECODER_OF_VERSION_2: Final = msgspec.json.Decoder(_LineOfVersion2)


class AgenticRequest(msgspec.Struct, kw_only=True):
    """A row that is a request, and where it belongs.

    Attributes:
        agent: the agent's id, one in the file.
        delay_s: the wait after the agent's previous request; `delays_s` after others, by id, where
            these are their own.
        wait_for: ids of requests that must be over first; `barriers` are those of them that only
            the order of the recording asks for.
        spawned_by: the request that started this one's agent, where the row says so.
        branches: ids of first requests of agents that this one started.
        dispatched: how many waits count from another request's start.
    """

    row: int
    id: str
    agent: str
    input_tokens: int
    output_tokens: int
    model: str | None = None
    start_s: float | None = None
    delay_s: float | None = None
    delays_s: dict[str, float] = msgspec.field(default_factory=dict)
    wait_for: list[str] = msgspec.field(default_factory=list)
    barriers: frozenset[str] = frozenset()
    spawned_by: str | None = None
    branches: list[str] = msgspec.field(default_factory=list)
    dispatched: int = 0
    resets: bool = False
    consumed: list[str] = msgspec.field(default_factory=list)
    waits_for_tools: bool = False
    called: list[str] | None = None

    def wait_s(self, name: str) -> float:
        """The wait after the request of this id."""
        return self.delays_s.get(name, self.delay_s or 0.0)


def _request(row: int, name: str, agent: str, tokens: tuple[int, int]) -> AgenticRequest:
    return AgenticRequest(
        row=row, id=name, agent=agent, input_tokens=tokens[0], output_tokens=tokens[1]
    )


class AgenticRows:
    """The requests of a file, in its order, each with the ids of its blocks."""

    def __init__(self, file: SourceFile, first: object) -> None:
        self.file = file
        header = first if isinstance(first, dict) and "schema" in first else None
        self.has_header = header is not None
        if header is None:
            self.block_tokens = block_size(file, _DECODER)
            return
        if header.get("version") != _VERSION:
            raise self._broken(
                "version", header.get("version"), "must be 2 (version 1 has no header)"
            )
        if header.get("hash_id_scope") != "local":
            raise self._broken("hash_id_scope", header.get("hash_id_scope"), "must be local")
        size = header.get("block_size")
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise self._broken("block_size", size, "must be a number of tokens")
        self.block_tokens = size

    def read(self, dropped: list[str]) -> Iterator[tuple[AgenticRequest, list[int]]]:
        """Every request with its block ids; a cut-off last line is put in `dropped`."""
        if self.has_header:
            yield from self._version_2(dropped)
            return
        for number, _, row in decoded_lines(self.file, _DECODER, dropped):
            tokens = row.input(self.block_tokens, self.file, number), row.output(self.file, number)
            agent = str(row.session_id) if row.session_id is not None else row.request_id
            request = _request(number, row.request_id, agent, tokens)
            request.start_s = row.start_s()
            tools_s = None if row.tool_wait_ms is None else row.tool_wait_ms / 1000
            waits = [wait for wait in (row.wait_s(), tools_s) if wait is not None]
            request.delay_s = sum(waits) if waits else None
            request.wait_for = list(dict.fromkeys(row.wait_for))
            request.branches = row.branches
            request.resets = row.prefix_reset
            request.consumed = [str(tool_class(event.tool_class)) for event in row.tool_events]
            request.waits_for_tools = bool(row.tool_wait_ms)
            yield request, row.hash_ids or []

    def _version_2(self, dropped: list[str]) -> Iterator[tuple[AgenticRequest, list[int]]]:
        for number, _, row in decoded_lines(self.file, _DECODER_OF_VERSION_2, dropped):
            if row.schema is not None:
                if number > 1:
                    raise InputError("a header stands in the first line only", path=self.file.name,
                                     row=number, field="schema", value=row.schema)  # fmt: skip
                continue
            for field in ("request_id", "play_id", "session_id", "not_before_ms"):
                if getattr(row, field) is None:
                    raise InputError("is needed in every row", path=self.file.name, row=number,
                                     field=field, value="missing")  # fmt: skip
            tokens = row.input(self.block_tokens, self.file, number), row.output(self.file, number)
            # Names of sessions, and block ids, are a play's own.
            agent = f"{row.play_id}/{row.session_id}"
            request = _request(number, str(row.request_id), agent, tokens)
            request.model = row.model
            request.start_s = (row.not_before_ms or 0.0) / 1000
            for each in row.dependencies:
                request.wait_for.append(each.request_id)
                at_dispatch = each.trigger == "dispatch"
                request.dispatched += at_dispatch
                wait_s = 0.0 if at_dispatch else each.delay_ms / 1000
                longest_s = max(wait_s, request.delays_s.get(each.request_id, 0.0))
                request.delays_s[each.request_id] = longest_s
                if each.relation == "spawn":
                    request.spawned_by = each.request_id
            request.wait_for = list(dict.fromkeys(request.wait_for))
            request.barriers = frozenset(
                each.request_id for each in row.dependencies if each.relation == "replay_barrier"
            )
            yield request, row.hash_ids or []

    def _broken(self, field: str, value: object, rule: str) -> InputError:
        shown = "missing" if value is None else value
        return InputError(rule, path=self.file.name, row=1, field=field, value=shown)

"""Reader of agentic Mooncake traces (DynoSim, version 1): JSONL, one request a line, with its DAG.

To Mooncake's columns come `request_id`, `session_id` (one agent's requests), `wait_for` (requests
that must be over first), `branches` (requests of agents that this one started), `prefix_reset` (the
context starts anew), `delay` and `tool_wait_ms` (waits after `wait_for`), and `tool_events`.

**Agents and sessions.** All rows of one `session_id` are one agent, in the order of the file. It is
a sub-agent of the agent whose request names its first one in `branches`, else of the agent whose
latest request its first one waits for; a sub-agent returns to its parent's requests that wait for
it. An agent without a parent is the lead of a session, with all agents below it.

**Edges.** The agent's previous request, spawn and return; a wait for an agent that is neither
parent nor child is kept as an edge of kind `tool`; one for a request of another session is dropped
and counted. `delay` + `tool_wait_ms` is the delay of every edge of the request. The tools in
`tool_events` were called by the request before.

**Context** is matched by block hashes (`block_chains`), without them by counts; `prefix_reset`
starts it from nothing. **Turns**: none in the trace: a session is one turn, counted. **Times** are
seconds on the trace's own clock; no request has an end. **Left out**, counted: requests without
output, and waits for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Final

import msgspec

from lachesis.errors import InputError
from lachesis.traces.builder import TraceBuilder
from lachesis.traces.logged import LEAD, Edge
from lachesis.traces.readers.block_chains import BlockContext, blocks_of
from lachesis.traces.readers.context_pieces import RequestParts
from lachesis.traces.readers.json_head import first_object
from lachesis.traces.readers.json_rows import decoded_lines
from lachesis.traces.readers.mooncake import Milliseconds, MooncakeRow, block_size
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.schema import EdgeKind
from lachesis.traces.session_builder import SessionBuilder
from lachesis.traces.tool_classes import tool_class

_DESCRIPTION: Final = __doc__ or ""


class _ToolEvent(msgspec.Struct):
    tool_class: str


class _Row(MooncakeRow, kw_only=True):
    request_id: str
    wait_for: list[str] = msgspec.field(default_factory=list)
    branches: list[str] = msgspec.field(default_factory=list)
    prefix_reset: bool = False
    tool_wait_ms: Milliseconds | None = None
    tool_events: list[_ToolEvent] = msgspec.field(default_factory=list)


_DECODER: Final = msgspec.json.Decoder(_Row)


class _Request:
    """A row that is a request, and where it belongs."""

    def __init__(self, file: SourceFile, number: int, row: _Row, block_tokens: int) -> None:
        self.row = number
        self.id = row.request_id
        self.agent = str(row.session_id) if row.session_id is not None else row.request_id
        self.input_tokens = row.input(block_tokens, file, number)
        self.output_tokens = row.output(file, number)
        self.start_s = row.start_s()
        waits = [wait for wait in (row.wait_s(), _seconds(row.tool_wait_ms)) if wait is not None]
        self.delay_s = sum(waits) if waits else None
        self.wait_for = list(dict.fromkeys(row.wait_for))
        self.branches = row.branches
        self.resets = row.prefix_reset
        self.consumed = [tool_class(event.tool_class) for event in row.tool_events]
        self.waits_for_tools = row.tool_wait_ms is not None and row.tool_wait_ms > 0
        self.called: list[str] | None = None
        self.parts: RequestParts | None = None


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


class AgenticMooncakeReader:
    """Agentic Mooncake traces."""

    name = "mooncake-agentic"
    description = _DESCRIPTION

    def recognises(self, file: SourceFile) -> bool:
        """JSONL whose first row has a request id and an output's length, or names the schema."""
        first = first_object(file)
        if first is None:
            return False
        if first.get("schema") == "dynamo.agentic_mooncake":
            return True
        length = "output_length" in first or ("output_tokens" in first and "hash_ids" in first)
        return "request_id" in first and length

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push every file; all its ids are local to it."""
        for file in files:
            first = first_object(file) or {}
            if "schema" in first:
                raise InputError("only version 1, which has no header, is read", path=file.name,
                                 row=1, field="version", value=first.get("version"))  # fmt: skip
            _File(file, builder).push()


READER = AgenticMooncakeReader()


class _File:
    """One file: its requests by id and by agent, and which agent hangs under which request."""

    def __init__(self, file: SourceFile, builder: TraceBuilder) -> None:
        self.file = file
        self.builder = builder
        self.block_tokens = block_size(file, _DECODER)
        self.requests: dict[str, _Request] = {}
        self.agents: dict[str, list[_Request]] = {}
        self.parent: dict[str, _Request] = {}

    def push(self) -> None:
        """Read all rows and push one session for each lead."""
        self._read()
        self._find_parents()
        families: dict[str, list[str]] = {}
        for agent in self.agents:
            families.setdefault(self._root(agent), []).append(agent)
        for root, family in families.items():
            self._push_family(root, family)
        if not families:
            self.builder.skip(self.file.name, "holds no request with output")

    def _read(self) -> None:
        silent: set[str] = set()
        dropped: list[str] = []
        contexts: dict[str, BlockContext] = {}
        for number, _, row in decoded_lines(self.file, _DECODER, dropped):
            request = _Request(self.file, number, row, self.block_tokens)
            if request.id in self.requests or request.id in silent:
                raise InputError("stands there twice", path=self.file.name, row=number,
                                 field="request_id", value=request.id)  # fmt: skip
            if not request.output_tokens:
                self.builder.exclude("request without output")
                silent.add(request.id)
                continue
            self.requests[request.id] = request
            own = self.agents.setdefault(request.agent, [])
            if own and request.consumed:
                own[-1].called = [str(kind) for kind in request.consumed]
            own.append(request)
            if request.agent not in contexts:
                contexts[request.agent] = BlockContext(self.block_tokens)
            contexts[request.agent].add(
                request.input_tokens,
                request.output_tokens,
                blocks_of(row.hash_ids or ()),
                reset=request.resets,
            )
        for reason in dropped:
            self.builder.drop(reason)
        for agent, own in self.agents.items():
            for request, parts in zip(own, contexts[agent].parts(), strict=True):
                request.parts = parts
        for request in self.requests.values():
            for field, names in (("wait_for", request.wait_for), ("branches", request.branches)):
                for name in names:
                    if name not in self.requests and name not in silent:
                        raise InputError("no request has this id", path=self.file.name,
                                         row=request.row, field=field, value=name)  # fmt: skip
            waits = [name for name in request.wait_for if name in self.requests]
            if len(waits) < len(request.wait_for):
                gone = len(request.wait_for) - len(waits)
                self.builder.drop("wait for a request without output", gone)
            request.wait_for = waits

    def _find_parents(self) -> None:
        for request in self.requests.values():
            for name in request.branches:
                child = self.requests.get(name)
                if child is not None and child is self.agents[child.agent][0]:
                    self._adopt(child, request)
        for own in self.agents.values():
            for name in own[0].wait_for:
                before = self.requests[name]
                known = self.parent.get(own[0].agent)
                if known is None or (known.agent == before.agent and known.row < before.row):
                    self._adopt(own[0], before)

    def _adopt(self, child: _Request, by: _Request) -> None:
        # A chain of parents that came back to the child would have no lead.
        if by.agent != child.agent and self._root(by.agent) != child.agent:
            self.parent[child.agent] = by

    def _root(self, agent: str) -> str:
        while agent in self.parent:
            agent = self.parent[agent].agent
        return agent

    def _push_family(self, root: str, family: list[str]) -> None:
        members = frozenset(family)
        session = self.builder.session(
            root,
            workload=Path(self.file.name).name.split(".")[0],
            harness="dynamo",
            source=self.file.name,
            stripping="off",
        )
        self.builder.fill("turn", "none in the trace: a session is one turn")
        handles: dict[str, int] = {}
        latest: dict[str, _Request] = {}
        for request in self._ordered(family):
            agent = LEAD if request.agent == root else request.agent
            is_first = request is self.agents[request.agent][0]
            if agent != LEAD and is_first:
                session.spawn(agent, spawned_by=handles[self.parent[request.agent].id])
            children: list[str] = []
            edges: list[Edge] = []
            for name in request.wait_for:
                before = self.requests[name]
                if before.agent not in members:
                    self.builder.drop("wait for a request of another session")
                elif before.agent in self.parent and (
                    self.parent[before.agent].agent == request.agent
                    and before is latest[before.agent]
                ):
                    children.append(before.agent)
                    edges.append(Edge(handles[name], EdgeKind.RETURN, request.delay_s or 0.0))
                elif before.agent != request.agent and before is not self.parent.get(request.agent):
                    edges.append(Edge(handles[name], EdgeKind.TOOL, request.delay_s or 0.0))
            handles[request.id] = self._push(session, agent, request, is_first, edges)
            latest[request.agent] = request
            for child in children:
                session.returns(child, to=handles[request.id])
        self.builder.finish(session)

    def _push(
        self,
        session: SessionBuilder,
        agent: int | str,
        request: _Request,
        is_first: bool,
        edges: list[Edge],
    ) -> int:
        assert request.parts is not None, "Invariant: every request has its parts"
        observations = len(request.consumed) or int(request.waits_for_tools)
        starts_alone = is_first and agent == LEAD
        return session.request(
            agent=agent,
            parts=request.parts.parts,
            output_parts=request.parts.output_parts,
            input_tokens=request.input_tokens,
            prompt_tokens=0 if is_first else None,
            output_tokens=request.output_tokens,
            observations=observations,
            tools=request.called,
            start_s=request.start_s,
            delay_s=None if starts_alone else request.delay_s,
            after=edges,
            row=request.row,
        )

    def _ordered(self, family: Sequence[str]) -> Iterable[_Request]:
        """The family's requests, each after what it waits for, else in the order of the file."""
        members = frozenset(family)
        waits: dict[str, int] = {}
        followers: dict[str, list[_Request]] = {}
        own = sorted(
            (request for agent in family for request in self.agents[agent]),
            key=lambda request: request.row,
        )
        for agent in family:
            for index, request in enumerate(self.agents[agent]):
                before = {self.requests[name].id for name in request.wait_for
                          if self.requests[name].agent in members}  # fmt: skip
                if index:
                    before.add(self.agents[agent][index - 1].id)
                elif agent in self.parent:
                    before.add(self.parent[agent].id)
                waits[request.id] = len(before)
                for name in before:
                    followers.setdefault(name, []).append(request)
        ready = [(request.row, request.id) for request in own if not waits[request.id]]
        heapify(ready)
        count = 0
        while ready:
            request = self.requests[heappop(ready)[1]]
            count += 1
            yield request
            for follower in followers.get(request.id, ()):
                waits[follower.id] -= 1
                if not waits[follower.id]:
                    heappush(ready, (follower.row, follower.id))
        if count < len(own):
            stuck = next(request for request in own if waits[request.id])
            raise InputError("requests wait for each other in a circle", path=self.file.name,
                             row=stuck.row, field="wait_for")  # fmt: skip

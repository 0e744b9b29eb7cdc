"""Reader of agentic Mooncake traces (DynoSim): JSONL, one request a line, with its DAG.

**Version 1.** To Mooncake's columns come `request_id`, `session_id` (one agent's requests),
`wait_for` (requests that must be over first), `branches` (requests of agents that this one
started), `prefix_reset` (the context starts anew), `delay` and `tool_wait_ms` (waits after
`wait_for`), and `tool_events`.

**Version 2** has a header (`schema`, `version`, `block_size`) and other columns: `play_id`, within
which names of sessions and block ids hold, `model`, `not_before_ms` (the earliest start) and
`dependencies`, each a request with its own delay, a relation (`sequence`, `spawn`, `join`, or
`replay_barrier`: only the recording's order) and a trigger. A wait that counts from another
request's `dispatch` is taken from its end on without delay, which is counted (`delay_s`).

**Agents and sessions.** All rows of one `session_id` are one agent, in the order of the file. It is
a sub-agent of the agent whose request spawned its first one (`branches`, `spawn`), else of the one
whose latest request its first one waits for; a sub-agent returns to its parent's requests that wait
for it. An agent without a parent is the lead of a session, with all agents below it.

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
from typing import Final

from lachesis.errors import InputError
from lachesis.traces.builder import TraceBuilder
from lachesis.traces.logged import LEAD, Edge
from lachesis.traces.readers.block_chains import BlockContext, blocks_of
from lachesis.traces.readers.context_pieces import RequestParts
from lachesis.traces.readers.json_head import first_object
from lachesis.traces.readers.mooncake_agentic_index import RequestAndBlocks, RequestIndex
from lachesis.traces.readers.mooncake_agentic_rows import SCHEMA, AgenticRequest, AgenticRows
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.schema import EdgeKind
from lachesis.traces.session_builder import SessionBuilder

_DESCRIPTION: Final = __doc__ or ""


class AgenticMooncakeReader:
    """Agentic Mooncake traces."""

    name = "mooncake-agentic"
    joins_files = False
    description = _DESCRIPTION

    def recognises(self, file: SourceFile) -> bool:
        """JSONL whose first row has a request id and an output's length, or names the schema."""
        first = first_object(file)
        if first is None:
            return False
        if first.get("schema") == SCHEMA:
            return True
        length = "output_length" in first or ("output_tokens" in first and "hash_ids" in first)
        return "request_id" in first and length

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push every file; all its ids are local to it."""
        for file in files:
            _File(file, builder, options).push()


READER = AgenticMooncakeReader()


class _File:
    """One file, and of the session that is being pushed all requests, by id and by agent."""

    def __init__(self, file: SourceFile, builder: TraceBuilder, options: ReadOptions) -> None:
        self.file = file
        self.builder = builder
        self.rows = AgenticRows(file, first_object(file))
        self.index = RequestIndex(options.scratch)
        self.requests: dict[str, AgenticRequest] = {}
        self.agents: dict[str, list[AgenticRequest]] = {}
        self.parent: dict[str, AgenticRequest] = {}
        self.parts: dict[str, RequestParts] = {}  # where counts alone do not tell what matched

    def push(self) -> None:
        """Read all rows and push one session for each lead."""
        dropped: list[str] = []
        self.index.read(self.rows, self.builder, dropped)
        for reason in dropped:
            self.builder.drop(reason)
        pushed = 0
        for family in self.index.families():
            self._take_family(family)
            self._push_family()
            pushed += 1
        if not pushed:
            self.builder.skip(self.file.name, "holds no request with output")

    def _take_family(self, family: Sequence[RequestAndBlocks]) -> None:
        self.requests, self.agents, self.parent = {}, {}, {}
        contexts: dict[str, BlockContext] = {}
        by_number: dict[int, AgenticRequest] = {}
        for request, blocks in family:
            self.requests[request.id] = request
            by_number[self.index.ids.of(request.id)] = request
            own = self.agents.setdefault(request.agent, [])
            if own and request.consumed:
                own[-1].called = request.consumed
            own.append(request)
            waits = [name for name in request.wait_for if not self.index.is_silent(name)]
            if len(waits) < len(request.wait_for):
                gone = len(request.wait_for) - len(waits)
                self.builder.drop("wait for a request without output", gone)
            request.wait_for = waits
            context = contexts.setdefault(request.agent, BlockContext(self.rows.block_tokens))
            context.add(
                request.input_tokens,
                request.output_tokens,
                blocks_of(blocks),
                reset=request.resets,
            )
        self.parts = {}
        for agent, own in self.agents.items():
            if not contexts[agent].only_grows or len({request.model for request in own}) > 1:
                for request, parts in zip(own, contexts[agent].parts(), strict=True):
                    self.parts[request.id] = parts
            if (by := self.index.parent_of(agent)) >= 0:
                self.parent[agent] = by_number[by]

    def _push_family(self) -> None:
        (root,) = (agent for agent in self.agents if agent not in self.parent)
        session = self.builder.session(
            root,
            workload=self.file.workload,
            harness="dynamo",
            source=self.file.name,
            stripping="off",
        )
        self.builder.fill("turn", "none in the trace: a session is one turn")
        handles: dict[str, int] = {}
        latest: dict[str, AgenticRequest] = {}
        for request in self._ordered():
            agent = LEAD if request.agent == root else request.agent
            if agent != LEAD and request.agent not in latest:
                session.spawn(agent, spawned_by=handles[self.parent[request.agent].id])
            children: list[str] = []
            edges: list[Edge] = []
            for name in request.wait_for:
                before = self.requests.get(name)
                if before is None:
                    self.builder.drop("wait for a request of another session")
                elif (
                    name not in request.barriers
                    and before.agent in self.parent
                    and (
                        self.parent[before.agent].agent == request.agent
                        and before is latest[before.agent]
                    )
                ):
                    children.append(before.agent)
                    edges.append(Edge(handles[name], EdgeKind.RETURN, request.wait_s(name)))
                elif before.agent != request.agent and before is not self.parent.get(request.agent):
                    edges.append(Edge(handles[name], EdgeKind.TOOL, request.wait_s(name)))
            handles[request.id] = self._push(
                session, agent, request, latest.get(request.agent), edges
            )
            latest[request.agent] = request
            for child in children:
                session.returns(child, to=handles[request.id])
        self.builder.finish(session)

    def _push(
        self,
        session: SessionBuilder,
        agent: int | str,
        request: AgenticRequest,
        before: AgenticRequest | None,
        edges: list[Edge],
    ) -> int:
        parts = self.parts.get(request.id)
        observations = len(request.consumed) or int(request.waits_for_tools)
        starts_alone = before is None and agent == LEAD
        delay_s = request.delay_s
        if request.delays_s:
            # Each wait has its own; one that the row does not name adds nothing to the others.
            by = request.spawned_by if before is None else before.id
            delay_s = request.delays_s.get(by or "", 0.0)
        return session.request(
            agent=agent,
            parts=None if parts is None else parts.parts,
            output_parts=None if parts is None else parts.output_parts,
            input_tokens=request.input_tokens,
            prompt_tokens=0 if before is None else None,
            output_tokens=request.output_tokens,
            observations=observations,
            tools=request.called,
            start_s=request.start_s,
            delay_s=None if starts_alone else delay_s,
            model=request.model,
            after=edges,
            row=request.row,
        )

    def _ordered(self) -> Iterable[AgenticRequest]:
        """The session's requests, each after what it waits for, else in the order of the file."""
        waits: dict[str, int] = {}
        followers: dict[str, list[AgenticRequest]] = {}
        own = sorted(self.requests.values(), key=lambda request: request.row)
        for agent, of_agent in self.agents.items():
            for index, request in enumerate(of_agent):
                before = {name for name in request.wait_for if name in self.requests}
                if index:
                    before.add(of_agent[index - 1].id)
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

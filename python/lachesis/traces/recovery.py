"""From one logged session to rows of the trace: order, contexts, and segments from chunk deaths.

A segment is the chunks of one group of one agent that die at one boundary. They always lie next to
each other in the context, since a boundary kills from some point to the end.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import accumulate, chain, repeat
from math import isfinite
from operator import attrgetter
from typing import Literal, Protocol

from lachesis.errors import InputError
from lachesis.traces.agent_recovery import AgentRecovery
from lachesis.traces.context import Chunk, Step
from lachesis.traces.logged import LEAD, LoggedRequest, LoggedSpawn, Stripping
from lachesis.traces.ordering import OrderedRequest, order_requests
from lachesis.traces.prompts import PromptKey
from lachesis.traces.quality import Quality
from lachesis.traces.rows import Rows
from lachesis.traces.schema import TOKENS_MAX, Boundary, SegmentClass, Status
from lachesis.traces.stripping import recognise_stripping

# By names of their own: before Python 3.12, asking an enum for a member is slow.
_SESSION_END = Boundary.SESSION_END
_OK = Status.OK


class LoggedSession(Protocol):
    """What recovery needs of a session that was pushed."""

    name: str
    workload: str
    harness: str
    source: str
    starts_midway: bool
    ends_open: bool
    stripping: Stripping
    recorded_delays: bool
    requests: list[LoggedRequest]
    spawns: dict[Hashable, LoggedSpawn]


def recover_session(
    session: LoggedSession,
    rows: Rows,
    quality: Quality,
    prompt_lengths: Mapping[PromptKey, int],
) -> None:
    """Append `session` to `rows`; raises `InputError` with the source's row for a broken value."""
    requests = session.requests
    for request in requests:
        _check_counts(request, session)
    stripping: Literal["turn", "round", "off"]
    if session.stripping == "auto":
        stripping = recognise_stripping(requests, LEAD)
        quality.fill("stripping", f"recognised: {stripping}")
    else:
        stripping = session.stripping
    ordered = order_requests(
        requests,
        session.spawns,
        lead=LEAD,
        recorded_delays=session.recorded_delays,
        source=session.source,
        session=session.name,
        quality=quality,
    )
    requests = [requests[each.handle] for each in ordered]
    number_of_agent = _number_agents(requests)
    recoveries = {
        agent: AgentRecovery(
            agent=number,
            long_class=SegmentClass.LEAD
            if agent == LEAD
            else SegmentClass(session.spawns[agent].role),
            stripping=stripping,
            is_lead=agent == LEAD,
            starts_midway=session.starts_midway and agent == LEAD,
            quality=quality,
            prompt_lengths=prompt_lengths,
        )
        for agent, number in number_of_agent.items()
    }
    steps = [
        recoveries[request.agent].step(
            request, number=each.number, handle=each.handle, turn=each.turn
        )
        for request, each in zip(requests, ordered, strict=True)
    ]
    last = len(ordered) - 1
    for recovery in recoveries.values():
        recovery.finish(last_request=last)

    rows.sessions["session"].append(session.name)
    rows.sessions["workload"].append(session.workload)
    rows.sessions["harness"].append(session.harness)
    rows.sessions["source"].append(session.source)
    rows.sessions["starts_midway"].append(session.starts_midway)
    rows.sessions["ends_open"].append(session.ends_open)
    segments = _Segments(rows, last)
    stacks = {agent: _Stack(number, segments) for agent, number in number_of_agent.items()}
    output_segments = [
        stacks[request.agent].play(step) for request, step in zip(requests, steps, strict=True)
    ]
    del steps, recoveries  # of a long session they take much room
    agents = [number_of_agent[request.agent] for request in requests]
    _append_requests(rows, requests, ordered, agents, output_segments)
    _append_spans(rows, segments)
    _append_spawns(rows, session, ordered, number_of_agent, quality)
    rows.rows_of_session["segments"].append(len(segments.ids))


class _Segments:
    """Segment ids of one session, given at first mention, and the spans made of them."""

    def __init__(self, rows: Rows, last_request: int) -> None:
        self.columns = rows.segments
        self.last_request = last_request
        self.ids: dict[object, int] = {}
        self.shared_written: set[int] = set()
        self.spans: list[tuple[int, int, bool]] = []  # segment, tokens and whether written
        self.span_counts: list[int] = []  # of each request

    def of(self, chunk: Chunk, agent: int) -> int:
        """The chunk's segment; a prompt with a key is one segment for the whole session."""
        segment_class, group, prefix_key = chunk.group
        closed_by, closed_after = chunk.closed_by, chunk.closed_after
        key: object
        if prefix_key is not None:
            key = prefix_key
            closed_by, closed_after = _SESSION_END, self.last_request
        else:
            key = (agent, segment_class, group, closed_by, closed_after)
        segment = self.ids.get(key)
        if segment is None:
            assert closed_by is not None, "Invariant: every chunk was closed by finish()"
            segment = self.ids[key] = len(self.ids)
            columns = self.columns
            columns["segment"].append(segment)
            columns["class"].append(segment_class)
            columns["agent"].append(agent)
            columns["closed_by"].append(closed_by)
            columns["closed_after"].append(closed_after)
            columns["prefix_key"].append(prefix_key)
        return segment


class _Stack:
    """An agent's context while its spans are written out.

    `chunks` holds every live chunk; `runs` gathers neighbours of one segment as [segment, tokens,
    chunks], without empty inputs, which are in no segment.
    """

    def __init__(self, agent: int, segments: _Segments) -> None:
        self.agent = agent
        self.segments = segments
        self.chunks: list[Chunk] = []
        self.runs: list[list[int]] = []

    def play(self, step: Step) -> int:
        """Append the spans of the next request; returns the segment of its output."""
        segments = self.segments
        while len(self.chunks) > step.kept:
            self._pop()
        spans = [(segment, tokens, False) for segment, tokens, _ in self.runs if tokens]
        for chunk in step.written:
            tokens = chunk.tokens
            if not tokens:
                self.chunks.append(chunk)
                continue
            segment = self._push(chunk)
            if chunk.group[2] is not None:
                # Another agent of the session may have written this prompt before.
                spans.append((segment, tokens, segment not in segments.shared_written))
                segments.shared_written.add(segment)
            elif spans and spans[-1][0] == segment and spans[-1][2]:
                spans[-1] = (segment, spans[-1][1] + tokens, True)
            else:
                spans.append((segment, tokens, True))
        segments.spans += spans
        segments.span_counts.append(len(spans))
        return self._push(step.output)

    def _push(self, chunk: Chunk) -> int:
        segment = chunk.segment = self.segments.of(chunk, self.agent)
        self.chunks.append(chunk)
        run = self.runs[-1] if self.runs else None
        if run is not None and run[0] == segment:
            run[1] += chunk.tokens
            run[2] += 1
        else:
            self.runs.append([segment, chunk.tokens, 1])
        return segment

    def _pop(self) -> None:
        chunk = self.chunks.pop()
        if chunk.segment < 0:
            return
        run = self.runs[-1]
        run[1] -= chunk.tokens
        run[2] -= 1
        if not run[2]:
            self.runs.pop()


def _number_agents(requests: Sequence[LoggedRequest]) -> dict[Hashable, int]:
    """The lead is 0, sub-agents 1, 2, … by first request."""
    numbers: dict[Hashable, int] = {LEAD: 0}
    for request in requests:
        numbers.setdefault(request.agent, len(numbers))
    return numbers


#: Columns of the requests that are as the log has them. Members of enums go in as the strings that
#: they are: to ask each for its value would take as long as making the column.
_AS_LOGGED = tuple(
    (name, attrgetter(name))
    for name in (
        "model",
        "status",
        "output_tokens",
        "reasoning_tokens",
        "observations",
        "reported_cached_tokens",
        "start_s",
        "end_s",
        "usage_source",
    )
)


def _append_requests(
    rows: Rows,
    requests: Sequence[LoggedRequest],
    ordered: Sequence[OrderedRequest],
    agents: Sequence[int],
    segments: Sequence[int],
) -> None:
    """Append a session's requests, all given in their order; by column, which is faster."""
    rows.rows_of_session["requests"].append(len(requests))
    columns = rows.requests
    columns["request"] += range(len(requests))
    columns["turn"] += [each.turn for each in ordered]
    columns["agent"] += agents
    columns["segment"] += segments
    for name, value_of in _AS_LOGGED:
        columns[name] += map(value_of, requests)
    edges = [edge for each in ordered for edge in each.after]
    if edges:
        earlier, kinds, delays_s = zip(*edges, strict=True)
        rows.after_request += earlier
        rows.after_kind += kinds
        rows.after_delay_s += delays_s
    _append_ends(rows.after_offsets, [each.after for each in ordered])
    tools = [request.tools or () for request in requests]
    rows.tools += chain.from_iterable(tools)
    _append_ends(rows.tools_offsets, tools)


def _append_ends(offsets: list[int], lists: Sequence[Sequence[object]]) -> None:
    """Append where each of `lists` ends in the flat column of their elements."""
    ends = accumulate(map(len, lists), initial=offsets.pop())
    offsets += ends


def _append_spans(rows: Rows, segments: _Segments) -> None:
    counts = segments.span_counts
    rows.rows_of_session["spans"].append(len(segments.spans))
    columns = rows.spans
    columns["request"] += chain.from_iterable(map(repeat, range(len(counts)), counts))
    columns["position"] += chain.from_iterable(map(range, counts))
    if segments.spans:
        named, tokens, written = zip(*segments.spans, strict=True)
        columns["segment"] += named
        columns["tokens"] += tokens
        columns["written"] += written


def _append_spawns(
    rows: Rows,
    session: LoggedSession,
    ordered: Sequence[OrderedRequest],
    number_of_agent: Mapping[Hashable, int],
    quality: Quality,
) -> None:
    if not session.spawns:
        rows.rows_of_session["spawns"].append(0)
        return
    number_of = {each.handle: each.number for each in ordered}
    # A return that the ordering had to leave out is no return.
    returned = {
        (session.requests[ordered[number].handle].agent, each.number)
        for each in ordered
        for number, kind, _ in each.after
        if kind == "return"
    }
    columns = rows.spawns
    present = [spawn for spawn in session.spawns.values() if spawn.agent in number_of_agent]
    if len(present) < len(session.spawns):
        quality.excluded["spawned sub-agent without a request"] += len(session.spawns) - len(
            present
        )
    present.sort(key=lambda spawn: number_of_agent[spawn.agent])
    rows.rows_of_session["spawns"].append(len(present))
    for position, spawn in enumerate(present):
        returns = sorted(
            number_of[handle]
            for handle in spawn.returns
            if (spawn.agent, number_of[handle]) in returned
        )
        columns["agent"].append(number_of_agent[spawn.agent])
        columns["role"].append(spawn.role)
        columns["agent_type"].append(spawn.agent_type)
        columns["parent"].append(number_of_agent[spawn.parent])
        columns["spawned_by"].append(number_of[spawn.spawned_by])
        columns["return_requests"].append(returns)
        columns["instruction"].append(spawn.instruction)
        columns["context"].append(spawn.context)
        columns["instruction_tokens"].append(spawn.instruction_tokens)
        columns["context_tokens"].append(spawn.context_tokens)
        columns["tools"].append(list(spawn.tools))
        columns["model"].append(spawn.model)
        columns["position"].append(position)


_COUNTS = (
    "input_tokens",
    "appended_tokens",
    "carried_tokens",
    "prompt_tokens",
    "output_tokens",
    "reasoning_tokens",
    "observations",
    "reported_cached_tokens",
)


def _check_counts(request: LoggedRequest, session: LoggedSession) -> None:
    output_tokens, reasoning_tokens = request.output_tokens, request.reasoning_tokens
    # All bits of all counts: below 0, or above the largest count, if and only if one of them is,
    # since that is a power of two less one.
    together = (
        (request.input_tokens or 0)
        | (request.appended_tokens or 0)
        | (request.carried_tokens or 0)
        | (request.prompt_tokens or 0)
        | output_tokens
        | reasoning_tokens
        | request.observations
        | (request.reported_cached_tokens or 0)
    )
    start_s, end_s = request.start_s, request.end_s
    if not 0 <= together <= TOKENS_MAX:
        for field in _COUNTS:
            value = getattr(request, field) or 0
            if not 0 <= value <= TOKENS_MAX:
                rule = "must not be negative" if value < 0 else f"must be at most {TOKENS_MAX}"
                raise _broken(request, session, field, rule)
    if output_tokens < 1 and request.status is _OK:
        rule = "must be at least 1 where the request is ok"
        raise _broken(request, session, "output_tokens", rule)
    if reasoning_tokens > output_tokens:
        rule = f"must be at most output_tokens ({output_tokens})"
        raise _broken(request, session, "reasoning_tokens", rule)
    if start_s is not None and not isfinite(start_s):
        raise _broken(request, session, "start_s", "must be a finite time")
    if end_s is not None and not isfinite(end_s):
        raise _broken(request, session, "end_s", "must be a finite time")
    if start_s is not None and end_s is not None and end_s < start_s:
        raise _broken(request, session, "end_s", f"must not be before start_s ({start_s})")
    if request.parts is None:
        if request.input_tokens is None:
            rule = "is needed where the context's parts are not known"
            raise _broken(request, session, "input_tokens", rule)
    elif any(part.tokens < 0 for part in request.parts):
        raise _broken(request, session, "parts", "token counts must not be negative")


def _broken(request: LoggedRequest, session: LoggedSession, field: str, rule: str) -> InputError:
    return InputError(
        rule,
        path=session.source,
        row=request.row if request.row is not None else f"session {session.name}",
        field=field,
        value=getattr(request, field),
    )

"""From one logged session to rows of the trace: order, contexts, and segments from chunk deaths.

A segment is the chunks of one group of one agent that die at one boundary. They always lie next to
each other in the context, since a boundary kills from some point to the end.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import isfinite
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
    number_of_agent = _number_agents(requests, ordered)
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
        recoveries[requests[each.handle].agent].step(
            requests[each.handle], number=each.number, handle=each.handle, turn=each.turn
        )
        for each in ordered
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
    segments = _Segments(session.name, rows, last)
    stacks: dict[Hashable, _Stack] = {agent: _Stack() for agent in recoveries}
    for each, step in zip(ordered, steps, strict=True):
        request = requests[each.handle]
        agent = number_of_agent[request.agent]
        output_segment = stacks[request.agent].play(
            step, agent=agent, number=each.number, segments=segments
        )
        _append_request(rows, session.name, request, each, agent, output_segment)
    _append_spawns(rows, session, ordered, number_of_agent, quality)


class _Segments:
    """Segment ids of one session, given at first mention."""

    def __init__(self, session: str, rows: Rows, last_request: int) -> None:
        self.session = session
        self.rows = rows
        self.last_request = last_request
        self.ids: dict[object, int] = {}
        self.shared_written: set[int] = set()

    def of(self, chunk: Chunk, agent: int) -> int:
        """The chunk's segment; a prompt with a key is one segment for the whole session."""
        segment_class, group, prefix_key = chunk.group
        closed_by, closed_after = chunk.closed_by, chunk.closed_after
        key: object
        if prefix_key is not None:
            key = prefix_key
            closed_by, closed_after = Boundary.SESSION_END, self.last_request
        else:
            key = (agent, segment_class, group, closed_by, closed_after)
        segment = self.ids.get(key)
        if segment is None:
            assert closed_by is not None, "Invariant: every chunk was closed by finish()"
            segment = self.ids[key] = len(self.ids)
            columns = self.rows.segments
            columns["session"].append(self.session)
            columns["segment"].append(segment)
            columns["class"].append(segment_class.value)
            columns["agent"].append(agent)
            columns["closed_by"].append(closed_by.value)
            columns["closed_after"].append(closed_after)
            columns["prefix_key"].append(prefix_key)
        return segment


class _Stack:
    """An agent's context while its spans are written out.

    `chunks` holds (segment, tokens) of every live chunk, with segment -1 for empty ones; `runs`
    gathers neighbours of one segment as [segment, tokens, chunks].
    """

    def __init__(self) -> None:
        self.chunks: list[tuple[int, int]] = []
        self.runs: list[list[int]] = []

    def play(self, step: Step, *, agent: int, number: int, segments: _Segments) -> int:
        """Append the step's spans; returns the segment of its output."""
        while len(self.chunks) > step.kept:
            self._pop()
        spans: list[tuple[int, int, bool]] = [
            (segment, tokens, False) for segment, tokens, _ in self.runs if tokens
        ]
        for chunk in step.written:
            if not chunk.tokens:
                self.chunks.append((-1, 0))
                continue
            segment = segments.of(chunk, agent)
            self._push(segment, chunk.tokens)
            if chunk.group[2] is not None:
                # Another agent of the session may have written this prompt before.
                spans.append((segment, chunk.tokens, segment not in segments.shared_written))
                segments.shared_written.add(segment)
            elif spans and spans[-1][0] == segment and spans[-1][2]:
                spans[-1] = (segment, spans[-1][1] + chunk.tokens, True)
            else:
                spans.append((segment, chunk.tokens, True))
        output_segment = segments.of(step.output, agent)
        self._push(output_segment, step.output.tokens)

        columns = segments.rows.spans
        for position, (segment, tokens, written) in enumerate(spans):
            columns["session"].append(segments.session)
            columns["request"].append(number)
            columns["position"].append(position)
            columns["segment"].append(segment)
            columns["tokens"].append(tokens)
            columns["written"].append(written)
        return output_segment

    def _push(self, segment: int, tokens: int) -> None:
        self.chunks.append((segment, tokens))
        if self.runs and self.runs[-1][0] == segment:
            self.runs[-1][1] += tokens
            self.runs[-1][2] += 1
        else:
            self.runs.append([segment, tokens, 1])

    def _pop(self) -> None:
        segment, tokens = self.chunks.pop()
        if segment < 0:
            return
        run = self.runs[-1]
        run[1] -= tokens
        run[2] -= 1
        if not run[2]:
            self.runs.pop()


def _number_agents(
    requests: Sequence[LoggedRequest], ordered: Sequence[OrderedRequest]
) -> dict[Hashable, int]:
    """The lead is 0, sub-agents 1, 2, … by first request."""
    numbers: dict[Hashable, int] = {LEAD: 0}
    for each in ordered:
        numbers.setdefault(requests[each.handle].agent, len(numbers))
    return numbers


def _append_request(
    rows: Rows,
    session: str,
    request: LoggedRequest,
    ordered: OrderedRequest,
    agent: int,
    segment: int,
) -> None:
    columns = rows.requests
    columns["session"].append(session)
    columns["request"].append(ordered.number)
    columns["turn"].append(ordered.turn)
    columns["agent"].append(agent)
    columns["model"].append(request.model)
    columns["status"].append(str(request.status))
    columns["segment"].append(segment)
    columns["output_tokens"].append(request.output_tokens)
    columns["reasoning_tokens"].append(request.reasoning_tokens)
    columns["observations"].append(request.observations)
    columns["reported_cached_tokens"].append(request.reported_cached_tokens)
    columns["start_s"].append(request.start_s)
    columns["end_s"].append(request.end_s)
    columns["usage_source"].append(str(request.usage_source))
    for number, kind, delay_s in ordered.after:
        rows.after_request.append(number)
        rows.after_kind.append(str(kind))
        rows.after_delay_s.append(delay_s)
    rows.after_offsets.append(len(rows.after_request))
    rows.tools.extend(str(tool) for tool in request.tools or ())
    rows.tools_offsets.append(len(rows.tools))


def _append_spawns(
    rows: Rows,
    session: LoggedSession,
    ordered: Sequence[OrderedRequest],
    number_of_agent: Mapping[Hashable, int],
    quality: Quality,
) -> None:
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
    for position, spawn in enumerate(present):
        returns = sorted(
            number_of[handle]
            for handle in spawn.returns
            if (spawn.agent, number_of[handle]) in returned
        )
        columns["session"].append(session.name)
        columns["agent"].append(number_of_agent[spawn.agent])
        columns["role"].append(str(spawn.role))
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
    def broken(field: str, rule: str) -> InputError:
        return InputError(
            rule,
            path=session.source,
            row=request.row if request.row is not None else f"session {session.name}",
            field=field,
            value=getattr(request, field),
        )

    for field in _COUNTS:
        value = getattr(request, field)
        if value is not None and not 0 <= value <= TOKENS_MAX:
            rule = "must not be negative" if value < 0 else f"must be at most {TOKENS_MAX}"
            raise broken(field, rule)
    if request.status is Status.OK and request.output_tokens < 1:
        raise broken("output_tokens", "must be at least 1 where the request is ok")
    if request.reasoning_tokens > request.output_tokens:
        raise broken("reasoning_tokens", f"must be at most output_tokens ({request.output_tokens})")
    for field in ("start_s", "end_s"):
        value = getattr(request, field)
        if value is not None and not isfinite(value):
            raise broken(field, "must be a finite time")
    start_s, end_s = request.start_s, request.end_s
    if start_s is not None and end_s is not None and end_s < start_s:
        raise broken("end_s", f"must not be before start_s ({start_s})")
    if request.input_tokens is None and request.parts is None:
        raise broken("input_tokens", "is needed where the context's parts are not known")
    if any(part.tokens < 0 for part in request.parts or ()):
        raise broken("parts", "token counts must not be negative")

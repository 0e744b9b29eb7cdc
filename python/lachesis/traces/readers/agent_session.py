"""From the logs of one session's agents to the requests of a trace.

Shared by the readers of Claude Code transcripts and of ATIF, so that the same session gives the
same requests from either.

- Every family of agents (`agent_family`) is a session: the lead's, and one for each orphan.
- A sub-agent's later instructions are resumptions: each starts a *leg*, matched in order to the
  calls that name the agent again.
- A return goes to the parent's call that first had the result in its input: that of the tool, or
  for a background agent the notification or the task's output.
- Requests are pushed so that every one comes after those that it waits for, else in order of time.
"""

from __future__ import annotations

import heapq
from math import inf
from typing import Final

import msgspec

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.logged import LEAD
from lachesis.traces.readers.agent_family import (
    SessionLogs,
    Spawn,
    families,
    find_spawns,
    moment_s,
)
from lachesis.traces.readers.agent_log import (
    AgentLog,
    InputKind,
    LoggedInput,
    Meter,
    Round,
    recount_name,
)
from lachesis.traces.readers.agent_roles import role_of
from lachesis.traces.schema import Status, UsageSource
from lachesis.traces.session_builder import SessionBuilder
from lachesis.traces.tool_classes import tool_class

#: Not part of the visible text: it is the prompt itself, or (a result) has no place before it.
_NOT_VISIBLE: Final = frozenset({InputKind.RESULT, InputKind.SYSTEM})
# By names of their own: before Python 3.12, asking an enum for a member is slow.
_PROMPT = InputKind.PROMPT
_COMMAND = InputKind.COMMAND
_RESULT = InputKind.RESULT
_SUMMARY = InputKind.SUMMARY
_OK = Status.OK
_RECOUNTED = UsageSource.RECOUNTED


class _Pusher:
    """Pushes the requests of one family, in an order that respects who waits for whom."""

    def __init__(
        self,
        builder: TraceBuilder,
        session: SessionBuilder,
        family: list[AgentLog],
        spawns: dict[str, list[Spawn]],
        logs: SessionLogs,
        meter: Meter,
    ) -> None:
        self.builder = builder
        self.session = session
        self.root = family[0]
        self.family = family
        self.spawns = {log.agent: spawns[log.agent] for log in family[1:] if log.agent in spawns}
        self.version = next((log.version for log in family if log.version), "unknown")
        self.meter = meter
        self.recount = recount_name(meter)
        self.handle_of_round: dict[int, int] = {}  # by the round's identity
        self.next_index = {id(log): 0 for log in family}
        # What a result may call an agent, or the agents of a workflow run.
        self.by_name: dict[str | None, list[AgentLog]] = {log.agent: [log] for log in family[1:]}
        for task, run in logs.links.run_of_task.items():
            self.by_name[task] = [
                log for log in family[1:] if logs.run_of_agent.get(log.agent) == run
            ]
        self.legs = {id(log): _leg_starts(log) for log in family[1:]}
        self.returned: set[tuple[str, int]] = set()
        self.replayed: set[str | None] = {
            spawn.use.id for found in self.spawns.values() for spawn in found
        }

    def push_all(self) -> None:
        if len(self.family) == 1:  # most sessions: nothing to wait for
            for index in range(len(self.root.rounds)):
                self._push_round(self.root, index)
            return
        order = {id(log): position for position, log in enumerate(self.family)}
        waiting = [
            (moment_s(log.rounds[0]), order[id(log)], log) for log in self.family if log.rounds
        ]
        heapq.heapify(waiting)
        blocked: list[tuple[float, int, AgentLog]] = []
        while waiting or blocked:
            if not waiting:
                # Only a return can be out of order here, for spawns form a tree; let it go.
                entry = min(
                    (entry for entry in blocked if self._spawned(entry[2])), key=lambda e: e[:2]
                )
                blocked.remove(entry)
                self._push(entry[2])
            else:
                entry = heapq.heappop(waiting)
                if not self._ready(entry[2]):
                    blocked.append(entry)
                    continue
                self._push(entry[2])
            for again in blocked:
                heapq.heappush(waiting, again)
            blocked = []
            log = entry[2]
            index = self.next_index[id(log)]
            if index < len(log.rounds):
                heapq.heappush(waiting, (moment_s(log.rounds[index]), order[id(log)], log))

    def _leg(self, log: AgentLog, index: int) -> int:
        return sum(1 for start in self.legs[id(log)] if start <= index) - 1

    def _leg_spawn(self, log: AgentLog, index: int) -> Spawn | None:
        """Find the call that starts the leg which begins at this round."""
        if log is self.root:
            return None
        starts = self.legs[id(log)]
        if index not in starts:
            return None
        found = self.spawns.get(log.agent, [])
        leg = starts.index(index)
        return found[leg] if leg < len(found) else None

    def _spawned(self, log: AgentLog) -> bool:
        spawn = self._leg_spawn(log, self.next_index[id(log)])
        return spawn is None or self._handle_of(spawn) is not None

    def _handle_of(self, spawn: Spawn) -> int | None:
        """Handle of the request that makes the call; None if it was not pushed yet."""
        return self.handle_of_round.get(id(spawn.parent.rounds[spawn.round_index]))

    def _ready(self, log: AgentLog) -> bool:
        if not self._spawned(log):
            return False
        index = self.next_index[id(log)]
        return all(self.next_index[id(agent)] > last for agent, last in self._returns(log, index))

    def _returns(self, log: AgentLog, index: int) -> list[tuple[AgentLog, int]]:
        """Find the sub-agents whose results are in this round's input, and their last rounds."""
        found = []
        for given in log.rounds[index].inputs:
            for agent in self.by_name.get(given.returns_agent, ()):
                calls = [
                    spawn
                    for spawn in self.spawns.get(agent.agent, [])
                    if spawn.parent is log and spawn.round_index < index
                ]
                if not calls:
                    continue
                starts = self.legs[id(agent)]
                leg = min(self.spawns[agent.agent].index(calls[-1]), len(starts) - 1)
                last = starts[leg + 1] - 1 if leg + 1 < len(starts) else len(agent.rounds) - 1
                found.append((agent, last))
        return found

    def _push(self, log: AgentLog) -> None:
        index = self.next_index[id(log)]
        spawn = self._leg_spawn(log, index)
        if spawn is not None:
            by = self._handle_of(spawn)
            if by is not None and index == 0:
                self._spawn(log, spawn, by)
            elif by is not None:
                self.session.resume(log.agent, resumed_by=by)
        handle = self._push_round(log, index)
        for child, last in self._returns(log, index):
            leg = self._leg(child, last)
            if self.next_index[id(child)] > last and (child.agent, leg) not in self.returned:
                self.returned.add((child.agent, leg))
                self.session.returns(child.agent, to=handle)
        self.next_index[id(log)] = index + 1

    def _spawn(self, log: AgentLog, spawn: Spawn, by: int) -> None:
        asked = spawn.use.spawn
        instruction = (asked.prompt if asked is not None else "") or log.instruction
        agent_type = log.agent_type or (asked.agent_type if asked is not None else None)
        log.agent_type = agent_type
        description = asked.description if asked is not None else None
        model = asked.model if asked is not None else None
        self.session.spawn(
            log.agent,
            spawned_by=by,
            role=role_of(agent_type),
            agent_type=agent_type or description,
            instruction=instruction,
            instruction_tokens=round(self.meter(instruction)) if instruction else None,
            tools=asked.tools if asked is not None else (),
            model=model or log.rounds[0].model,
        )

    def _push_round(self, log: AgentLog, index: int) -> int:
        logged = log.rounds[index]
        before = log.rounds[index - 1] if index else None
        is_root = log is self.root
        agent = LEAD if is_root else log.agent
        given = _added_up(logged.inputs, self.replayed)
        if given.summary_tokens is not None and before is not None and not before.compacts:
            self.builder.fill(
                "compaction request", "not in the log; the summary's text stands for it"
            )
            summary_tokens = max(1, round(given.summary_tokens))
            self.session.compacted(agent, summary_tokens=summary_tokens)
        inputs = logged.input_tokens or 1
        prompt_tokens = prefix_key = delay_s = rewinds_to = None
        if before is not None:
            delay_s = _delay_s(given, before)
        elif not log.starts_midway:
            prompt_tokens, how = _prompt_tokens(logged, inputs)
            self.builder.fill("prompt_tokens", how)
            if prompt_tokens:
                kind = "lead" if is_root else log.agent_type or "sub-agent"
                prefix_key = f"{self.session.harness} {log.prompt_key or self.version} {kind}"
        if logged.rewinds and given.summary_tokens is None:
            # The log's word alone is not enough: an input that holds everything was not rewound.
            held = (before.input_tokens or 0) + (before.output_tokens or 0) if before else 0
            if inputs < held:
                rewinds_to = self.handle_of_round.get(id(logged.extends), -1)
        if logged.usage_source is _RECOUNTED:
            self.builder.fill("output_tokens", self.recount)
        start_s = given.latest_s
        if start_s is not None and logged.first_s is not None and start_s > logged.first_s:
            self.builder.fill("start_s", "an input is dated after the answer: the answer's start")
            start_s = logged.first_s
        handle = self.session.request(
            agent=agent,
            opens_turn=is_root and given.typed and not logged.compacts,
            input_tokens=inputs,
            prompt_tokens=prompt_tokens,
            prefix_key=prefix_key,
            output_tokens=max(logged.output_tokens or 0, int(logged.status is _OK)),
            reasoning_tokens=round(logged.reasoning_tokens),
            observations=given.results,
            tools=[tool_class(use.name) for use in logged.tool_uses if not use.by_harness],
            status=logged.status,
            model=logged.model,
            start_s=_microseconds(start_s),
            end_s=_microseconds(logged.last_s),
            reported_cached_tokens=logged.cached_tokens,
            usage_source=logged.usage_source,
            delay_s=delay_s,
            compacts=logged.compacts,
            rewinds_to=rewinds_to,
            row=logged.row,
        )
        self.handle_of_round[id(logged)] = handle
        return handle


class _AddedUp(msgspec.Struct, gc=False):
    """What the inputs before a call add up to.

    `latest_s`: when the last one was there; None if one has no time. `summary_tokens`: None if
    there is no summary among them. The others are of inputs that were waited for, which are those
    that no sub-agent of the session brought.
    """

    results: int
    typed: bool
    summary_tokens: float | None
    latest_s: float | None
    waited: int
    waited_dated: int
    waited_typed: bool
    waited_latest_s: float


def _added_up(inputs: list[LoggedInput], replayed: set[str | None]) -> _AddedUp:
    """Add up in one pass; `replayed` are the calls whose sub-agents are part of the session."""
    results = waited = waited_dated = 0
    typed = waited_typed = undated = False
    summary_tokens: float | None = None
    latest_s: float | None = None
    waited_latest_s = -inf
    for given in inputs:
        kind, time_s = given.kind, given.time_s
        if kind is _RESULT:
            results += 1
        elif kind is _PROMPT or kind is _COMMAND:
            typed = True
        elif kind is _SUMMARY:
            summary_tokens = (summary_tokens or 0.0) + given.tokens
        if time_s is None:
            undated = True
        elif latest_s is None or time_s > latest_s:
            latest_s = time_s
        if given.tool_use_id not in replayed:
            waited += 1
            if kind is not _RESULT:
                waited_typed = True
            if time_s is not None:
                waited_dated += 1
                if time_s > waited_latest_s:
                    waited_latest_s = time_s
    return _AddedUp(
        results, typed, summary_tokens, None if undated else latest_s,
        waited, waited_dated, waited_typed, waited_latest_s,
    )  # fmt: skip


def _prompt_tokens(logged: Round, inputs: int) -> tuple[int, str]:
    """Find the length of the prompt in an agent's first input, and say how."""
    if logged.cached_tokens:
        return min(logged.cached_tokens, inputs), "the first cache hit"
    if logged.usage_source is UsageSource.INFERRED:
        logged_text = sum(g.tokens for g in logged.inputs if g.kind is InputKind.SYSTEM)
        return min(round(logged_text), inputs), "the logged text; tool schemas are not in it"
    visible = sum(g.tokens for g in logged.inputs if g.kind not in _NOT_VISIBLE)
    return min(max(1, inputs - round(visible)), inputs), "input less visible text"


def _microseconds(time_s: float | None) -> float | None:
    # Much faster than `round(time_s, 6)`, which goes by way of the number's digits.
    return None if time_s is None else round(time_s * 1e6) / 1e6


def _opens_turn(logged: Round) -> bool:
    # A compaction's instruction is a user message too, but nobody typed it.
    typed = logged.has(_PROMPT) or logged.has(_COMMAND)
    return typed and not logged.compacts


def _leg_starts(log: AgentLog) -> list[int]:
    starts = [index for index, logged in enumerate(log.rounds) if _opens_turn(logged)]
    return starts if starts and starts[0] == 0 else [0, *starts]


def _delay_s(given: _AddedUp, before: Round) -> float | None:
    """Wait between the end of the agent's previous call and this one, without sub-agents' time.

    None where the log has no time for the wait, and something but sub-agents was waited for.
    """
    ended_s = before.last_s
    if not given.waited:
        return 0.0
    if ended_s is None or not given.waited_dated:
        return None
    if given.waited_dated < given.waited and not given.waited_typed:
        return None
    return _microseconds(max(0.0, given.waited_latest_s - ended_s))


def push_session(builder: TraceBuilder, logs: SessionLogs, meter: Meter, workload: str) -> None:
    """Push one session, and one more for every orphan among its sub-agents; empties their logs."""
    spawns = find_spawns(logs)
    if logs.missing_agents:
        builder.exclude("sub-agent that was spawned but has no log", logs.missing_agents)
    for family in families(logs, spawns):
        root = family[0]
        orphan = root is not logs.lead
        session = builder.session(
            f"{logs.name}/{root.agent}" if orphan else logs.name,
            workload=workload,
            harness=logs.harness,
            source=root.name,
            starts_midway=root.starts_midway or root.rounds[0].has(_SUMMARY),
            ends_open=bool(root.rounds[-1].tool_uses) and not root.finished,
            orphan=orphan,
        )
        _Pusher(builder, session, family, spawns, logs, meter).push_all()
        for log in family:
            log.rounds = []  # of a long session they take as much room as what comes next
        builder.finish(session)

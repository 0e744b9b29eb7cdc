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
from typing import Final

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.logged import LEAD
from lachesis.traces.readers.agent_family import (
    SessionLogs,
    Spawn,
    families,
    find_spawns,
    moment_s,
)
from lachesis.traces.readers.agent_log import AgentLog, InputKind, Meter, Round, recount_name
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
        self.handles: dict[tuple[int, int], int] = {}
        self.handle_of_round: dict[int, int] = {}
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
            for _ in self.root.rounds:
                self._push(self.root)
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
        return spawn is None or (id(spawn.parent), spawn.round_index) in self.handles

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
        logged = log.rounds[index]
        agent = LEAD if log is self.root else log.agent
        before = log.rounds[index - 1] if index else None
        spawn = self._leg_spawn(log, index)
        if spawn is not None:
            by = self.handles.get((id(spawn.parent), spawn.round_index))
            if by is not None and index == 0:
                self._spawn(log, spawn, by)
            elif by is not None:
                self.session.resume(agent, resumed_by=by)
        if logged.has(_SUMMARY) and before is not None and not before.compacts:
            summary = sum(g.tokens for g in logged.inputs if g.kind is _SUMMARY)
            self.builder.fill(
                "compaction request", "not in the log; the summary's text stands for it"
            )
            self.session.compacted(agent, summary_tokens=max(1, round(summary)))
        handle = self._request(log, logged, before, agent)
        self.handles[id(log), index] = handle
        self.handle_of_round[id(logged)] = handle
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

    def _request(self, log: AgentLog, logged: Round, before: Round | None, agent: str | int) -> int:
        held = (before.input_tokens or 0) + (before.output_tokens or 0) if before else 0
        inputs = logged.input_tokens or 1
        prompt_tokens = None
        if before is None and not log.starts_midway:
            prompt_tokens, how = _prompt_tokens(logged, inputs)
            self.builder.fill("prompt_tokens", how)
        kind = "lead" if log is self.root else log.agent_type or "sub-agent"
        # The log's word alone is not enough: an input that holds everything was not rewound.
        shrank = logged.rewinds and inputs < held and not logged.has(_SUMMARY)
        if logged.usage_source is _RECOUNTED:
            self.builder.fill("output_tokens", self.recount)
        return self.session.request(
            agent=agent,
            opens_turn=log is self.root and _opens_turn(logged),
            input_tokens=inputs,
            prompt_tokens=prompt_tokens,
            prefix_key=f"{self.session.harness} {log.prompt_key or self.version} {kind}"
            if prompt_tokens
            else None,
            output_tokens=max(logged.output_tokens or 0, int(logged.status is _OK)),
            reasoning_tokens=round(logged.reasoning_tokens),
            observations=[given.kind for given in logged.inputs].count(_RESULT),
            tools=[tool_class(use.name) for use in logged.tool_uses if not use.by_harness],
            status=logged.status,
            model=logged.model,
            start_s=_microseconds(self._start_s(logged)),
            end_s=_microseconds(logged.last_s),
            reported_cached_tokens=logged.cached_tokens,
            usage_source=logged.usage_source,
            delay_s=_delay_s(logged, before, self.replayed) if before is not None else None,
            compacts=logged.compacts,
            rewinds_to=self._rewinds_to(logged) if shrank else None,
            row=logged.row,
        )

    def _start_s(self, logged: Round) -> float | None:
        start_s = logged.start_s
        if start_s is not None and logged.first_s is not None and start_s > logged.first_s:
            self.builder.fill("start_s", "an input is dated after the answer: the answer's start")
            return logged.first_s
        return start_s

    def _rewinds_to(self, logged: Round) -> int:
        if logged.extends is None:
            return -1
        return self.handle_of_round.get(id(logged.extends), -1)


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


def _delay_s(logged: Round, before: Round, replayed: set[str | None]) -> float | None:
    """Wait between the end of the agent's previous call and this one, without sub-agents' time.

    `replayed`: calls whose sub-agents are part of the session. None where the log has no time for
    the wait, and something but those was waited for.
    """
    ended_s = before.last_s
    waited, typed = 0, False
    known: list[float] = []
    for given in logged.inputs:
        if given.tool_use_id not in replayed:
            waited += 1
            typed = typed or given.kind is not _RESULT
            if given.time_s is not None:
                known.append(given.time_s)
    if not waited:
        return 0.0
    if ended_s is None or not known or (len(known) < waited and not typed):
        return None
    return _microseconds(max(0.0, max(known) - ended_s))


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

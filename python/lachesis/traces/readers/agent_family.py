"""Who belongs to whom among the agents of one session.

- Sub-agents hang under the call that spawned them: by the agent's id where the harness notes it
  beside the result, by the workflow run, else by the instruction (equal, then contained). What
  hangs under nobody is an orphan, the root of a family of its own.
- A compaction that is logged as an agent becomes a round of the agent that it compacts, before
  the call that starts from the summary.
"""

from __future__ import annotations

import msgspec

from lachesis.traces.readers.agent_log import AgentLog, InputKind, Round, ToolUse
from lachesis.traces.readers.subagent_links import SubagentLinks


class Spawn(msgspec.Struct):
    """A call that starts or resumes `agent`."""

    parent: AgentLog
    round_index: int
    use: ToolUse
    agent: AgentLog


class SessionLogs(msgspec.Struct):
    """The logs of one session, and what is known of who spawned whom.

    `lead` is None where only sub-agents were logged. `compacted_agent` says whose context a
    compaction agent compacts, `run_of_agent` to which workflow run an agent belongs, and
    `use_of_agent` which tool call started it; all are keyed by agent.
    `missing_agents` counts calls that started an agent of which there is no log.
    """

    name: str
    source: str
    harness: str
    lead: AgentLog | None = None
    agents: dict[str, AgentLog] = msgspec.field(default_factory=dict)
    compacted_agent: dict[str, AgentLog] = msgspec.field(default_factory=dict)
    links: SubagentLinks = msgspec.field(default_factory=SubagentLinks)
    run_of_agent: dict[str, str] = msgspec.field(default_factory=dict)
    use_of_agent: dict[str, str] = msgspec.field(default_factory=dict)
    missing_agents: int = 0


def place_compactions(logs: SessionLogs) -> None:
    """Move the rounds of compaction agents into the logs of the agents that they compact."""
    for key in sorted(key for key, log in logs.agents.items() if log.is_compaction):
        log = logs.agents[key]
        owner = logs.compacted_agent.get(key, logs.lead)
        for logged in log.rounds:
            logged.compacts = True
        if owner is None or owner is log:
            continue  # stays an orphan
        del logs.agents[key]
        for logged in log.rounds:
            owner.rounds.insert(_position(owner.rounds, logged), logged)


def _position(rounds: list[Round], compaction: Round) -> int:
    time_s = compaction.last_s
    for index, logged in enumerate(rounds):
        if time_s is not None and logged.first_s is not None and logged.first_s < time_s:
            continue
        preceded = index > 0 and rounds[index - 1].compacts
        if logged.has(InputKind.SUMMARY) and not preceded:
            return index
        if time_s is not None and logged.first_s is not None:
            return index
    return len(rounds)


def find_spawns(logs: SessionLogs) -> dict[str, list[Spawn]]:
    """Give every sub-agent the calls that started and resumed it, in order of time."""
    spawns: dict[str, list[Spawn]] = {}
    open_calls: list[tuple[AgentLog, int, ToolUse]] = []
    everyone = ([logs.lead] if logs.lead is not None else []) + list(logs.agents.values())
    by_run: dict[str, list[str]] = {}
    for agent, run in logs.run_of_agent.items():
        by_run.setdefault(run, []).append(agent)
    use_owner = {use: agent for agent, use in logs.use_of_agent.items()}
    for parent in everyone:
        for index, logged in enumerate(parent.rounds):
            for use in logged.tool_uses:
                if use.spawn is None:
                    continue
                named = logs.links.agents.get(use.id) or use_owner.get(use.id)
                names = [named or use.spawn.resumes or ""]
                if use.id in logs.links.runs:
                    names = by_run.get(logs.links.runs[use.id], [])
                known = [name for name in names if name in logs.agents]
                for name in known:
                    agent_log = logs.agents[name]
                    if agent_log is not parent:
                        spawns.setdefault(name, []).append(Spawn(parent, index, use, agent_log))
                if named and named not in logs.agents:
                    logs.missing_agents += 1
                elif not known and use.spawn.resumes is None:
                    open_calls.append((parent, index, use))
    _match_instructions(logs, spawns, open_calls)
    for found in spawns.values():
        found.sort(key=lambda spawn: moment_s(spawn.parent.rounds[spawn.round_index]))
    return spawns


def _match_instructions(
    logs: SessionLogs,
    spawns: dict[str, list[Spawn]],
    open_calls: list[tuple[AgentLog, int, ToolUse]],
) -> None:
    waiting = [log for name, log in logs.agents.items() if name not in spawns]
    waiting.sort(key=lambda log: log.first_s)
    for exactly in (True, False):
        for log in list(waiting):
            said = (log.instruction or "").strip()
            for candidate in open_calls:
                parent, index, use = candidate
                asked = use.spawn.prompt.strip() if use.spawn is not None else ""
                if parent is log or not asked:
                    continue
                if said == asked or (not exactly and asked in said):
                    spawns[log.agent] = [Spawn(parent, index, use, log)]
                    open_calls.remove(candidate)
                    waiting.remove(log)
                    break


def moment_s(logged: Round) -> float:
    """Return when a call began, as nearly as the log tells; infinity where it tells nothing."""
    for time_s in (logged.start_s, logged.first_s, logged.last_s):
        if time_s is not None:
            return time_s
    return float("inf")


def families(logs: SessionLogs, spawns: dict[str, list[Spawn]]) -> list[list[AgentLog]]:
    """Group the logs by the root that they descend from; the lead's family first, root first."""
    parent_of = {name: found[0].parent for name, found in spawns.items()}
    members: dict[int, list[AgentLog]] = {}
    roots: list[AgentLog] = []
    if logs.lead is not None:
        roots.append(logs.lead)
    for name, log in sorted(logs.agents.items(), key=lambda item: (item[1].first_s, item[0])):
        passed = {id(log)}
        above = log
        while above.agent in parent_of and above is not logs.lead:
            above = parent_of[above.agent]
            if id(above) in passed:
                # Agents that spawn each other: a damaged log. Each stands for itself.
                spawns.pop(name, None)
                above = log
                break
            passed.add(id(above))
        if above is log:
            roots.append(log)
        members.setdefault(id(above), []).append(log)
    grouped = []
    for root in roots:
        rest = [log for log in members.get(id(root), []) if log is not root]
        grouped.append([root, *rest])
    return grouped

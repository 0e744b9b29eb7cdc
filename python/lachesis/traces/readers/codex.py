"""Reader of Codex rollouts (`rollout-*.jsonl`), those of sub-agents included.

**Files.** A thread is a file. A sub-agent's `session_meta` names its parent thread (or, for a
review that the harness starts, only that it is one); threads whose parent is given become agents
of one session with it, all others sessions of their own: leads, and orphans where the file says
that it is a sub-agent's. Threads that belong together are read together, one family after another.

**Requests.** One for each usage: a `token_count` event (it comes twice, and the repeat is told by
the thread's unchanged total; `info` can be null) or a `token_usage_record`. The response items
between usages are the outputs. `input_tokens` includes the cached ones, which are kept as the
provider's hit; `output_tokens` includes `reasoning_output_tokens`. Items without usage are a call
all the same: its output is weighed from its content and its input from what came before
(inferred). Usage without items is a call whose output is not in the log (counted as filled in).
Where a file has only events and no response items, the agent's messages stand for them.

**Reasoning** is encrypted: its length is what the usage says.

**Turns** are opened by user messages that the harness did not write itself (contexts, permissions,
project instructions, notifications, which stand in tags or under a heading of their own) and that
do not arrive beside tool results in a running turn. A call without usage in an aborted turn is
aborted. `thread_rolled_back` is a rewind.

**Sub-agents** hang under the `spawn_agent` call whose result, or whose event, names their thread or
path; else under the spawn of their parent with the same message; a review under the
`entered_review_mode` event within `REVIEW_WINDOW_S` of its start. They return with the result of
the wait, the notification, or the review's end. `send_input` and the like resume them.

**Compaction** is a `compacted` row; usage just before it is of the compaction's own call.

**Times** are the rows', to the millisecond.

**Left out**, each counted: repeated token counts, events that repeat items, rows that are no part
of a request (world states, snapshots), a truncated last line, and calls that a fork copied from a
thread that is given too. **Not in the log:** tool schemas; the prompt is the first cache hit, else
the input less the visible text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.logged import content_key
from lachesis.traces.readers.agent_family import SessionLogs, place_compactions
from lachesis.traces.readers.agent_log import AgentLog, Meter, meter_for, settle_usage
from lachesis.traces.readers.agent_session import push_session
from lachesis.traces.readers.codex_families import rollout_families
from lachesis.traces.readers.codex_rollout import ReviewMode, Rollout
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.record_groups import NameNumbers
from lachesis.traces.schema import UsageSource

HARNESS: Final = "codex"
#: A review's thread begins within milliseconds of the event; another's is minutes away.
REVIEW_WINDOW_S: Final = 1.0
_ROW_TYPE: Final = re.compile(
    rb'"type"\s*:\s*"(?:session_meta|response_item|event_msg|turn_context|compacted'
    rb'|token_usage_record|world_state)"'
)
_PAYLOAD: Final = re.compile(rb'"payload"\s*:\s*\{')
_FIRST_LINE: Final = re.compile(rb'"instructions"\s*:')
_BARE_ITEM: Final = re.compile(rb'^\{"(?:record_type"\s*:\s*"state"|type"\s*:\s*"message")', re.M)


class CodexReader:
    """Codex rollouts; see the module for what is taken from where."""

    name = "codex"
    joins_files = True
    description = (
        "Codex rollouts with sub-agents: usage per response from token counts (repeats left out), "
        "encrypted reasoning by its count, recorded delays, compaction, rollbacks and aborted turns"
    )

    def recognises(self, file: SourceFile) -> bool:
        """Whether the first line is an envelope with a payload, or a first version's head."""
        if file.ending != ".jsonl":
            return False
        head = file.start
        first, _, rest = head.partition(b"\n")
        if not first.startswith(b"{"):
            return False
        if _PAYLOAD.search(first) is not None and _ROW_TYPE.search(first) is not None:
            return True
        old = b'"type"' not in first and _FIRST_LINE.search(first) is not None
        return old and _BARE_ITEM.search(rest) is not None

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push the sessions of all files; raises `InputError` for a broken row."""
        meter = meter_for(options.count_tokens)
        seen = NameNumbers()
        for family in rollout_families(files, REVIEW_WINDOW_S):
            rollouts = [_rollout(file, builder, meter) for file in family]
            rollouts.sort(key=_begin)
            _name(rollouts, seen)
            _leave_out_copied(rollouts, builder)
            parents = _parents(rollouts)
            for session in _sessions(rollouts, parents):
                _push(session, builder, meter)


READER: Final = CodexReader()


def _rollout(file: SourceFile, builder: TraceBuilder, meter: Meter) -> Rollout:
    rollout = Rollout(file, meter)
    for reason, count in sorted(rollout.dropped.items()):
        builder.drop(reason, count)
    for reason, count in sorted(rollout.ignored.items()):
        builder.ignore(reason, count)
    if rollout.invisible_calls:
        how = "usage without items: the call's output is not in the log"
        builder.fill("request", how, rollout.invisible_calls)
    return rollout


def _begin(rollout: Rollout) -> tuple[float, str]:
    start_s = rollout.start_s
    return (float("inf") if start_s is None else start_s, rollout.file.name)


def _name(rollouts: list[Rollout], seen: NameNumbers) -> None:
    """Name every log by its thread; a thread that is there twice gets the file's name too."""
    for rollout in rollouts:
        name = rollout.meta.id or rollout.file.path.stem
        known = len(seen)
        while seen.of(name) < known:
            name = f"{name}/{rollout.file.path.name}"
        log = rollout.log
        log.agent = name
        if rollout.meta.system_text:
            log.prompt_key = f"{content_key(rollout.meta.system_text):016x}"
        subagent = rollout.meta.subagent
        role = rollout.meta.thread_spawn.get("agent_role")
        log.agent_type = subagent if isinstance(subagent, str) else None
        log.agent_type = role if isinstance(role, str) else log.agent_type


def _leave_out_copied(rollouts: list[Rollout], builder: TraceBuilder) -> None:
    """Leave out the calls at a fork's start that it copied from its origin."""
    by_thread = {rollout.meta.id: rollout for rollout in rollouts if rollout.meta.id}
    for rollout in rollouts:
        origin = by_thread.get(rollout.meta.forked_from_id or rollout.meta.parent or "")
        if origin is None or origin is rollout:
            continue
        same = 0
        for ours, theirs in zip(rollout.usages, origin.usages, strict=False):
            if ours != theirs or ours[1] is None:
                break
            same += 1
        if same:
            counted = 0
            while counted < same and rollout.log.rounds:
                counted += rollout.log.rounds[0].input_tokens is not None
                del rollout.log.rounds[0]
            rollout.log.starts_midway = True
            builder.exclude("call that a fork copied from its origin", same)


def _parents(rollouts: list[Rollout]) -> dict[str, tuple[Rollout, ReviewMode | None]]:
    """Find every sub-agent's parent, and for a review the event that started it."""
    by_thread = {rollout.meta.id: rollout for rollout in rollouts if rollout.meta.id}
    open_reviews = [
        (review, rollout)
        for rollout in rollouts
        for review in rollout.reviews
        if rollout.log.rounds
    ]
    found: dict[str, tuple[Rollout, ReviewMode | None]] = {}
    for rollout in rollouts:
        if rollout.meta.subagent is None and rollout.meta.parent is None:
            continue
        named = by_thread.get(rollout.meta.parent) if rollout.meta.parent else None
        if named is not None and named is not rollout:
            found[rollout.log.agent] = (named, None)
            continue
        if rollout.start_s is None or rollout.meta.subagent != "review":
            continue
        near = [
            (abs(rollout.start_s - review.time_s), position)
            for position, (review, parent) in enumerate(open_reviews)
            if review.time_s is not None
            and parent is not rollout
            and abs(rollout.start_s - review.time_s) <= REVIEW_WINDOW_S
        ]
        if near:
            review, parent = open_reviews.pop(min(near)[1])
            found[rollout.log.agent] = (parent, review)
    return found


def _sessions(
    rollouts: list[Rollout], parents: dict[str, tuple[Rollout, ReviewMode | None]]
) -> list[SessionLogs]:
    """Gather every root with all that descend from it; what forms a circle stands for itself."""
    by_agent = {rollout.log.agent: rollout for rollout in rollouts}
    sessions: dict[str, SessionLogs] = {}
    for rollout in rollouts:
        root, passed = rollout, {rollout.log.agent}
        while root.log.agent in parents:
            above = parents[root.log.agent][0]
            if above.log.agent in passed:
                break
            passed.add(above.log.agent)
            root = above
        name = root.log.agent
        session = sessions.get(name)
        if session is None:
            session = SessionLogs(name=name, source=root.file.name, harness=HARNESS)
            sessions[name] = session
        if rollout is root and root.meta.subagent is None and root.meta.parent is None:
            session.lead = rollout.log
        else:
            session.agents[rollout.log.agent] = rollout.log
        _link(session, rollout, by_agent, parents)
    return list(sessions.values())


def _link(
    session: SessionLogs,
    rollout: Rollout,
    by_agent: dict[str, Rollout],
    parents: dict[str, tuple[Rollout, ReviewMode | None]],
) -> None:
    links = session.links.agents
    links.update(rollout.agent_of_use)
    children = [by_agent[name] for name, (parent, _) in parents.items() if parent is rollout]
    of_path = {child.meta.agent_path: child for child in children if child.meta.agent_path}
    of_path |= {
        path: child
        for child in children
        if isinstance(path := child.meta.thread_spawn.get("agent_path"), str)
    }
    for use, path in rollout.path_of_use.items():
        if path in of_path:
            links.setdefault(use, of_path[path].log.agent)
    started = {}
    for child in children:
        review = parents[child.log.agent][1]
        if review is not None:
            # The mark of a review is unique in its file only.
            review.use.id = f"{rollout.log.agent} {review.use.id}"
            links[review.use.id] = child.log.agent
            started[review.use.id.removeprefix(f"{rollout.log.agent} ")] = child.log.agent
    short = {path.rsplit("/", 1)[-1]: child.log.agent for path, child in of_path.items() if path}
    short |= {path: child.log.agent for path, child in of_path.items() if path}
    for logged in rollout.log.rounds:
        for given in logged.inputs:
            if given.returns_agent is not None:
                known = started.get(given.returns_agent) or short.get(given.returns_agent)
                given.returns_agent = known or given.returns_agent
        for called in logged.tool_uses:
            if called.spawn is not None and called.spawn.resumes in short:
                called.spawn.resumes = short[called.spawn.resumes or ""]


def _push(session: SessionLogs, builder: TraceBuilder, meter: Meter) -> None:
    agents = [session.lead, *session.agents.values()]
    logs: list[AgentLog] = [log for log in agents if log is not None and log.rounds]
    for log in agents:
        if log is not None and not log.rounds:
            builder.skip(log.name, "no request in it")
    if not logs:
        return
    if session.lead is not None and not session.lead.rounds:
        session.lead = None
    session.agents = {name: log for name, log in session.agents.items() if log.rounds}
    place_compactions(session)
    for log in logs:
        settle_usage(log, trust_reports=True)
        unsettled = sum(logged.usage_source is UsageSource.INFERRED for logged in log.rounds)
        if unsettled:
            builder.fill("usage", "no token count: content weighed, input from before", unsettled)
    push_session(builder, session, meter, HARNESS)

"""Reader of Claude Code transcripts: a session's JSONL and those of its sub-agents.

**Files.** A session is `SESSION.jsonl`; its sub-agents are `SESSION/subagents/**/agent-ID.jsonl`
(workflow runs in folders of their own), or in older versions `agent-ID.jsonl` beside it, tied to
the session by the `sessionId` of their rows. A session that is given alone brings its sub-agents
along: its folder, and of the files beside it those that its rows name. Sub-agents whose session
is absent, or that no call of it spawned, become sessions of their own.

**Requests.** One for each `message.id`, whose one to ten lines repeat the same usage; the largest
`output_tokens` counts. Input is `input_tokens + cache_creation_input_tokens +
cache_read_input_tokens`; the last is kept as the provider's own hit. Outputs are recounted from
the content where they are placeholders (`agent_log` says how), and flagged. Where a message has no
usage at all, its input is inferred from what came before. Reasoning is weighed from the thinking
blocks, or, where their text is withheld, is what the visible content leaves of the output.

**Turns** are opened by what a person typed (slash commands with a prompt included), not by tool
results, notifications, interrupts, command output, reminders, messages queued into a running
turn, or the summary of a compaction. A request that a person interrupted before it called a tool
counts as aborted.

**Times** are the rows' timestamps, from the session's first on: a request starts when its last
input was logged and ends with its last block. Delays are recorded: a tool's from the end of the
message to its last result (permission prompts included, which the log does not tell apart), a
user's until the prompt. A sub-agent's run is no delay of its parent.

**Sub-agents.** The instruction is the spawning call's prompt; type, model and tools are taken
where the call or the harness gives them. A type that says review, critic or verify is a reviewer.
Background agents return with the notification, or the task's output, that says they ended.

**Compaction.** `agent-acompact-…` is a request of the agent that it compacts (the one that its
first row follows); without such a file the summary in the log stands for it, counted. Rewinds are
taken from `parentUuid`, where the input shrank accordingly.

**Left out**, each counted with its reason: warm-ups, `<synthetic>` messages, API errors, calls and
rows that resumed and forked sessions repeat, side calls that the harness makes on a copy of the
context (prompt suggestions, side questions), rows that are part of no request (progress, queue,
snapshots, system), and a truncated last line. Empty files are skipped. A malformed line elsewhere,
or a field of the wrong type, is an error that names file, line, field and value.

**Not in the log**, so not in the trace: the system prompt's text (its length is the first call's
cache hit if there is one, else its input less the visible text) and the tools that were offered.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.readers.agent_family import SessionLogs, place_compactions
from lachesis.traces.readers.agent_log import AgentLog, Meter, meter_for, settle_usage
from lachesis.traces.readers.agent_session import push_session
from lachesis.traces.readers.claude_code_rows import agent_meta
from lachesis.traces.readers.claude_code_transcript import LEAD_LOG, SeenCalls, Transcript
from lachesis.traces.readers.protocol import ReadOptions, SourceFile

WORKLOAD: Final = "claude-code"
HARNESS: Final = "claude-code"
_SUBAGENTS: Final = "subagents"
_AGENT_FILE: Final = re.compile(r"agent-(?P<agent>.+)\.jsonl(?:\.gz|\.zst)?$")
_SESSION_FILE: Final = re.compile(r"(?P<session>.+)\.jsonl(?:\.gz|\.zst)?$")
_SIDE_CALLS: Final = ("aside_question", "aprompt_suggestion", "asession_memory", "aaway_summary")
_HEAD_SIGN: Final = re.compile(
    rb'"(?:parentUuid|isSidechain|sessionId|leafUuid|messageId)"\s*:|"type"\s*:\s*"summary"'
)
_ROW_TYPE: Final = re.compile(
    rb'"type"\s*:\s*"(?:user|assistant|system|summary|progress|attachment|queue-operation'
    rb'|file-history-snapshot)"'
)
_TIMESTAMP: Final = re.compile(rb'"timestamp"\s*:\s*"([^"]{10,40})"')
_SESSION_ID: Final = re.compile(rb'"sessionId"\s*:\s*"([^"]*)"')


class _Family:
    """The files of one session."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.main: SourceFile | None = None
        self.agents: list[tuple[str, SourceFile]] = []


class ClaudeCodeReader:
    """Claude Code transcripts; see the module for what is taken from where."""

    name = "claude-code"
    joins_files = True
    description = (
        "Claude Code JSONL with sub-agents: usage per message.id, placeholder outputs recounted, "
        "recorded delays; warm-ups, synthetic rows, API errors and repeated calls left out"
    )

    def recognises(self, file: SourceFile) -> bool:
        """Whether the first line looks like a row of a transcript."""
        if file.ending != ".jsonl":
            return False
        first = file.head.lstrip().split(b"\n", 1)[0]
        if not first.startswith(b"{") or _HEAD_SIGN.search(first) is None:
            return False
        # Of an assistant row longer than the head, its type is not in sight.
        return _ROW_TYPE.search(first) is not None or b'"isSidechain"' in first

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push the sessions of all files; raises `InputError` for a broken row."""
        meter = meter_for(options.count_tokens)
        seen = SeenCalls()
        for family in _families(files, options.left_out):
            _read_family(family, builder, seen, meter)


READER: Final = ClaudeCodeReader()


def _families(files: Sequence[SourceFile], left_out: frozenset[Path]) -> list[_Family]:
    """Sort files into sessions; sessions in order of their first time stamp."""
    families: dict[tuple[str, str], _Family] = {}
    unique: dict[str, SourceFile] = {}
    for file in files:
        unique.setdefault(file.resolved, file)
    given = unique.keys() | {str(path) for path in left_out}

    def family(folder: Path, session: str) -> _Family:
        return families.setdefault((str(folder), session), _Family(session))

    loose: list[tuple[str, SourceFile]] = []
    for file in unique.values():
        name = file.path.name
        agent = _AGENT_FILE.match(name)
        if agent is None:
            found = _SESSION_FILE.match(name)
            family(file.path.parent, found["session"] if found is not None else name).main = file
        elif (session := _session_of_path(file.path)) is not None:
            family(session.parent, session.name).agents.append((agent["agent"], file))
        else:
            loose.append((agent["agent"], file))
    for name, file in loose:
        named = _SESSION_ID.search(file.head)
        owner = named[1].decode(errors="replace") if named is not None else ""
        family(file.path.parent, owner or file.path.name).agents.append((name, file))
    for found_family in families.values():
        if found_family.main is not None:
            _bring_along(found_family, found_family.main, given)
    return sorted(families.values(), key=_first_time)


def _session_of_path(path: Path) -> Path | None:
    """Return SESSION for `SESSION/subagents/**/agent-ID.jsonl`."""
    if _SUBAGENTS in path.parts:
        for above in path.parents:
            if above.name == _SUBAGENTS:
                return above.parent
    return None


def _bring_along(family: _Family, main: SourceFile, given: set[str]) -> None:
    """Add the sub-agents of a session that was given without them."""
    folder = main.path.parent / family.name / _SUBAGENTS
    if folder.is_dir():
        above = main.path.parent.resolve()
        prefix = main.name[: len(main.name) - len(main.path.name)]
        for path in sorted(folder.rglob("agent-*.jsonl*")):
            agent = _AGENT_FILE.match(path.name)
            real = path.resolve()
            if agent is not None and str(real) not in given:
                given.add(str(real))
                name = prefix + str(real.relative_to(above))
                family.agents.append((agent["agent"], main.beside(path, name)))


def _first_time(family: _Family) -> tuple[bytes, int, str]:
    # Of two sessions that start with the same rows, the shorter is what the longer resumed.
    file = family.main or family.agents[0][1]
    found = _TIMESTAMP.search(file.head)
    return (found[1] if found is not None else b"~", file.path.stat().st_size, file.name)


def _read_family(family: _Family, builder: TraceBuilder, seen: SeenCalls, meter: Meter) -> None:
    logs = SessionLogs(
        name=family.name,
        source=family.main.name if family.main is not None else family.agents[0][1].name,
        harness=HARNESS,
    )
    transcripts: list[Transcript] = []
    if family.main is not None:
        main = _transcript(family.main, None, builder, seen, meter)
        if main is not None:
            transcripts.append(main)
            logs.lead = main.logs.pop(LEAD_LOG, None)
            logs.agents.update(main.logs)
            _bring_named(family, family.main, main)
    for agent, file in family.agents:
        if agent.startswith(_SIDE_CALLS):
            builder.exclude("side call of the harness on a copy of the context")
            continue
        read = _transcript(file, agent, builder, seen, meter)
        if read is None:
            continue
        transcripts.append(read)
        _note_agent(agent, file, read, logs)
    _find_compacted(transcripts, logs)
    for transcript in transcripts:
        logs.links.update(transcript.links)
        transcript.forget_rows()
    for agent, agent_type in logs.links.types.items():
        if agent in logs.agents and logs.agents[agent].agent_type is None:
            logs.agents[agent].agent_type = agent_type
    _leave_out_warm_ups(logs, builder)
    if logs.lead is None and not logs.agents:
        return
    place_compactions(logs)
    for log in [logs.lead, *logs.agents.values()]:
        if log is not None:
            settle_usage(log, trust_reports=False)
    push_session(builder, logs, meter, WORKLOAD)


def _bring_named(family: _Family, main: SourceFile, transcript: Transcript) -> None:
    """Add sub-agents of the old layout, beside the session, that its rows name."""
    known = {agent for agent, _ in family.agents}
    prefix = main.name[: len(main.name) - len(main.path.name)]
    for agent in sorted(set(transcript.links.agents.values()) - known):
        for ending in ("", ".gz", ".zst"):
            path = main.path.with_name(f"agent-{agent}.jsonl{ending}")
            if path.is_file():
                family.agents.append((agent, main.beside(path, prefix + path.name)))
                break


def _transcript(
    file: SourceFile,
    agent: str | None,
    builder: TraceBuilder,
    seen: SeenCalls,
    meter: Meter,
) -> Transcript | None:
    """Read one file; None, and skipped with a reason, where it holds no call."""
    transcript = Transcript(file, agent, seen, meter)
    for reason, count in sorted(transcript.dropped.items()):
        builder.drop(reason, count)
    for reason, count in sorted(transcript.excluded.items()):
        builder.exclude(reason, count)
    if not transcript.logs:
        empty = not transcript.dropped and not transcript.excluded
        builder.skip(file.name, "empty file" if empty else "no request in it")
        return None
    return transcript


def _note_agent(agent: str, file: SourceFile, read: Transcript, logs: SessionLogs) -> None:
    log = read.logs.get(agent)
    if log is None:
        return
    logs.agents[agent] = log
    meta = file.path.with_name(f"agent-{agent}.meta.json")
    if meta.is_file():
        noted = agent_meta(meta.read_bytes())
        log.agent_type = noted.agent_type
        if noted.tool_use_id:
            logs.use_of_agent[agent] = noted.tool_use_id
    folder = file.path.parent.name
    if folder != _SUBAGENTS and _session_of_path(file.path) is not None:
        logs.run_of_agent[agent] = folder


def _find_compacted(transcripts: list[Transcript], logs: SessionLogs) -> None:
    """Find whose context each compaction is of: its first row follows a row of that agent."""
    for compaction in transcripts:
        for agent, log in compaction.logs.items():
            if not log.is_compaction:
                continue
            for transcript in transcripts:
                owner = transcript.log_of_row(compaction.first_parent)
                if owner is not None and owner is not log:
                    logs.compacted_agent[agent] = owner
                    break


def _leave_out_warm_ups(logs: SessionLogs, builder: TraceBuilder) -> None:
    """Leave out agents that the harness started only to fill a cache."""
    named = set(logs.links.agents.values())
    reasons: Counter[str] = Counter()
    for name, log in list(logs.agents.items()):
        reason = _warm_up(log) if name not in named else None
        if reason is not None:
            reasons[reason] += len(log.rounds)
            del logs.agents[name]
    for reason, count in sorted(reasons.items()):
        builder.exclude(reason, count)


def _warm_up(log: AgentLog) -> str | None:
    if log.instruction is not None:
        return "warm-up" if log.instruction.strip() == "Warmup" else None
    calls_tools = any(logged.tool_uses for logged in log.rounds)
    if len(log.rounds) == 1 and not calls_tools and not log.is_compaction:
        return "warm-up (an answer to no logged prompt)"
    return None

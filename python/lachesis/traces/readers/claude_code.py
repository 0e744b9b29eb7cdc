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

import os
import re
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
_ROW_TYPE: Final = (
    b'"type"',
    re.compile(
        rb'"type"\s*:\s*"(user|assistant|system|summary|progress|attachment|queue-operation'
        rb'|file-history-snapshot)"'
    ),
)
_TIMESTAMP: Final = (b'"timestamp"', re.compile(rb'"timestamp"\s*:\s*"([^"]{10,40})"'))
_SESSION_ID: Final = (b'"sessionId"', re.compile(rb'"sessionId"\s*:\s*"([^"]*)"'))


class _Family:
    """The files of one session."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.main: SourceFile | None = None
        self.agents: list[tuple[str, SourceFile]] = []


class _Folders:
    """What is in the folders of the files; each is listed once, not asked for every name."""

    def __init__(self) -> None:
        self._names: dict[str, frozenset[str]] = {}

    def hold(self, name: str, *, beside: str) -> bool:
        """Whether there is something of this name beside a file."""
        folder = os.path.split(beside)[0]
        names = self._names.get(folder)
        if names is None:
            try:
                names = frozenset(os.listdir(folder or "."))  # noqa: PTH208 - of names, no paths
            except OSError:
                names = frozenset()
            self._names[folder] = names
        return name in names


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
        first = file.head.lstrip().partition(b"\n")[0]
        if not first.startswith(b"{") or _HEAD_SIGN.search(first) is None:
            return False
        # Of an assistant row longer than the head, its type is not in sight.
        return _first_value(_ROW_TYPE, first) is not None or b'"isSidechain"' in first

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push the sessions of all files; raises `InputError` for a broken row."""
        meter = meter_for(options.count_tokens)
        seen, folders = SeenCalls(), _Folders()
        for family in _families(files, options.left_out, folders):
            _read_family(family, builder, seen, meter, folders)


READER: Final = ClaudeCodeReader()


def _families(
    files: Sequence[SourceFile], left_out: frozenset[Path], folders: _Folders
) -> list[_Family]:
    """Sort files into sessions; sessions in order of their first time stamp."""
    families: dict[tuple[str, str], _Family] = {}
    unique: dict[str, SourceFile] = {}
    for file in files:
        unique.setdefault(file.resolved, file)
    given = unique.keys() | {str(path) for path in left_out}

    def family(folder: str, session: str) -> _Family:
        found = families.get((folder, session))
        if found is None:
            found = families[folder, session] = _Family(session)
        return found

    loose: list[tuple[str, str, SourceFile]] = []
    for file in unique.values():
        folder, name = os.path.split(file.place)
        agent = _AGENT_FILE.match(name)
        if agent is None:
            found = _SESSION_FILE.match(name)
            family(folder, found["session"] if found is not None else name).main = file
        elif (session := _session_of_path(file.place)) is not None:
            family(*os.path.split(session)).agents.append((agent["agent"], file))
        else:
            loose.append((folder, agent["agent"], file))
    for folder, name, file in loose:
        named = _first_value(_SESSION_ID, file.head)
        owner = named.decode(errors="replace") if named is not None else ""
        family(folder, owner or file.path.name).agents.append((name, file))
    for found_family in families.values():
        if found_family.main is not None:
            _bring_along(found_family, found_family.main, given, folders)
    return sorted(families.values(), key=_first_time)


def _session_of_path(place: str) -> Path | None:
    """Return SESSION for `SESSION/subagents/**/agent-ID.jsonl`."""
    if _SUBAGENTS in place:  # most are not; the path's parts take longer
        for above in Path(place).parents:
            if above.name == _SUBAGENTS:
                return above.parent
    return None


def _bring_along(family: _Family, main: SourceFile, given: set[str], folders: _Folders) -> None:
    """Add the sub-agents of a session that was given without them."""
    if not folders.hold(family.name, beside=main.place):
        return
    folder = main.path.with_name(family.name) / _SUBAGENTS
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
    time = _first_value(_TIMESTAMP, file.head)
    return (time if time is not None else b"~", file.size_bytes, file.name)


def _first_value(key: tuple[bytes, re.Pattern[bytes]], head: bytes) -> bytes | None:
    """Return the first value of a key; the plain search finds the key much faster."""
    name, with_value = key
    at = head.find(name)
    found = with_value.search(head, at) if at >= 0 else None
    return found[1] if found is not None else None


def _read_family(
    family: _Family, builder: TraceBuilder, seen: SeenCalls, meter: Meter, folders: _Folders
) -> None:
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
        _note_agent(agent, file, read, logs, folders)
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


def _note_agent(
    agent: str, file: SourceFile, read: Transcript, logs: SessionLogs, folders: _Folders
) -> None:
    log = read.logs.get(agent)
    if log is None:
        return
    logs.agents[agent] = log
    name = f"agent-{agent}.meta.json"
    if folders.hold(name, beside=file.place) and (meta := file.path.with_name(name)).is_file():
        noted = agent_meta(meta.read_bytes())
        log.agent_type = noted.agent_type
        if noted.tool_use_id:
            logs.use_of_agent[agent] = noted.tool_use_id
    if _session_of_path(file.place) is not None and file.path.parent.name != _SUBAGENTS:
        logs.run_of_agent[agent] = file.path.parent.name


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
    for name, log in list(logs.agents.items()):
        reason = _warm_up(log) if name not in named else None
        if reason is not None:
            builder.exclude(reason, len(log.rounds))
            del logs.agents[name]


def _warm_up(log: AgentLog) -> str | None:
    if log.instruction is not None:
        return "warm-up" if log.instruction.strip() == "Warmup" else None
    calls_tools = any(logged.tool_uses for logged in log.rounds)
    if len(log.rounds) == 1 and not calls_tools and not log.is_compaction:
        return "warm-up (an answer to no logged prompt)"
    return None

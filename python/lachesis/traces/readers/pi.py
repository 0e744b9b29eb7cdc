"""Reader of pi sessions (JSONL of the pi coding agent), first and later versions.

**Files.** A session is a file: a head of type `session`, then entries. Later versions give every
entry an `id` and a `parentId`, so that one file holds a tree; an entry that does not follow the one
before it is a rewind. A session that was branched off into a file of its own (`branchedFrom`,
`parentSession`) starts with copies of its origin's entries; where both are given the copied calls
count once. Sub-agents that a tool ran in processes of their own are in its result's `details`.

**Requests.** One for each assistant message. Input is `input + cacheRead + cacheWrite`, output is
`output` (reasoning included, which is weighed from the thinking blocks); `cacheRead` is kept as the
provider's own hit. A message that was aborted, or that failed, often has zero usage: its input is
then inferred from what came before (and is no more than the next input has), its output weighed
from the content, and it counts as aborted or failed. One that failed with nothing to show for it
(refused by the provider, say) is left out: it wrote nothing.

**Turns** are opened by user messages, not by those that stand beside tool results (steering),
commands that the user ran (`bashExecution`), or text that extensions put in.

**Compaction** entries end the context; the summary's text stands for the call that wrote it, which
is not logged. A branch's summary is injected text.

**Times.** An entry is stamped when it is complete. Delays are recorded.

**Left out**, each counted: entries that are no part of a request (model and level changes, labels,
extensions' state), calls that a branch repeats, a truncated last line. **Not in the log:** system
prompt and tool schemas; their length is the first cache hit, else the input less the visible text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.readers.agent_family import SessionLogs
from lachesis.traces.readers.agent_log import (
    AgentLog,
    InputKind,
    LoggedInput,
    Meter,
    Round,
    SpawnCall,
    ToolUse,
    arguments_tokens,
    meter_for,
    settle_usage,
)
from lachesis.traces.readers.agent_session import push_session
from lachesis.traces.readers.claude_code_rows import seconds
from lachesis.traces.readers.json_rows import decoded_lines
from lachesis.traces.readers.protocol import HEAD_BYTES, ReadOptions, SourceFile
from lachesis.traces.record_groups import NameNumbers
from lachesis.traces.schema import TOKENS_MAX, Status

HARNESS: Final = "pi"
_SESSION: Final = re.compile(rb'"type"\s*:\s*"session"')
_SIGN: Final = re.compile(rb'"(?:cwd|modelId|thinkingLevel|version)"\s*:')
_BRANCH: Final = re.compile(rb'"(?:branchedFrom|parentSession)"\s*:\s*"')
_TIMESTAMP: Final = re.compile(rb'"timestamp"\s*:\s*"([^"]{10,40})"')
_STATUS: Final = {"aborted": Status.ABORTED, "error": Status.ERROR}
Tokens = Annotated[int, msgspec.Meta(ge=0, le=TOKENS_MAX)]


class Usage(msgspec.Struct, rename="camel"):
    """The provider's counts; `input` is only what was neither read from nor written to a cache."""

    input: Tokens = 0
    output: Tokens = 0
    cache_read: Tokens = 0
    cache_write: Tokens = 0

    @property
    def is_zero(self) -> bool:
        """Whether it says nothing, as where a call was aborted."""
        return not (self.input or self.output or self.cache_read or self.cache_write)


class Block(msgspec.Struct):
    """A block of a message's content."""

    type: str
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    arguments: Any = None


class SubagentRun(msgspec.Struct):
    """One sub-agent's run, as a tool's details hold it."""

    agent: str | None = None
    task: str | None = None
    model: str | None = None
    messages: list[Message] | None = None


class Details(msgspec.Struct):
    """What a tool notes beside its result; of other tools nothing is taken."""

    results: list[SubagentRun] | None = None


class Message(msgspec.Struct, rename="camel"):
    """A message of any role."""

    role: str
    content: str | list[Block] | None = None
    usage: Usage | None = None
    stop_reason: str | None = None
    provider: str | None = None
    model: str | None = None
    timestamp: float | str | None = None
    tool_call_id: str | None = None
    command: str | None = None
    output: str | None = None
    summary: str | None = None
    exclude_from_context: bool | None = None
    details: msgspec.Raw = msgspec.Raw(b"null")


class Entry(msgspec.Struct, rename="camel"):
    """A line."""

    type: str
    timestamp: datetime | None = None
    id: str | None = None
    parent_id: str | None = None
    message: Message | None = None
    summary: str | None = None
    content: Any = None


_ENTRY: Final = msgspec.json.Decoder(Entry)
_DETAILS: Final = msgspec.json.Decoder(Details)


class PiReader:
    """pi sessions; see the module for what is taken from where."""

    name = "pi"
    joins_files = True
    description = (
        "pi JSONL: usage per message, aborted and failed calls with inferred counts, compaction, "
        "branches and trees, sub-agents in tool details, recorded delays"
    )

    def recognises(self, file: SourceFile) -> bool:
        """Whether the first line is a session's head."""
        if file.ending != ".jsonl":
            return False
        first = file.start.split(b"\n", 1)[0]
        if not first.startswith(b"{"):
            return False
        return _SESSION.search(first) is not None and _SIGN.search(first) is not None

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push the sessions of all files; raises `InputError` for a broken entry."""
        meter = meter_for(options.count_tokens)
        seen = NameNumbers()
        for file in sorted(files, key=_first_time):
            session = _Session(file, builder, meter, seen)
            logs = session.logs
            if logs.lead is None:
                builder.skip(file.name, "no request in it")
                continue
            for log in [logs.lead, *logs.agents.values()]:
                settle_usage(log, trust_reports=True)
            push_session(builder, logs, meter, HARNESS)


READER: Final = PiReader()


def _first_time(file: SourceFile) -> tuple[bytes, bool, str]:
    """Order a session before its branches: by first entry, then those that are no branches."""
    first, _, entries = (file.head or file.read_bytes(HEAD_BYTES)).partition(b"\n")
    found = _TIMESTAMP.search(entries)
    branch = _BRANCH.search(first) is not None
    return (found[1] if found is not None else b"~", branch, file.name)


class _Session:
    """One file."""

    def __init__(
        self, file: SourceFile, builder: TraceBuilder, meter: Meter, seen: NameNumbers
    ) -> None:
        self._file = file
        self._builder = builder
        self._meter = meter
        self._seen = seen
        # Entry → the call whose output it follows; the tree of later versions.
        self._place: dict[str, Round | None] = {}
        self._last_entry: str | None = None
        self._last: Round | None = None
        self._copied = False
        self.logs = SessionLogs(file.path.stem, file.name, HARNESS)
        self._log = AgentLog(agent="lead", name=file.name)
        self._read()
        if self._log.rounds:
            self.logs.lead = self._log

    def _read(self) -> None:
        truncated: list[str] = []
        for number, _, entry in decoded_lines(self._file, _ENTRY, truncated):
            time_s = seconds(entry.timestamp)
            follows = self._follow(entry)
            match entry.type:
                case "session":
                    self.logs.name = entry.id or self.logs.name
                    continue
                case "message" if entry.message is not None:
                    follows = self._message(entry.message, number, time_s, self._log, follows)
                case "compaction":
                    self._append(InputKind.SUMMARY, entry.summary or "", time_s)
                case "branch_summary":
                    self._append(InputKind.INJECTED, entry.summary or "", time_s)
                case "custom_message":
                    self._append(InputKind.INJECTED, _text(entry.content), time_s)
                case kind:
                    self._builder.ignore(f"{kind} entry: no part of a request")
            if entry.id is not None:
                self._place[entry.id] = follows
        for reason in truncated:
            self._builder.drop(reason)

    def _follow(self, entry: Entry) -> Round | None:
        """Find the call whose output the entry follows; inputs of another branch are forgotten."""
        if entry.id is None:
            return self._last
        moved = entry.parent_id != self._last_entry
        self._last_entry = entry.id
        if not moved or entry.type == "session":
            return self._last
        self._log.pending.clear()
        return self._place.get(entry.parent_id or "")

    def _message(
        self,
        message: Message,
        row: int,
        time_s: float | None,
        log: AgentLog,
        follows: Round | None,
    ) -> Round | None:
        match message.role:
            case "assistant":
                logged = self._call(message, row, time_s, log)
                if logged is None:
                    return follows
                if log is self._log:
                    if self._last is not None and follows is not self._last:
                        logged.rewinds, logged.extends = True, follows
                    self._last = logged
                return logged
            case "toolResult":
                text = _text(message.content)
                given = LoggedInput(
                    InputKind.RESULT, time_s, self._meter(text), tool_use_id=message.tool_call_id
                )
                log.pending.append(given)
                self._subagents(message, given, row, log)
            case "user":
                text = _text(message.content)
                kind = log.delivered_kind() if log.rounds else InputKind.PROMPT
                log.append_prompt(LoggedInput(kind, time_s, self._meter(text)), text)
            case "bashExecution" if not message.exclude_from_context:
                text = f"{message.command or ''}\n{message.output or ''}"
                self._append(InputKind.INJECTED, text, time_s)
            case "compactionSummary":
                self._append(InputKind.SUMMARY, message.summary or "", time_s)
            case "branchSummary" | "custom" | "hookMessage":
                text = message.summary or _text(message.content)
                self._append(InputKind.INJECTED, text, time_s)
            case role:
                self._builder.ignore(f"{role} message: no part of a request")
        return follows

    def _append(self, kind: InputKind, text: str, time_s: float | None) -> None:
        self._log.append_prompt(LoggedInput(kind, time_s, self._meter(text)), text)

    def _call(
        self, message: Message, row: int, time_s: float | None, log: AgentLog
    ) -> Round | None:
        usage = message.usage or Usage()
        content = message.content
        blocks = [Block("text", text=content)] if isinstance(content, str) else content or []
        status = _STATUS.get(message.stop_reason or "", Status.OK)
        if status is Status.ERROR and usage.is_zero and not blocks:
            self._builder.exclude("failed call that wrote nothing")
            return None
        if log is self._log and self._is_copy(message, usage):
            self._builder.exclude("call repeated by a branched session")
            log.starts_midway = not log.rounds or log.starts_midway
            log.pending.clear()
            return None
        logged = Round(call=f"row {row}", row=row, inputs=[], model=message.model)
        logged.first_s = logged.last_s = time_s
        logged.status = status
        if usage.is_zero:
            self._builder.fill("usage", f"none in a call that is {status}: content weighed")
        else:
            logged.input_tokens = usage.input + usage.cache_read + usage.cache_write
            logged.cached_tokens = usage.cache_read
            logged.output_tokens = usage.output
        for block in blocks:
            match block.type:
                case "text":
                    logged.visible_tokens += self._meter(block.text or "")
                case "thinking":
                    logged.reasoning_tokens += self._meter(block.thinking or "")
                    logged.hidden_reasoning |= not block.thinking
                case "toolCall":
                    logged.tool_uses.append(ToolUse(id=block.id or "", name=block.name or ""))
                    logged.visible_tokens += arguments_tokens(block.arguments, self._meter)
        log.begin(logged)
        return logged

    def _is_copy(self, message: Message, usage: Usage) -> bool:
        """Whether the whole import has this very call already: a branch's copy of it."""
        if message.timestamp is None:
            return False
        key = (message.timestamp, message.model, message.stop_reason, usage.input,
                        usage.output, usage.cache_read, usage.cache_write)  # fmt: skip
        known = len(self._seen)
        return self._seen.of(repr(key)) < known

    def _subagents(self, message: Message, given: LoggedInput, row: int, log: AgentLog) -> None:
        """Take the runs of sub-agents from the details of the tool that ran them."""
        raw = bytes(message.details)
        if b'"messages"' not in raw or not log.rounds:
            return
        try:
            runs = _DETAILS.decode(raw).results or []
        except msgspec.DecodeError:
            self._builder.drop("tool details of another shape")
            return
        uses = log.rounds[-1].tool_uses
        use = next((use for use in uses if use.id and use.id == message.tool_call_id), None)
        for number, run in enumerate(runs):
            child = AgentLog(agent=f"row {row}, run {number + 1}", name=self._file.name)
            child.instruction, child.agent_type = run.task, run.agent
            for inner in run.messages or ():
                stamp = inner.timestamp
                time_s = stamp / 1000 if isinstance(stamp, int | float) else None
                self._message(inner, row, time_s, child, None)
            if not child.rounds or use is None:
                continue
            started = use
            if use.spawn is not None:
                started = ToolUse(id=f"{use.id} {number + 1}", name=use.name, by_harness=True)
                uses.append(started)
            started.spawn = SpawnCall(run.task or "", agent_type=run.agent, model=run.model)
            self.logs.agents[child.agent] = child
            self.logs.links.agents[started.id] = child.agent
            if given.returns_agent is None:
                given.returns_agent = child.agent
                continue
            more = LoggedInput(InputKind.INJECTED, given.time_s, tool_use_id=started.id)
            more.returns_agent = child.agent
            log.pending.append(more)


def _text(content: object) -> str:
    """Join the texts of a content; images count as nothing."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    pieces = [
        piece.text if isinstance(piece, Block) else piece.get("text")
        for piece in content
        if isinstance(piece, Block | dict)
    ]
    return "\n".join(piece for piece in pieces if isinstance(piece, str))

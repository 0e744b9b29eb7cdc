"""One Claude Code transcript file, as the logs of the agents that it tells of.

A main transcript tells of the lead and, in versions that wrote them inline, of side chains; an
`agent-ID.jsonl` tells of one sub-agent. Lines of one message are merged here, user rows are told
apart, and each call learns which earlier output its context continues.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import msgspec

from lachesis.errors import InputError
from lachesis.traces.readers.agent_log import (
    AgentLog,
    InputKind,
    LoggedInput,
    Meter,
    Round,
    ToolUse,
    arguments_tokens,
    finished_task,
    input_kind,
)
from lachesis.traces.readers.claude_code_rows import (
    CONVERSATION,
    Block,
    Row,
    result_text,
    rows,
    seconds,
    tool_use_result,
)
from lachesis.traces.readers.json_fault import MALFORMED
from lachesis.traces.readers.protocol import SourceFile
from lachesis.traces.readers.subagent_links import SubagentLinks, needs_result, tool_use

LEAD_LOG: Final = ""
_JOINT: Final = "\n\n"  # between the blocks of a message
SYNTHETIC_MODEL: Final = "<synthetic>"
# By names of their own: before Python 3.12, asking an enum for a member is slow.
_RESULT = InputKind.RESULT


@dataclass(slots=True)
class SeenCalls:
    """Rows and calls read so far in the whole import: resumed and forked sessions repeat them."""

    uuids: set[int] = field(default_factory=set)  # hashes of them, see `Transcript`
    calls: dict[str, int] = field(default_factory=dict)  # call → serial of the thread that made it
    threads: int = 0


class _Thread:
    """A log that is being read."""

    __slots__ = ("calls", "last", "log", "serial", "texts", "tools")

    def __init__(self, log: AgentLog, serial: int) -> None:
        self.log = log
        self.serial = serial
        self.calls: dict[str, Round] = {}
        self.tools: dict[str, ToolUse] = {}
        self.last: Round | None = None
        self.texts = 0  # text blocks of the last call


class Transcript:
    """The logs of one file.

    Attributes:
        logs: by agent; the lead's under `LEAD_LOG`. Empty logs are left out.
        links: which call spawned which agent.
        dropped: rows that are no part of a request, by reason.
        excluded: calls that are no requests, by reason.

    """

    def __init__(self, file: SourceFile, agent: str | None, seen: SeenCalls, meter: Meter) -> None:
        self.file = file
        self.logs: dict[str, AgentLog] = {}
        self.links = SubagentLinks()
        self.dropped: Counter[str] = Counter()
        self.excluded: Counter[str] = Counter()
        self._seen = seen
        self._meter = meter
        self._fixed_agent = agent
        self._threads: dict[str, _Thread] = {}
        # Row → thread and the call whose output the row follows. Rows go by hashes of their ids
        # (64 bits; no two of millions are expected to be equal), which take a third of the room.
        self._place: dict[int, tuple[_Thread, Round | None]] = {}
        self._queued: list[tuple[float, str]] = []
        self._side_chains = 0
        self._excluded_calls: set[str] = set()
        self.first_parent: str | None = None
        self._read()

    def log_of_row(self, uuid: str | None) -> AgentLog | None:
        """Find the log that a row of this file belongs to."""
        place = self._place.get(hash(uuid)) if uuid else None
        return place[0].log if place else None

    def forget_rows(self) -> None:
        """Let go of what is known of single rows, which may be millions, and of the calls."""
        self._place = {}
        self._threads = {}

    def _read(self) -> None:
        main = self._thread(self._fixed_agent or LEAD_LOG)
        truncated: list[str] = []
        place = self._place
        start = (main, None)
        others: dict[str, int] = {}
        try:
            for number, row in rows(self.file, truncated):
                kind = row.kind
                if kind in CONVERSATION:
                    self._conversation_row(number, row, main)
                    continue
                if row.uuid:
                    place[hash(row.uuid)] = place.get(hash(row.parent_uuid), start)
                others[kind] = others.get(kind, 0) + 1
                if kind == "attachment":
                    self._attachment(row, main)
                elif kind == "queue-operation":
                    self._queue_operation(row)
        except MALFORMED as wrong:  # in a value that is decoded only where it is needed
            raise InputError(f"not valid JSON: {wrong}", path=self.file.name, row=number) from wrong
        for kind, count in others.items():
            self.dropped[f"{kind} row: no part of a request"] += count
        for reason in truncated:
            self.dropped[reason] += 1
        self._deliver_queued(main)
        self.logs = {key: thread.log for key, thread in self._threads.items() if thread.log.rounds}

    def _thread(self, agent: str) -> _Thread:
        thread = self._threads.get(agent)
        if thread is None:
            self._seen.threads += 1
            log = AgentLog(agent=agent, name=self.file.name)
            thread = self._threads[agent] = _Thread(log, self._seen.threads)
        return thread

    def _side_chain(self, row: Row, main: _Thread) -> _Thread:
        if row.agent_id:
            return self._thread(row.agent_id)
        parent = self._place.get(hash(row.parent_uuid))
        if parent is not None and parent[0] is not main:
            return parent[0]
        self._side_chains += 1
        return self._thread(f"sidechain-{self._side_chains}")

    # What runs for every row, and takes most of the time that is not decoding.

    def _conversation_row(self, number: int, row: Row, main: _Thread) -> None:
        inline = row.is_sidechain and self._fixed_agent is None
        thread = self._side_chain(row, main) if inline else main
        log = thread.log
        uuid = row.uuid
        parent = self._place.get(hash(row.parent_uuid))
        follows = parent[1] if parent is not None and parent[0] is thread else None
        key = hash(uuid)
        if uuid:
            if key in self._seen.uuids:
                self._place.setdefault(key, (thread, follows))
                self.dropped["row repeated by a resumed or forked session"] += 1
                if not log.rounds:
                    log.starts_midway = True
                return
            self._seen.uuids.add(key)
        if not log.rounds and not log.pending:
            self.first_parent = row.parent_uuid
            log.session = row.session_id
            log.version = row.version
            if row.parent_uuid and parent is None:
                log.starts_midway = True
        if row.kind == "assistant":
            logged = self._round_of(number, row, thread, follows)
            if logged is not None:
                self._merge(logged, row, thread)
                follows = logged
        else:
            self._user_row(row, thread)
        if uuid:
            self._place[key] = (thread, follows)

    def _round_of(
        self, number: int, row: Row, thread: _Thread, follows: Round | None
    ) -> Round | None:
        """Find or begin the call that the row is a line of; None if it is no request."""
        message = row.message
        call = message.id or row.uuid or f"{self.file.name}:{number}"
        if row.is_api_error_message or message.model == SYNTHETIC_MODEL:
            if call not in self._excluded_calls:
                self._excluded_calls.add(call)
                reason = "API error" if row.is_api_error_message else "synthetic message"
                self.excluded[reason] += 1
            return None
        logged = thread.calls.get(call)
        if logged is not None:
            return logged
        owner = self._seen.calls.setdefault(call, thread.serial)
        if owner != thread.serial:
            if call not in self._excluded_calls:
                self._excluded_calls.add(call)
                self.excluded["call repeated by a resumed or forked session"] += 1
            if not thread.log.rounds:
                thread.log.starts_midway = True
            return None
        model = None if message.model is None else sys.intern(message.model)
        logged = Round(call=call, row=number, inputs=[], model=model)
        if thread.last is not None and follows is not thread.last:
            logged.extends = follows
            logged.rewinds = follows is not None or row.parent_uuid is None
        thread.calls[call] = logged
        thread.last = logged
        thread.texts = 0
        thread.log.begin(logged)
        return logged

    def _merge(self, logged: Round, row: Row, thread: _Thread) -> None:
        message = row.message
        time_s = seconds(row.timestamp)
        if time_s is not None:
            if logged.first_s is None or time_s < logged.first_s:
                logged.first_s = time_s
            if logged.last_s is None or time_s > logged.last_s:
                logged.last_s = time_s
        if message.stop_reason is not None:
            logged.stopped = True
        usage = message.usage
        if usage is not None:
            total = usage.total_input_tokens
            if total > (logged.input_tokens or 0):
                logged.input_tokens = total
                logged.cached_tokens = usage.cache_read_input_tokens
            output = usage.output_tokens
            if output is not None and (
                logged.output_tokens is None or output > logged.output_tokens
            ):
                logged.output_tokens = output
        content = message.content
        if isinstance(content, str):
            content = [Block(type="text", text=content)]
        for block in content or ():
            kind = block.type
            if kind == "text":
                text = (block.text or "").strip()
                if text and thread.texts:
                    logged.visible_tokens += self._meter(_JOINT)
                thread.texts += bool(text)
                logged.visible_tokens += self._meter(text)
            elif kind == "thinking" or kind == "redacted_thinking":
                text = (block.thinking or "").strip()
                if text and logged.reasoning_tokens:
                    logged.reasoning_tokens += self._meter(_JOINT)
                logged.reasoning_tokens += self._meter(text)
                if not text:
                    logged.hidden_reasoning = True
            elif kind.endswith("tool_use"):
                self._tool_use(logged, block, thread)

    def _tool_use(self, logged: Round, block: Block, thread: _Thread) -> None:
        identity = block.id or ""
        if identity in thread.tools:
            return  # the same block on a second line
        use = tool_use(identity, sys.intern(block.name or ""), block.input)
        logged.tool_uses.append(use)
        if identity:
            thread.tools[identity] = use
        logged.visible_tokens += arguments_tokens(msgspec.json.decode(block.input), self._meter)

    def _user_row(self, row: Row, thread: _Thread) -> None:
        content = row.message.content
        time_s = seconds(row.timestamp)
        texts: list[str] = []
        results = False
        if isinstance(content, str):
            texts.append(content)
        elif content is not None:
            for block in content:
                kind = block.type
                if kind.endswith("tool_result"):
                    results = True
                    thread.log.pending.append(self._result(row, block, time_s, thread))
                elif kind == "text" and block.text is not None:
                    texts.append(block.text)
                elif kind in ("image", "document"):
                    texts.append(f"[{kind}]")
        if texts:
            self._user_text(row, "\n\n".join(texts), time_s, thread, with_results=results)

    def _result(self, row: Row, block: Block, time_s: float | None, thread: _Thread) -> LoggedInput:
        identity = block.tool_use_id
        tokens = memoryview(block.content).nbytes / _RAW_BYTES_PER_TOKEN
        use = thread.tools.get(identity) if identity else None
        given = LoggedInput(_RESULT, time_s, tokens, identity if use is None else use.id)
        if use is not None and needs_result(use):
            self.links.note_result(use, tool_use_result(row), result_text(block.content), given)
        return given

    def _user_text(
        self, row: Row, text: str, time_s: float | None, thread: _Thread, *, with_results: bool
    ) -> None:
        kind = self._kind(row, text)
        if with_results and kind in (InputKind.PROMPT, InputKind.COMMAND):
            kind = InputKind.INJECTED  # delivered with tool results, so into a running turn
        given = LoggedInput(kind, time_s, self._meter(text))
        if kind is InputKind.NOTIFICATION:
            given.returns_agent = finished_task(text)
        thread.log.append_prompt(given, text)

    @staticmethod
    def _kind(row: Row, text: str) -> InputKind:
        if row.is_compact_summary:
            return InputKind.SUMMARY
        kind = input_kind(text)
        if kind not in (InputKind.PROMPT, InputKind.COMMAND):
            return kind
        if row.is_meta:
            return InputKind.INJECTED
        origin = row.origin.kind if row.origin is not None else None
        return kind if origin in (None, "human") else InputKind.NOTIFICATION

    def _attachment(self, row: Row, main: _Thread) -> None:
        attached = row.attachment
        if attached is None or attached.type != "queued_command":
            return
        text = attached.prompt if isinstance(attached.prompt, str) else ""
        given = LoggedInput(
            kind=InputKind.INJECTED, time_s=seconds(row.timestamp), tokens=self._meter(text)
        )
        given.returns_agent = finished_task(text)
        main.log.pending.append(given)

    def _queue_operation(self, row: Row) -> None:
        time: datetime | None = row.timestamp
        if row.operation == "enqueue" and isinstance(row.content, str) and time is not None:
            agent = finished_task(row.content)
            if agent is not None:
                self._queued.append((seconds(time) or 0.0, agent))

    def _deliver_queued(self, main: _Thread) -> None:
        """Let a notification that was only ever queued arrive with the next call."""
        rounds = main.log.rounds
        arrived = {given.returns_agent for logged in rounds for given in logged.inputs}
        for time_s, agent in self._queued:
            if agent in arrived:
                continue
            arrived.add(agent)
            for logged in rounds:
                start_s = logged.start_s
                if start_s is not None and start_s >= time_s:
                    logged.inputs.append(
                        LoggedInput(InputKind.INJECTED, time_s, returns_agent=agent)
                    )
                    break


# Results are weighed undecoded, JSON escapes included; they matter only where usage is missing.
_RAW_BYTES_PER_TOKEN: Final = 3.5

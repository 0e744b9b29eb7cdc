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
_ANYTHING = msgspec.json.Decoder()


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


#: Where a row stands: in which thread, and the call whose output it follows.
_Place = tuple[_Thread, Round | None]


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
        # Rows go by hashes of their ids (64 bits; no two of millions are expected to be equal),
        # which take a third of the room.
        self._place: dict[int, _Place] = {}
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
        place_of_row, uuids = self._place, self._seen.uuids
        with_side_chains = self._fixed_agent is None
        truncated: list[str] = []
        others: dict[str, int] = {}
        try:
            for number, row in rows(self.file, truncated):
                kind, uuid = row.kind, row.uuid
                key = hash(uuid)
                parent = place_of_row.get(hash(row.parent_uuid))
                if kind != "assistant" and kind != "user":
                    if uuid:
                        place_of_row[key] = parent or (main, None)
                    others[kind] = others.get(kind, 0) + 1
                    self._other_row(row, main)
                    continue
                thread = (
                    self._side_chain(row, main) if row.is_sidechain and with_side_chains else main
                )
                place = parent if parent is not None and parent[0] is thread else (thread, None)
                if uuid:
                    known = len(uuids)
                    uuids.add(key)  # and look for it, at once
                    if len(uuids) == known:
                        place_of_row.setdefault(key, place)
                        self._repeated_row(thread.log)
                        continue
                if not thread.log.rounds and not thread.log.pending:
                    self._first_row(row, thread.log, parent)
                if kind == "user":
                    self._user_row(row, thread)
                else:
                    logged = self._call_of(number, row, place)
                    if logged is not None:
                        self._merge(logged, row, thread)
                        if place[1] is not logged:
                            place = (thread, logged)
                if uuid:
                    place_of_row[key] = place
        except MALFORMED as wrong:  # in a value that is decoded only where it is needed
            raise InputError(f"not valid JSON: {wrong}", path=self.file.name, row=number) from wrong
        for kind, count in others.items():
            self.dropped[f"{kind} row: no part of a request"] += count
        for reason in truncated:
            self.dropped[reason] += 1
        self._deliver_queued(main)
        self.logs = {key: thread.log for key, thread in self._threads.items() if thread.log.rounds}

    def _repeated_row(self, log: AgentLog) -> None:
        self.dropped["row repeated by a resumed or forked session"] += 1
        if not log.rounds:
            log.starts_midway = True

    def _first_row(self, row: Row, log: AgentLog, parent: _Place | None) -> None:
        self.first_parent = row.parent_uuid
        log.session = row.session_id
        log.version = row.version
        if row.parent_uuid and parent is None:
            log.starts_midway = True

    def _other_row(self, row: Row, main: _Thread) -> None:
        if row.kind == "attachment":
            self._attachment(row, main)
        elif row.kind == "queue-operation":
            self._queue_operation(row)

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

    def _call_of(self, number: int, row: Row, place: _Place) -> Round | None:
        """Find or begin the call that the row is a line of; None if it is no request."""
        thread, follows = place
        message = row.message
        call = message.id or row.uuid or f"{self.file.name}:{number}"
        if row.is_api_error_message or message.model == SYNTHETIC_MODEL:
            self._exclude(call, "API error" if row.is_api_error_message else "synthetic message")
            return None
        logged = thread.calls.get(call)
        if logged is not None:
            return logged
        if self._seen.calls.setdefault(call, thread.serial) != thread.serial:
            self._exclude(call, "call repeated by a resumed or forked session")
            if not thread.log.rounds:
                thread.log.starts_midway = True
            return None
        model, last = message.model, thread.last
        if last is not None and last.model == model:
            model = last.model  # one string for all calls
        logged = Round(call, number, [], model)
        if last is not None and follows is not last:
            logged.extends = follows
            logged.rewinds = follows is not None or row.parent_uuid is None
        thread.calls[call] = thread.last = logged
        thread.texts = 0
        thread.log.begin(logged)
        return logged

    def _exclude(self, call: str, reason: str) -> None:
        if call not in self._excluded_calls:
            self._excluded_calls.add(call)
            self.excluded[reason] += 1

    def _merge(self, logged: Round, row: Row, thread: _Thread) -> None:
        message = row.message
        time_s = seconds(row.timestamp)
        if time_s is not None:
            if logged.first_s is None or logged.last_s is None:
                logged.first_s = logged.last_s = time_s
            elif time_s > logged.last_s:
                logged.last_s = time_s
            elif time_s < logged.first_s:
                logged.first_s = time_s
        if message.stop_reason is not None:
            logged.stopped = True
        usage = message.usage
        if usage is not None:
            cached, output = usage.cache_read_input_tokens, usage.output_tokens
            total = (
                (usage.input_tokens or 0) + (usage.cache_creation_input_tokens or 0) + (cached or 0)
            )
            if total > (logged.input_tokens or 0):
                logged.input_tokens = total
                logged.cached_tokens = cached
            if output is not None and (
                logged.output_tokens is None or output > logged.output_tokens
            ):
                logged.output_tokens = output
        content = message.content
        if isinstance(content, str):
            content = [Block(type="text", text=content)]
        meter = self._meter
        for block in content or ():
            kind = block.type
            if kind == "text":
                text = (block.text or "").strip()
                if text and thread.texts:
                    logged.visible_tokens += meter(_JOINT)
                thread.texts += bool(text)
                logged.visible_tokens += meter(text)
            elif kind == "thinking" or kind == "redacted_thinking":
                text = (block.thinking or "").strip()
                if text and logged.reasoning_tokens:
                    logged.reasoning_tokens += meter(_JOINT)
                logged.reasoning_tokens += meter(text)
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
        logged.visible_tokens += arguments_tokens(_ANYTHING.decode(block.input), self._meter)

    def _user_row(self, row: Row, thread: _Thread) -> None:
        content = row.message.content
        time_s = seconds(row.timestamp)
        if isinstance(content, str):
            self._user_text(row, content, time_s, thread, with_results=False)
            return
        texts: list[str] = []
        results = False
        for block in content or ():
            kind = block.type
            if kind.endswith("tool_result"):
                results = True
                self._result(row, block, time_s, thread)
            elif kind == "text" and block.text is not None:
                texts.append(block.text)
            elif kind in ("image", "document"):
                texts.append(f"[{kind}]")
        if texts:
            self._user_text(row, "\n\n".join(texts), time_s, thread, with_results=results)

    def _result(self, row: Row, block: Block, time_s: float | None, thread: _Thread) -> None:
        identity = block.tool_use_id
        tokens = memoryview(block.content).nbytes / _RAW_BYTES_PER_TOKEN
        use = thread.tools.get(identity) if identity else None
        given = LoggedInput(_RESULT, time_s, tokens, identity if use is None else use.id)
        thread.log.pending.append(given)
        if use is not None and needs_result(use):
            self.links.note_result(use, tool_use_result(row), result_text(block.content), given)

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
        if not self._queued:
            return
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

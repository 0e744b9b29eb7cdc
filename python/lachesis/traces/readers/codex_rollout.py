"""One Codex rollout file, as the log of the one agent that it tells of.

A response's items are logged as they stream, and its usage follows them (before the results of its
calls); versions of 2025 logged the usage first and the items after. Both orders are told apart by
what stands between: see `codex_calls`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from lachesis.traces.readers.agent_log import (
    AgentLog,
    InputKind,
    LoggedInput,
    Meter,
    Round,
    SpawnCall,
    ToolUse,
    arguments_tokens,
)
from lachesis.traces.readers.claude_code_rows import seconds
from lachesis.traces.readers.codex_calls import Calls
from lachesis.traces.readers.codex_rows import (
    Compacted,
    Event,
    Item,
    Meta,
    TurnContext,
    Usage,
    UsageRecord,
    rollout_rows,
    texts_of,
)
from lachesis.traces.readers.protocol import SourceFile

#: What the harness puts into user messages: contexts and notes in tags, and project instructions.
_HARNESS_TEXT: Final = re.compile(r"\s*(<[a-z][a-z_ -]*>|# AGENTS\.md instructions)")
_SPAWN: Final = "spawn_agent"
_SENDS: Final = frozenset({"send_input", "send_message", "followup_task", "resume_agent"})
_WAITS: Final = frozenset({"wait", "wait_agent"})
_OUTPUTS: Final = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output"}
)
_ENDED: Final = ("completed", "errored", "failed")
_NOTICE: Final = re.compile(r"<subagent_notification>\s*(\{.*?\})\s*</subagent_notification>", re.S)


@dataclass(slots=True)
class ReviewMode:
    """A review that the harness started: when, and the marks of its spawn and of its result."""

    time_s: float | None
    use: ToolUse


@dataclass(slots=True)
class _View:
    """A log under construction: from response items, or from events where there are no items."""

    log: AgentLog
    calls: Calls
    turn_starts: list[int] = field(default_factory=list)
    tools: dict[str, ToolUse] = field(default_factory=dict)


class Rollout:
    """One file.

    Attributes:
        meta: the thread's own description.
        log: its rounds; empty where it holds no call.
        reviews: reviews that the harness started, which have rollouts of their own.
        agent_of_use: threads that calls started, by call; `path_of_use` their paths.
        usages: every call's usage in order, with the whole thread's count, to see repeats in forks.
        invisible_calls: calls that only their usage tells of.
        start_s: when the thread began.
        dropped, ignored: rows that were lost, and rows that are no part of a request, by reason.

    """

    def __init__(self, file: SourceFile, meter: Meter) -> None:
        self.file = file
        self.meta = Meta()
        self.reviews: list[ReviewMode] = []
        self.agent_of_use: dict[str, str] = {}
        self.path_of_use: dict[str, str] = {}
        self.usages: list[tuple[Usage, Usage | None]] = []
        self.dropped: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self.start_s: float | None = None
        self._meter = meter
        self._items, self._events = self._view(), self._view()
        self._counted: set[Usage] = set()
        self._last: Usage | None = None
        self._responses: set[str] = set()
        self._has_records = False
        self._between_turns = False
        self._has_items = False  # output items; without any, events stand for them
        self._read()
        chosen = self._items if self._has_items else self._events
        self.log = chosen.log
        self._hang_reviews()
        self.invisible_calls = chosen.calls.invisible

    def _view(self) -> _View:
        log = AgentLog(agent="", name=self.file.name)
        return _View(log, Calls(log))

    def _read(self) -> None:
        truncated: list[str] = []
        seen_meta = False
        number = 0
        for row in rollout_rows(self.file, truncated):
            number, payload, time_s = row.number, row.payload, seconds(row.time)
            if self.start_s is None:
                self.start_s = time_s
            match payload:
                case Meta():
                    if seen_meta:  # a fork copies its origin's
                        self.ignored["session_meta of the thread that was forked"] += 1
                        continue
                    seen_meta = True
                    self._take_meta(payload, time_s)
                case TurnContext():
                    for view in (self._items, self._events):
                        view.calls.model = payload.model or view.calls.model
                case Item():
                    self._item(payload, number, time_s)
                case Event():
                    self._event(payload, number, time_s)
                case Compacted():
                    self._compacted(payload, number, time_s)
                case UsageRecord():
                    self._record(payload, number, time_s)
                case None:
                    self.ignored[f"{row.kind} row: no part of a request"] += 1
        for view in (self._items, self._events):
            view.calls.flush(number)
        for reason in truncated:
            self.dropped[reason] += 1

    def _take_meta(self, meta: Meta, time_s: float | None) -> None:
        self.meta = meta
        text = meta.system_text
        for view in (self._items, self._events):
            view.log.version = meta.cli_version
            view.log.session = meta.id
            if text:
                given = LoggedInput(InputKind.SYSTEM, time_s, self._meter(text))
                view.log.pending.append(given)

    def _item(self, item: Item, row: int, time_s: float | None) -> None:
        view = self._items
        given = item.type in _OUTPUTS or (item.type == "message" and item.role != "assistant")
        self._between_turns &= given
        self._has_items |= not given
        if item.type in _OUTPUTS:
            self._result(item, time_s)
        elif item.type == "message" and item.role != "assistant":
            view.calls.end()
            self._given(item, row, time_s)
        elif item.type == "message":
            logged = view.calls.output(row, time_s)
            logged.visible_tokens += self._meter(texts_of(item.content))
        elif item.type == "reasoning":
            logged = view.calls.output(row, time_s)
            shown = texts_of(item.content)
            logged.reasoning_tokens += self._meter(shown)
            logged.hidden_reasoning |= not shown
        elif item.type.endswith("_call"):
            self._call(item, view.calls.output(row, time_s))
        elif item.type in ("compaction", "context_compaction"):
            view.log.pending.append(LoggedInput(InputKind.SUMMARY, time_s))
        else:
            self.ignored[f"{item.type} item: no part of a request"] += 1

    def _given(self, item: Item, row: int, time_s: float | None) -> None:
        """Take a user's or the harness's message."""
        view = self._items
        view.calls.flush(row)
        text = texts_of(item.content)
        kind = InputKind.INJECTED
        if item.role != "user":
            kind = InputKind.INJECTED if view.log.rounds else InputKind.SYSTEM
        elif _HARNESS_TEXT.match(text) is None and text:
            kind = InputKind.PROMPT if self._between_turns else view.log.delivered_kind()
        if kind is InputKind.PROMPT:
            view.turn_starts.append(len(view.log.rounds))
        given = LoggedInput(kind, time_s, self._meter(text))
        notice = _NOTICE.search(text)
        if notice is not None:
            ended = _ended_agents(notice[1])
            given.returns_agent = ended[0] if ended else None
        view.log.append_prompt(given, text)

    def _call(self, item: Item, logged: Round) -> None:
        name = item.name or item.type.removesuffix("_call")
        use = ToolUse(id=item.call_id or "", name=name)
        arguments = item.arguments if item.arguments is not None else item.input or item.action
        decoded = _decoded(arguments)
        logged.visible_tokens += arguments_tokens(
            decoded if decoded is not None else arguments, self._meter
        )
        given = decoded if isinstance(decoded, dict) else {}
        said = given.get("message") or given.get("prompt")
        prompt = said if isinstance(said, str) else ""
        if name == _SPAWN:
            kind = given.get("agent_type") or given.get("task_name")
            model = given.get("model")
            use.spawn = SpawnCall(
                prompt=prompt,
                agent_type=kind if isinstance(kind, str) else None,
                model=model if isinstance(model, str) else None,
            )
        elif name in _SENDS:
            target = given.get("id") or given.get("target")
            if isinstance(target, str) and target:
                use.spawn = SpawnCall(prompt=prompt, resumes=target)
        logged.tool_uses.append(use)
        if use.id:
            self._items.tools[use.id] = use

    def _result(self, item: Item, time_s: float | None) -> None:
        view = self._items
        text = texts_of(item.output)
        given = LoggedInput(InputKind.RESULT, time_s, self._meter(text), tool_use_id=item.call_id)
        view.log.pending.append(given)
        use = view.tools.get(item.call_id or "")
        if use is None:
            return
        if use.name == _SPAWN:
            said = _decoded(text)
            started = said if isinstance(said, dict) else {}
            agent, path = started.get("agent_id"), started.get("task_name")
            if isinstance(agent, str):
                self.agent_of_use[use.id] = agent
            elif isinstance(path, str):
                self.path_of_use[use.id] = path
            elif use.id not in self.agent_of_use:
                use.spawn = None  # it was refused
        elif use.name in _WAITS:
            for number, agent in enumerate(_ended_agents(text)):
                if number == 0:
                    given.returns_agent = agent
                    continue
                more = LoggedInput(InputKind.INJECTED, time_s, tool_use_id=item.call_id)
                more.returns_agent = agent
                view.log.pending.append(more)

    def _event(self, event: Event, row: int, time_s: float | None) -> None:
        view = self._events
        match event.type:
            case "token_count":
                self._token_count(event, row, time_s)
            case "user_message":
                text = texts_of(event.message)
                view.calls.flush(row)
                view.calls.end()
                view.turn_starts.append(len(view.log.rounds))
                given = LoggedInput(InputKind.PROMPT, time_s, self._meter(text))
                view.log.append_prompt(given, text)
            case "agent_message":
                logged = view.calls.output(row, time_s)
                logged.visible_tokens += self._meter(texts_of(event.message))
            case "agent_reasoning":
                logged = view.calls.output(row, time_s)
                logged.reasoning_tokens += self._meter(texts_of(event.text))
            case "task_started" | "task_complete" | "turn_started" | "turn_complete":
                self._between_turns = True
                self._items.calls.end()
                view.calls.end()
            case "turn_aborted":
                self._between_turns = True
                self._items.calls.abort()
                view.calls.abort()
            case "thread_rolled_back":
                for each in (self._items, view):
                    _roll_back(each, event.num_turns or 1)
            case "entered_review_mode":
                self._enter_review(event, time_s)
            case "exited_review_mode":
                self._leave_review(event, time_s)
            case "collab_agent_spawn_end" if event.call_id and event.new_thread_id:
                self.agent_of_use[event.call_id] = event.new_thread_id
            case "item_completed" if isinstance(event.item, dict):
                item = event.item
                started = item.get("type") == "SubAgentActivity" and item.get("kind") == "started"
                call, agent = item.get("id"), item.get("agent_thread_id")
                if started and isinstance(call, str) and isinstance(agent, str):
                    self.agent_of_use[call] = agent
            case _:
                self.ignored["event: repeats what items say, or no part of a request"] += 1

    def _token_count(self, event: Event, row: int, time_s: float | None) -> None:
        info = event.info
        if info is None or info.last_token_usage is None:
            self.ignored["token_count without counts"] += 1
            return
        total, last = info.total_token_usage, info.last_token_usage
        known = total in self._counted if total is not None else last == self._last
        if known or self._has_records:
            self.ignored["token_count that repeats an earlier one"] += 1
            return
        if total is not None:
            self._counted.add(total)
        self._last = last
        self._take_usage(last, total, row, time_s)

    def _record(self, record: UsageRecord, row: int, time_s: float | None) -> None:
        self._has_records = True
        if record.usage is None or (record.response_id or "") in self._responses:
            self.ignored["token_usage_record that repeats, or has no counts"] += 1
            return
        if record.response_id:
            self._responses.add(record.response_id)
        self._take_usage(record.usage, None, row, time_s)

    def _take_usage(
        self, usage: Usage, total: Usage | None, row: int, time_s: float | None
    ) -> None:
        self.usages.append((usage, total))
        for view in (self._items, self._events):
            view.calls.usage(usage, row, time_s)

    def _compacted(self, compacted: Compacted, row: int, time_s: float | None) -> None:
        text = compacted.message or texts_of(compacted.replacement_history)
        for view in (self._items, self._events):
            view.calls.flush(row, compacts=True)
            view.calls.end()
            view.log.pending.append(LoggedInput(InputKind.SUMMARY, time_s, self._meter(text)))

    def _enter_review(self, event: Event, time_s: float | None) -> None:
        use = ToolUse(id=f"review {len(self.reviews) + 1}", name="review", by_harness=True)
        use.spawn = SpawnCall(prompt=texts_of(event.prompt), agent_type="review")
        self.reviews.append(ReviewMode(time_s, use))
        for view in (self._items, self._events):
            if view.log.rounds:
                view.log.rounds[-1].tool_uses.append(use)

    def _leave_review(self, event: Event, time_s: float | None) -> None:
        if not self.reviews:
            return
        use = self.reviews[-1].use
        text = json.dumps(event.review_output) if event.review_output else ""
        for view in (self._items, self._events):
            given = LoggedInput(InputKind.INJECTED, time_s, self._meter(text), tool_use_id=use.id)
            given.returns_agent = use.id
            view.log.pending.append(given)

    def _hang_reviews(self) -> None:
        """Hang reviews that started before any call of the lead under its first one."""
        hung = {use.id for logged in self.log.rounds for use in logged.tool_uses}
        if self.log.rounds:
            for review in self.reviews:
                if review.use.id not in hung:
                    self.log.rounds[0].tool_uses.append(review.use)


def _roll_back(view: _View, turns: int) -> None:
    """Forget the last turns: the next call follows what stood before them."""
    starts = view.turn_starts
    first = starts[max(0, len(starts) - turns)] if starts and turns else len(view.log.rounds)
    del starts[max(0, len(starts) - turns) :]
    view.calls.end()
    view.log.pending = [g for g in view.log.pending if g.kind is InputKind.SYSTEM]
    view.calls.rewinds = first < len(view.log.rounds)
    view.calls.rewinds_before = view.log.rounds[first - 1] if first else None


def _decoded(text: object) -> object:
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _ended_agents(text: str) -> list[str]:
    """Name the threads that a wait's result or a notification says have ended."""
    said = _decoded(text)
    if not isinstance(said, dict):
        return []
    status = said.get("status")
    if not isinstance(status, dict):
        return []
    agent = said.get("agent_id") or said.get("agent_path")
    if isinstance(agent, str):
        return [agent] if any(key in status for key in _ENDED) else []
    return [
        name
        for name, state in status.items()
        if isinstance(state, dict) and any(key in state for key in _ENDED)
    ]

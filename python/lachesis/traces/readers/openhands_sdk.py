"""Reader of conversations of OpenHands' SDK: a folder of `base_state.json` and one file an event.

**Files.** `CONVERSATION/base_state.json` and `CONVERSATION/events/event-00000-ID.json`, in order of
their names. Sub-agents that the `task` tool starts are conversations of their own, in folders
under `CONVERSATION/subagents/`. A state that is not among the files is taken from beside them;
without one there is no usage.

**Requests.** One for each `llm_response_id` of the agent's messages and actions: actions of one
response count once. Input and output are the usage that the state has under that id
(`stats.usage_to_metrics.*.token_usages`); `cache_read_tokens` is kept as the provider's own hit.
Without it the output is weighed from its content and the input is what came before (inferred).

**Turns** are opened by messages of the user that do not fall into a running turn; messages of the
environment (hooks, reminders) are injected.

**Sub-agents.** A call of `task` starts the conversation that begins with its prompt, or resumes the
one of the task that it names; its result returns it, or for one in the background the
`task_output` that says it ended. Delegates of the `delegate` tool are not logged.

**Compaction** is a `Condensation`: its summary's text stands for the condenser's call, which has a
prompt of its own and is counted as left out.

**Times.** Actions are stamped when the response is there, observations when the tool has ended;
delays are recorded. **Prompt**: the system prompt and the tools' schemas are logged, so equal ones
share one copy; the length is the first cache hit, else the input less the visible text.

**Left out**, each counted: events that are no part of a request (state updates, pauses and others).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.logged import content_key
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
from lachesis.traces.readers.chat_completion import CompletionUsage, content_texts
from lachesis.traces.readers.claude_code_rows import seconds
from lachesis.traces.readers.json_rows import decoded_document
from lachesis.traces.readers.openhands_sdk_events import (
    Event,
    LlmMessage,
    ResponseUsage,
    State,
    TaskFields,
    ToolCall,
    usages,
)
from lachesis.traces.readers.protocol import ReadOptions, SourceFile

HARNESS: Final = "openhands"
_STATE: Final = "base_state.json"
_SUBAGENTS: Final = "subagents"
_STATE_SIGN: Final = re.compile(rb'\{\s*"id"\s*:\s*"[^"]*"\s*,\s*"agent"\s*:\s*\{')
_EVENT_SIGN: Final = re.compile(
    rb'\{\s*(?:"kind"\s*:\s*"\w+"\s*,\s*)?"id"\s*:\s*"[^"]*"\s*,\s*"timestamp"\s*:\s*"[^"]*"\s*,'
    rb'\s*"source"\s*:\s*"(?:agent|user|environment|hook)"'
)
_RESULTS: Final = frozenset({"ObservationEvent", "AgentErrorEvent", "UserRejectObservation"})
_RUNNING: Final = frozenset({"running", "pending"})


_EVENT: Final = msgspec.json.Decoder(Event)
_STATE_DECODER: Final = msgspec.json.Decoder(State)


class OpenHandsSdkReader:
    """Conversations of OpenHands' SDK; see the module for what is taken from where."""

    name = "openhands-sdk"
    joins_files = True
    description = (
        "OpenHands SDK conversations: events and base_state.json, usage per response, tasks as "
        "sub-agents, condensation, recorded delays; state updates left out"
    )

    def recognises(self, file: SourceFile) -> bool:
        """Whether the file begins as a state or as an event does."""
        if file.ending != ".json":
            return False
        head = file.start
        return (_STATE_SIGN if file.path.name == _STATE else _EVENT_SIGN).match(head) is not None

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push every conversation; raises `InputError` for a broken event or state."""
        meter = meter_for(options.count_tokens)
        conversations: dict[Path, _Conversation] = {}
        for file in files:
            is_state = file.path.name == _STATE
            folder = file.path.parent if is_state else file.path.parent.parent
            place = folder.resolve()
            if place not in conversations:
                conversations[place] = _Conversation(place, builder, meter)
            if is_state:
                conversations[place].state = file
            else:
                conversations[place].events.append(file)
        families: dict[Path, list[_Conversation]] = {}
        for conversation in conversations.values():
            root = conversation.root(conversations)
            families.setdefault(root.place, []).append(conversation)
        for place, family in families.items():
            for conversation in family:
                conversation.read(options.left_out)
            _push(conversations[place], family, conversations, builder, meter)
            for conversation in family:
                del conversations[conversation.place]


READER: Final = OpenHandsSdkReader()


def _push(
    root: _Conversation,
    family: Sequence[_Conversation],
    conversations: dict[Path, _Conversation],
    builder: TraceBuilder,
    meter: Meter,
) -> None:
    logs = SessionLogs(root.place.name, root.source, HARNESS)
    for each in family:
        children = [other for other in family if other.parent(conversations) is each]
        each.link(children, logs)
        settle_usage(each.log, trust_reports=True)
        if each is not root and each.log.rounds:
            logs.agents[each.log.agent] = each.log
    if root.log.rounds:
        logs.lead = root.log
    if logs.lead is None and not logs.agents:
        builder.skip(root.source, "no request in it")
        return
    push_session(builder, logs, meter, HARNESS)


class _Conversation:
    """One conversation: its files, and the log that its events become."""

    def __init__(self, place: Path, builder: TraceBuilder, meter: Meter) -> None:
        self.place = place
        self.state: SourceFile | None = None
        self.events: list[SourceFile] = []
        self.log = AgentLog(agent=place.name, name=str(place))
        self._builder = builder
        self._meter = meter
        self._usages: dict[str, ResponseUsage] = {}
        self._responses: dict[str, Round] = {}
        self._tasks: dict[str, tuple[str, str]] = {}  # result of a call → task and its state
        self._results: dict[str, LoggedInput] = {}

    @property
    def source(self) -> str:
        """What messages call it: its first file."""
        first = min(self.events, key=lambda file: file.path.name, default=self.state)
        return first.name if first is not None else str(self.place)

    def parent(self, conversations: dict[Path, _Conversation]) -> _Conversation | None:
        """The conversation whose sub-agent this is, if it is there."""
        above = self.place.parent
        return conversations.get(above.parent) if above.name == _SUBAGENTS else None

    def root(self, conversations: dict[Path, _Conversation]) -> _Conversation:
        """The lead's conversation."""
        found = self
        while (above := found.parent(conversations)) is not None:
            found = above
        return found

    def read(self, left_out: frozenset[Path]) -> None:
        """Read state and events."""
        self.log.name = self.source
        beside = self.place / _STATE
        if self.state is None and self.events and beside.is_file() and beside not in left_out:
            first = self.events[0]
            self.state = first.beside(beside, str(first.path.parent.parent / _STATE))
        if self.state is not None:
            self._usages = usages(decoded_document(self.state, _STATE_DECODER))
        for file in sorted(self.events, key=lambda file: file.path.name):
            self._take(decoded_document(file, _EVENT), file.path.name)

    def link(self, children: Sequence[_Conversation], logs: SessionLogs) -> None:
        """Find which task is which sub-agent, and where each returns."""
        waiting = [child for child in children if child.log.rounds]
        agent_of_task: dict[str, str] = {}
        for use in (use for logged in self.log.rounds for use in logged.tool_uses):
            task, status = self._tasks.get(use.id, ("", ""))
            agent: str | None = None
            if use.spawn is not None and use.spawn.resumes is not None:
                agent = agent_of_task.get(use.spawn.resumes)
                use.spawn.resumes = agent or use.spawn.resumes
            elif use.spawn is not None:
                asked = use.spawn.prompt.strip()
                for child in waiting:
                    if (child.log.instruction or "").strip() == asked:
                        agent = child.log.agent
                        child.log.agent_type = use.spawn.agent_type
                        waiting.remove(child)
                        logs.links.agents[use.id] = agent
                        break
                if agent is not None and task:
                    agent_of_task[task] = agent
            else:
                agent = agent_of_task.get(task)
            if agent is not None and use.id in self._results and status not in _RUNNING:
                self._results[use.id].returns_agent = agent

    def _take(self, event: Event, row: str) -> None:
        time_s = seconds(event.timestamp)
        if event.kind == "SystemPromptEvent":
            self._system_prompt(event, time_s)
        elif event.kind == "Condensation":
            summary = event.summary or ""
            given = LoggedInput(InputKind.SUMMARY, time_s, self._meter(summary))
            self.log.append_prompt(given, summary)
            if event.llm_response_id:
                self._builder.exclude("call of the condenser, on a prompt of its own")
        elif event.kind in _RESULTS:
            self._result(event, time_s)
        elif event.kind == "ActionEvent":
            self._action(event, row, time_s)
        elif event.kind == "MessageEvent" and event.source == "agent":
            self._answer(event, row, time_s)
        elif event.kind == "MessageEvent":
            content = event.llm_message.content if event.llm_message is not None else None
            text = _text(content, event.extended_content)
            kind = self.log.delivered_kind() if event.source == "user" else InputKind.INJECTED
            self.log.append_prompt(LoggedInput(kind, time_s, self._meter(text)), text)
        else:
            self._builder.ignore(f"{event.kind}: no part of a request")

    def _system_prompt(self, event: Event, time_s: float | None) -> None:
        texts = [each.text for each in (event.system_prompt, event.dynamic_context) if each]
        text = "\n\n".join(text for text in texts if text)
        schemas = "" if event.tools is None else msgspec.json.encode(event.tools).decode()
        self.log.prompt_key = f"{content_key(text + schemas):016x}"
        weight = self._meter(text) + self._meter(schemas)
        self.log.append_prompt(LoggedInput(InputKind.SYSTEM, time_s, weight), text)

    def _result(self, event: Event, time_s: float | None) -> None:
        seen = event.observation or TaskFields()
        text = _text(seen.content, event.extended_content) or event.error or event.rejection_reason
        identity = event.tool_call_id
        kind = InputKind.RESULT if identity is not None else InputKind.INJECTED
        given = LoggedInput(kind, time_s, self._meter(text or ""), tool_use_id=identity)
        self.log.pending.append(given)
        if identity is not None:
            self._results[identity] = given
            if isinstance(seen.task_id, str):
                self._tasks[identity] = (seen.task_id, str(seen.status or ""))

    def _round(self, event: Event, row: str, time_s: float | None) -> Round:
        response = event.llm_response_id or row
        logged = self._responses.get(response)
        if logged is None:
            logged = self._responses[response] = Round(call=response, row=row, inputs=[])
            logged.first_s = time_s
            usage = self._usages.get(response)
            if usage is None:
                self._builder.fill("usage", "not in the state: content weighed")
            else:
                _take_usage(usage, logged)
            self.log.begin(logged)
        if time_s is not None:
            logged.last_s = time_s
        return logged

    def _reason(self, logged: Round, said: str | None, blocks: object) -> None:
        texts = [said or ""]
        for block in blocks if isinstance(blocks, list) else ():
            thinking = block.get("thinking") if isinstance(block, dict) else None
            texts.append(thinking if isinstance(thinking, str) else "")
            logged.hidden_reasoning |= not texts[-1]
        # Providers give the same thinking in both places.
        weight = self._meter(max(texts, key=len))
        logged.reasoning_tokens = max(logged.reasoning_tokens, weight)
        if weight and not logged.reported_reasoning_tokens:
            logged.reported_reasoning_tokens = None  # 0 where the provider does not tell

    def _answer(self, event: Event, row: str, time_s: float | None) -> None:
        message = event.llm_message or LlmMessage()
        logged = self._round(event, row, time_s)
        logged.visible_tokens += self._meter(_text(message.content))
        self._reason(logged, message.reasoning_content, message.thinking_blocks)
        self.log.finished = True

    def _action(self, event: Event, row: str, time_s: float | None) -> None:
        logged = self._round(event, row, time_s)
        call = event.tool_call or ToolCall()
        logged.visible_tokens += self._meter(_text(event.thought))
        logged.visible_tokens += arguments_tokens(call.arguments, self._meter)
        self._reason(logged, event.reasoning_content, event.thinking_blocks)
        name = event.tool_name or call.name or ""
        use = ToolUse(id=event.tool_call_id or row, name=name)
        logged.tool_uses.append(use)
        self.log.finished = name == "finish"
        asked = event.action
        if name == "task" and asked is not None and isinstance(asked.prompt, str):
            use.spawn = SpawnCall(
                prompt=asked.prompt,
                description=_word(asked.description),
                agent_type=_word(asked.subagent_type),
                resumes=_word(asked.resume),
            )


def _take_usage(usage: ResponseUsage, logged: Round) -> None:
    counts = CompletionUsage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cache_read_input_tokens=usage.cache_read_tokens,
        cache_creation_input_tokens=usage.cache_write_tokens,
    )
    logged.model = usage.model
    if counts.is_known:
        logged.input_tokens = counts.input_tokens
        logged.output_tokens = counts.completion_tokens
        logged.cached_tokens = counts.cached_tokens
        logged.reported_reasoning_tokens = usage.reasoning_tokens


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _text(*contents: object) -> str:
    return "\n".join(text for content in contents for text in content_texts(content))

"""Reader of OpenHands event streams: a JSON list of events, or evaluation output (JSONL).

**Files.** A list of events is a session; of evaluation output every line is one, its events in
`history` (a flat list, or pairs of action and observation). Documents and lines are held one at a
time.

**Requests.** One for each model response that the agent's actions name
(`tool_call_metadata.model_response`): actions of one response count once. Input and output are its
usage, or the one that the run's `metrics.token_usages` has under its id; `cached_tokens` is kept as
the provider's own hit. An action of the agent that names no response is a request of its own: its
output is weighed from its content, its input is what came before (inferred).

**Turns** are opened by messages of the user that do not stand beside results in a running turn. In
streams that name no source (the resolver's), the first message is the user's and all other actions
are the agent's.

**Sub-agents.** Between a `delegate` action and the `delegate` observation the agent's actions are
the delegate's; instruction is what the action passes on. Delegates can delegate.

**Compaction** is a `condensation` action: its summary's text stands for the call that wrote it,
which is not in the stream.

**Times.** Actions are stamped when the response is there, observations when the tool has ended;
delays are recorded (a stream without times has none).

**Left out**, each counted: changes of the agent's state, null observations, and other events that
are no part of a request. **Not in the log:** tool schemas, and mostly the system prompt; the
prompt is the first cache hit, else the input less the visible text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

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
from lachesis.traces.readers.chat_completion import (
    Completion,
    CompletionUsage,
    Tokens,
    message_tokens,
)
from lachesis.traces.readers.claude_code_rows import seconds
from lachesis.traces.readers.json_rows import decoded_document, decoded_lines, decoded_part
from lachesis.traces.readers.protocol import ReadOptions, SourceFile

HARNESS: Final = "openhands"
_EVENT_KEY: Final = re.compile(rb'"(?:action|observation)"\s*:\s*"')
_EVENT_SIGN: Final = re.compile(rb'"(?:args|extras|cause|tool_call_metadata)"\s*:')
_HISTORY: Final = re.compile(rb'"history"\s*:\s*\[')
_RUN_SIGN: Final = re.compile(
    rb'"(?:instance_id|issue|git_patch|test_result|metadata|instruction)"\s*:'
)
_NO_REQUEST: Final = frozenset(
    {
        "change_agent_state", "null", "recall", "condensation_request", "loop_recovery",
        "start", "pause", "resume", "stop", "send_pr", "push",
    }
)  # fmt: skip
_NO_TEXT: Final = frozenset({"null", "agent_state_changed", "success"})
#: Actions without a result: the response is all there is.
_ENDS: Final = frozenset({"finish", "reject"})
_SAYS: Final = frozenset({"message", *_ENDS})


class ToolCallMetadata(msgspec.Struct):
    """Which response an action is of, and which of its calls."""

    function_name: str | None = None
    tool_call_id: str | None = None
    model_response: Completion | None = None


class Event(msgspec.Struct):
    """An action or an observation; streams without `args` have their values at the top."""

    id: int | str | None = None
    timestamp: datetime | None = None
    source: str | None = None
    action: str | None = None
    observation: str | None = None
    args: dict[str, Any] | None = None
    content: Any = None
    message: Any = None
    thought: Any = None
    command: Any = None
    code: Any = None
    outputs: Any = None
    inputs: Any = None
    agent: str | None = None
    cause: int | str | None = None
    tool_call_metadata: ToolCallMetadata | None = None

    def value(self, name: str) -> object:
        """Return an argument, from `args` or from the top."""
        return self.args.get(name) if self.args is not None else getattr(self, name, None)


class ResponseUsage(msgspec.Struct):
    """Usage of one response, as a run's metrics have it."""

    response_id: str | None = None
    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None
    cache_read_tokens: Tokens | None = None
    cache_write_tokens: Tokens | None = None


class Metrics(msgspec.Struct):
    """Of a run's metrics, the usages."""

    token_usages: list[ResponseUsage] | None = None


class Run(msgspec.Struct):
    """A line of evaluation output."""

    history: list[msgspec.Raw] | None = None
    instance_id: str | int | None = None
    metrics: msgspec.Raw = msgspec.Raw(b"null")


_EVENT: Final = msgspec.json.Decoder(Event)
_PAIR: Final = msgspec.json.Decoder(list[msgspec.Raw])
_RUN: Final = msgspec.json.Decoder(Run)
_METRICS: Final = msgspec.json.Decoder(Metrics | None)


class OpenHandsEventsReader:
    """OpenHands event streams; see the module for what is taken from where."""

    name = "openhands-events"
    joins_files = False
    description = (
        "OpenHands event streams and evaluation output: usage per model response, delegates as "
        "sub-agents, condensation, recorded delays; state changes and null observations left out"
    )

    def recognises(self, file: SourceFile) -> bool:
        """Whether the head is a list of events, or the first line a run with a history of them."""
        head = file.start
        if _EVENT_KEY.search(head) is None:
            return False
        if head.startswith(b"["):
            return _EVENT_SIGN.search(head) is not None
        first = head.split(b"\n", 1)[0]
        return (
            first.startswith(b"{")
            and _HISTORY.search(first) is not None
            and _RUN_SIGN.search(first) is not None
            and b'"trajectory"' not in first
        )

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push the sessions of all files; raises `InputError` for a broken event."""
        meter = meter_for(options.count_tokens)
        for file in files:
            pushed = 0
            for name, events, usages, row in _streams(file, builder):
                stream = _Stream(name, file, builder, meter, usages)
                for position, raw in enumerate(events):
                    stream.take(raw, f"{row}[{position}]")
                pushed += stream.push()
            if not pushed:
                builder.skip(file.name, "no request in it")


READER: Final = OpenHandsEventsReader()
_Usages = dict[str, CompletionUsage]


def _streams(
    file: SourceFile, builder: TraceBuilder
) -> Iterator[tuple[str, list[msgspec.Raw], _Usages, str]]:
    """Yield name, events, usages and place of every session in the file."""
    if file.start.startswith(b"["):
        yield file.path.stem, decoded_document(file, _PAIR), {}, "events"
        return
    truncated: list[str] = []
    for number, _, run in decoded_lines(file, _RUN, truncated):
        name = str(run.instance_id or f"{file.path.stem}:{number}")
        metrics = decoded_part(run.metrics, _METRICS, file, number, "metrics")
        usages = {
            usage.response_id: CompletionUsage(
                prompt_tokens=usage.prompt_tokens,
                completion_tokens=usage.completion_tokens,
                cache_read_input_tokens=usage.cache_read_tokens,
                cache_creation_input_tokens=usage.cache_write_tokens,
            )
            for usage in (metrics.token_usages if metrics is not None else None) or ()
            if usage.response_id
        }
        yield name, run.history or [], usages, f"line {number}, history"
    for reason in truncated:
        builder.drop(reason)


class _Stream:
    """One session while its events are taken. `_agents`: the lead, and the delegates at work."""

    def __init__(
        self, name: str, file: SourceFile, builder: TraceBuilder, meter: Meter, usages: _Usages
    ) -> None:
        self._file = file
        self._builder = builder
        self._meter = meter
        self._usages = usages
        self._logs = SessionLogs(name, file.name, HARNESS)
        self._agents = [AgentLog(agent="lead", name=file.name)]
        self._lead = self._agents[0]
        self._responses: dict[str, Round] = {}
        self._use_of_event: dict[int | str, str] = {}  # action → its tool use
        self._has_sources: bool | None = None

    def take(self, raw: msgspec.Raw, row: str) -> None:
        """Take an event, or a pair of action and observation."""
        if bytes(raw).lstrip().startswith(b"["):
            pair = decoded_part(raw, _PAIR, self._file, row)
            for number, inner in enumerate(pair):
                self.take(inner, f"{row}[{number}]")
            return
        event = decoded_part(raw, _EVENT, self._file, row)
        if event.observation is not None:
            self._observation(event)
        elif event.action is not None:
            self._action(event, row)
        else:
            self._builder.drop("event that is neither action nor observation")

    def push(self) -> bool:
        """Push the session; whether there was a request in it."""
        for log in [self._lead, *self._logs.agents.values()]:
            settle_usage(log, trust_reports=True)
        self._logs.agents = {k: log for k, log in self._logs.agents.items() if log.rounds}
        if self._lead.rounds:
            self._logs.lead = self._lead
        elif not self._logs.agents:
            return False
        push_session(self._builder, self._logs, self._meter, HARNESS)
        return True

    def _action(self, event: Event, row: str) -> None:
        log = self._agents[-1]
        action = event.action or ""
        time_s = seconds(event.timestamp)
        text = _text(event.value("content"))
        if self._has_sources is None:
            self._has_sources = event.source is not None
        first = not log.rounds and not log.pending
        by_user = event.source == "user" or (not self._has_sources and first)
        if action == "system":
            log.append_prompt(LoggedInput(InputKind.SYSTEM, time_s, self._meter(text)), text)
        elif action == "condensation":
            summary = _text(event.value("summary"))
            given = LoggedInput(InputKind.SUMMARY, time_s, self._meter(summary))
            log.append_prompt(given, summary)
        elif action in _NO_REQUEST or event.source == "environment":
            self._builder.ignore(f"{action} action: no part of a request")
        elif by_user and action == "message":
            kind = log.delivered_kind()
            log.append_prompt(LoggedInput(kind, time_s, self._meter(text)), text)
        elif by_user:
            self._builder.ignore("action of the user: no part of a request")
        else:
            self._agent_action(event, row, log, time_s)

    def _agent_action(self, event: Event, row: str, log: AgentLog, time_s: float | None) -> None:
        metadata = event.tool_call_metadata or ToolCallMetadata()
        response = metadata.model_response
        logged = self._responses.get(response.id or "") if response is not None else None
        if logged is None:
            logged = Round(call=row, row=row, inputs=[])
            logged.first_s = time_s
            if response is not None:
                self._take_response(response, logged)
            if logged.input_tokens is None:
                self._builder.fill("usage", "no response named: content weighed")
            if not logged.visible_tokens:
                logged.visible_tokens = self._weigh(event)
            log.begin(logged)
        if time_s is not None:
            logged.last_s = time_s
        log.finished = event.action in _ENDS
        if event.action in _SAYS and response is None:
            return
        use = ToolUse(
            id=metadata.tool_call_id or f"event {event.id if event.id is not None else row}",
            name=metadata.function_name or event.action or "",
        )
        if event.id is not None:
            self._use_of_event[event.id] = use.id
        logged.tool_uses.append(use)
        if event.action == "delegate":
            self._delegate(event, use)

    def _take_response(self, response: Completion, logged: Round) -> None:
        logged.model = response.model
        logged.visible_tokens = message_tokens(response.message, self._meter)
        logged.reasoning_tokens = self._meter(response.message.reasoning_content or "")
        usage = response.usage
        if (usage is None or not usage.is_known) and response.id:
            usage = self._usages.get(response.id)
        if usage is not None and usage.is_known:
            logged.input_tokens = usage.input_tokens
            logged.output_tokens = usage.completion_tokens
            logged.cached_tokens = usage.cached_tokens
            logged.reported_reasoning_tokens = usage.reasoning_tokens
        if response.id:
            self._responses[response.id] = logged

    def _weigh(self, event: Event) -> float:
        """Weigh what an action without a response says and calls."""
        said = _text(event.value("thought"))
        if event.action in _SAYS:
            return self._meter(_text(event.value("content")) or said)
        asked = [_text(event.value(name)) for name in ("command", "code", "inputs")]
        arguments = next((text for text in asked if text), "")
        if event.args is not None and not arguments:
            arguments = msgspec.json.encode(
                {key: value for key, value in event.args.items() if key != "thought"}
            ).decode()
        return self._meter(said) + arguments_tokens(arguments, self._meter)

    def _delegate(self, event: Event, use: ToolUse) -> None:
        inputs = event.value("inputs")
        task = inputs.get("task") if isinstance(inputs, dict) else inputs
        instruction = task if isinstance(task, str) else _text(inputs)
        kind = event.value("agent")
        use.spawn = SpawnCall(instruction, agent_type=kind if isinstance(kind, str) else None)
        child = AgentLog(agent=f"delegate of {use.id}", name=self._file.name)
        while child.agent in self._logs.agents:
            child.agent += "~"
        child.agent_type = use.spawn.agent_type
        given = LoggedInput(InputKind.PROMPT, seconds(event.timestamp), self._meter(instruction))
        child.append_prompt(given, instruction)
        self._logs.agents[child.agent] = child
        self._logs.links.agents[use.id] = child.agent
        self._agents.append(child)

    def _observation(self, event: Event) -> None:
        kind = event.observation or ""
        returned: str | None = None
        if kind == "delegate" and len(self._agents) > 1:
            returned = self._agents.pop().agent
        elif kind in _NO_TEXT:
            self._builder.ignore(f"{kind} observation: no part of a request")
            return
        log = self._agents[-1]
        metadata = event.tool_call_metadata
        use = metadata.tool_call_id if metadata is not None else None
        if use is None and event.cause is not None:
            use = self._use_of_event.get(event.cause)
        elif use is None and log.rounds and log.rounds[-1].tool_uses:
            use = log.rounds[-1].tool_uses[-1].id
        given = LoggedInput(
            InputKind.RESULT if use is not None and log.rounds else InputKind.INJECTED,
            seconds(event.timestamp),
            self._meter(_text(event.content)),
            tool_use_id=use,
            returns_agent=returned,
        )
        log.pending.append(given)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()

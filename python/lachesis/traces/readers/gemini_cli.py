"""Reader of Gemini CLI sessions: `session-*.json`, and the newer `session-*.jsonl`.

**Files.** A document with `messages`, or lines: a head with `sessionId` and `projectHash`, messages
(one that comes again under its id is the newer state of it), `$set` (new metadata) and `$rewindTo`
(the message from which all is taken back). Lines are gathered into the same messages, so a session
is held in memory in both shapes. A sub-agent's session (`kind` is ``subagent``) lies in a folder
named after its parent's id; the tool call that started it names it in `agentId`.

**Requests.** One for each message of type `gemini`. Input is `tokens.input + tokens.tool` (cached
ones included), output is `tokens.output + tokens.thoughts`, the latter being reasoning (the model's
`thoughts` in the log are summaries of it); `tokens.cached` is kept as the provider's own hit. Some
versions report for a turn's first call a multiple of its input: it is taken as reported, so the
next input looks like a rewrite (counted). Messages without `tokens` get their output weighed from
the content and their input from what came before (inferred).

**Turns** are opened by messages of type `user`, except command lines (`/…`, `?`) that the model
answers nothing to.

**Times.** A message is stamped when it is complete, a tool call when its result is there. A request
starts with its last input, so delays are recorded. Calls to the user's approval are not told apart.

**Observations** are the results of the tool calls, which stand in the message that made them.

**Left out**, each counted: messages of type `info`, `error` and `warning`, messages that were taken
back before a call followed them, and a truncated last line of a JSONL. **Not in the log:** system
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
from lachesis.traces.readers.json_rows import decoded_document, decoded_lines, decoded_part
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.schema import TOKENS_MAX

HARNESS: Final = "gemini-cli"
_SUBAGENT: Final = "subagent"
_COMMAND_LINE: Final = re.compile(r"\s*(/[a-z]|\?\s*$)")
_HEAD: Final = re.compile(rb'"sessionId"\s*:.*?"projectHash"\s*:|"projectHash"\s*:', re.S)
_NONE: Final = msgspec.Raw(b"null")
Tokens = Annotated[int, msgspec.Meta(ge=0, le=TOKENS_MAX)]


class TokensSummary(msgspec.Struct):
    """The provider's counts of one call."""

    input: Tokens = 0
    output: Tokens = 0
    cached: Tokens | None = None
    thoughts: Tokens | None = None
    tool: Tokens | None = None


class ToolCall(msgspec.Struct, rename="camel"):
    """A call and its result."""

    name: str
    id: str | None = None
    args: Any = None
    result: Any = None
    timestamp: datetime | None = None
    agent_id: str | None = None


class Thought(msgspec.Struct):
    """A summary of a stretch of reasoning."""

    subject: str | None = None
    description: str | None = None


class Message(msgspec.Struct, rename="camel"):
    """A message of any type."""

    type: str
    id: str | None = None
    timestamp: datetime | None = None
    content: Any = None
    model: str | None = None
    tokens: TokensSummary | None = None
    thoughts: list[Thought] | None = None
    tool_calls: list[ToolCall] | None = None


class Conversation(msgspec.Struct, rename="camel"):
    """A session."""

    session_id: str | None = None
    kind: str | None = None
    messages: list[Message] | None = None


class Line(msgspec.Struct, rename={"rewind_to": "$rewindTo", "changes": "$set"}):
    """A line of the newer files: told apart by what it has."""

    rewind_to: str | None = None
    changes: msgspec.Raw = _NONE
    type: str | None = None
    id: str | None = None


_CONVERSATION: Final = msgspec.json.Decoder(Conversation)
_LINE: Final = msgspec.json.Decoder(Line)
_MESSAGE: Final = msgspec.json.Decoder(Message)


class GeminiCliReader:
    """Gemini CLI sessions; see the module for what is taken from where."""

    name = "gemini-cli"
    joins_files = True
    description = (
        "Gemini CLI sessions (JSON and JSONL) with sub-agents: usage per message, thoughts counted "
        "as reasoning and output, recorded delays, rewinds; info and error messages left out"
    )

    def recognises(self, file: SourceFile) -> bool:
        """Whether the head has a session's id and the hash of its project."""
        head = file.start
        return head.startswith(b"{") and _HEAD.match(head[1:].lstrip()) is not None

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push the sessions of all files; raises `InputError` for a broken message."""
        meter = meter_for(options.count_tokens)
        sessions: dict[str, SessionLogs] = {}
        for file in files:
            chat = _Chat(file, builder, meter)
            if not chat.log.rounds:
                builder.skip(file.name, "no request in it")
                continue
            settle_usage(chat.log, trust_reports=True)
            owner = file.path.parent.name if chat.is_subagent else chat.name
            if not chat.is_subagent and owner in sessions and sessions[owner].lead is not None:
                owner = f"{owner}/{file.path.name}"  # the same session in another file
            logs = sessions.setdefault(owner, SessionLogs(owner, file.name, HARNESS))
            if chat.is_subagent:
                while chat.log.agent in logs.agents:
                    chat.log.agent += "~"
                logs.agents[chat.log.agent] = chat.log
            else:
                logs.lead, logs.source = chat.log, file.name
            logs.links.agents.update(chat.started)
        for logs in sessions.values():
            push_session(builder, logs, meter, HARNESS)


READER: Final = GeminiCliReader()


class _Chat:
    """One file, as the log of its agent. `started`: sub-agents by the call that started them."""

    def __init__(self, file: SourceFile, builder: TraceBuilder, meter: Meter) -> None:
        self._file = file
        self._builder = builder
        self._meter = meter
        conversation = self._conversation()
        self.name = conversation.session_id or file.path.stem
        self.is_subagent = conversation.kind == _SUBAGENT
        self.log = AgentLog(agent=self.name, name=file.name)
        self.started: dict[str, str] = {}
        self._read(conversation.messages or [])

    def _conversation(self) -> Conversation:
        if self._file.ending != ".jsonl":
            return decoded_document(self._file, _CONVERSATION)
        gathered = Conversation(messages=[])
        messages: dict[str, Message] = {}
        truncated: list[str] = []
        for number, content, line in decoded_lines(self._file, _LINE, truncated):
            if line.rewind_to is not None:
                self._take_back(messages, line.rewind_to)
            elif line.type is not None:
                message = decoded_part(content, _MESSAGE, self._file, number)
                messages[message.id or f"line {number}"] = message
            else:
                changed = bytes(line.changes) != b"null"
                raw = line.changes if changed else content
                head = decoded_part(raw, _CONVERSATION, self._file, number)
                gathered.session_id = head.session_id or gathered.session_id
                gathered.kind = head.kind or gathered.kind
                if head.messages:
                    messages = {m.id or f"{number}.{n}": m for n, m in enumerate(head.messages)}
        for reason in truncated:
            self._builder.drop(reason)
        gathered.messages = list(messages.values())
        return gathered

    def _take_back(self, messages: dict[str, Message], first: str) -> None:
        """Forget messages from `first` on that no call followed; keep calls as rewound."""
        found = list(messages)
        start = found.index(first) if first in messages else 0
        before = next(
            (name for name in reversed(found[:start]) if messages[name].type == "gemini"), None
        )
        while found[start:] and messages[found[-1]].type != "gemini":
            del messages[found.pop()]
            self._builder.ignore("message that was taken back")
        if found[start:]:
            messages[f"rewind {len(found)}"] = Message(type="$rewind", id=before)

    def _read(self, messages: list[Message]) -> None:
        by_message: dict[str, Round] = {}
        rewind: str | None = None
        rewinds = False
        for position, message in enumerate(messages):
            row = f"messages[{position}]"
            match message.type:
                case "user":
                    self._given(message)
                case "gemini":
                    logged = self._call(message, row)
                    if rewinds:
                        logged.rewinds = True
                        logged.extends = by_message.get(rewind or "")
                        rewinds = False
                    if message.id:
                        by_message[message.id] = logged
                    self._results(message)
                case "$rewind":
                    self.log.pending.clear()
                    rewind, rewinds = message.id, True
                case kind:
                    self._builder.ignore(f"{kind} message: no part of a request")

    def _given(self, message: Message) -> None:
        text = _text(message.content)
        if _COMMAND_LINE.match(text):
            self._builder.ignore("command line: no part of a request")
            return
        given = LoggedInput(InputKind.PROMPT, seconds(message.timestamp), self._meter(text))
        self.log.append_prompt(given, text)

    def _call(self, message: Message, row: str) -> Round:
        time_s = seconds(message.timestamp)
        logged = Round(call=row, row=row, inputs=[], model=message.model)
        logged.first_s = logged.last_s = time_s
        tokens = message.tokens
        if tokens is not None and (tokens.input or tokens.output or tokens.thoughts):
            logged.input_tokens = tokens.input + (tokens.tool or 0)
            logged.output_tokens = tokens.output + (tokens.thoughts or 0)
            logged.cached_tokens = tokens.cached
            logged.reported_reasoning_tokens = tokens.thoughts or 0
        else:
            self._builder.fill("usage", "no tokens: content weighed, input from before")
        logged.visible_tokens = self._meter(_text(message.content))
        for thought in message.thoughts or ():
            logged.reasoning_tokens += self._meter(
                f"{thought.subject or ''} {thought.description or ''}".strip()
            )
        for call in message.tool_calls or ():
            use = ToolUse(id=call.id or "", name=call.name)
            if call.agent_id:
                args = call.args if isinstance(call.args, dict) else {}
                prompts = [args.get(key) for key in ("objective", "prompt", "query", "request")]
                said = next((text for text in prompts if isinstance(text, str)), "")
                use.spawn = SpawnCall(prompt=said, agent_type=call.name)
                if call.id:
                    self.started[call.id] = call.agent_id
            logged.tool_uses.append(use)
            logged.visible_tokens += arguments_tokens(call.args, self._meter)
        self.log.begin(logged)
        return logged

    def _results(self, message: Message) -> None:
        for call in message.tool_calls or ():
            given = LoggedInput(
                InputKind.RESULT,
                seconds(call.timestamp),
                self._meter(_text(call.result)),
                tool_use_id=call.id,
            )
            given.returns_agent = call.agent_id
            self.log.pending.append(given)


def _text(content: object) -> str:
    """Join the texts of a part list, a function response's output included."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(said for part in content if (said := _text(part)))
    if isinstance(content, dict):
        text = content.get("text")
        if isinstance(text, str):
            return text
        response = content.get("functionResponse")
        if isinstance(response, dict):
            inner = response.get("response")
            if isinstance(inner, dict):
                return _text(inner.get("output") or inner.get("error") or inner.get("content"))
    return ""

"""Reader of OpenHands' LLM completion logs: one file a completion, its whole input as messages.

**Files.** `{messages, response, timestamp, latency_sec, …}`. Files of one folder and model are
sorted by time and gathered into sessions by prefix: a completion belongs to the session with which
it shares the longest run of leading messages, if that holds at least the system prompt and the
first message of the user. A bare list of messages (a whole conversation, saved at its end) is a
session too, without usage.

**Requests.** One for each file. Input and output are the response's usage, `cached_tokens` is the
provider's own hit. Without usage both are counted from the text (inferred). Calls that only show in
later inputs, because their files are missing, are counted as excluded; what they wrote comes with
the next logged input. A session whose first input has answers in it starts midway.

**Context** is the messages: what two inputs share from the start was kept. Where the model has no
calls of its own, the harness writes them into the text (`raw_response`) and hands results over as
messages of the user; such an answer is matched by the message that stands at its place. Reasoning
that a later input lacks was stripped.

**Prompt.** System messages, and the tools' schemas where they were sent as such.

**Turns** are opened by user messages that are no results and follow no results.

**Times.** `timestamp` is when the response was there, `latency_sec` before it the request started;
delays are recorded. A list of messages has no times.

**Left out**, each counted: files without messages, and repeated ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.logged import Part, PartKind, content_key
from lachesis.traces.readers.chat_completion import ChatMessage, Completion
from lachesis.traces.readers.json_rows import decoded_document
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.record_groups import NameNumbers
from lachesis.traces.schema import UsageSource
from lachesis.traces.session_builder import SessionBuilder
from lachesis.traces.tool_classes import tool_class

HARNESS: Final = "openhands"
_MESSAGES: Final = re.compile(rb'\{\s*"messages"\s*:\s*\[\s*\{')
_ROLE: Final = re.compile(rb'"role"\s*:\s*"(?:system|user)"')
_CONVERSATION: Final = re.compile(
    rb'\[\s*\{\s*(?:"role"\s*:\s*"system"\s*,\s*)?"content"\s*:\s*'
    rb'(?:\[[^\]]{0,60}?)?"You are OpenHands'
)
_RESULT_TEXT: Final = "EXECUTION RESULT of ["
_FUNCTION_TEXT: Final = re.compile(r"<function=([^>\s]+)>")
_ENDS: Final = frozenset({"finish"})
_MISSING: Final = "call that only later inputs show: its log is missing"
Seconds = Annotated[float, msgspec.Meta(ge=0)]
CountTokens = Callable[[str], int]


class CompletionLog(msgspec.Struct):
    """One file."""

    messages: list[ChatMessage] | None = None
    tools: Any = None
    response: Completion | None = None
    raw_response: Completion | None = None
    timestamp: float | None = None
    latency_sec: Seconds | None = None


class Stamp(msgspec.Struct):
    """When a completion was logged; the rest of the file is passed over."""

    timestamp: float | None = None


_LOG: Final = msgspec.json.Decoder(CompletionLog)
_STAMP: Final = msgspec.json.Decoder(Stamp)
_LIST: Final = msgspec.json.Decoder(list[ChatMessage])


class OpenHandsCompletionsReader:
    """OpenHands completion logs; see the module for what is taken from where."""

    name = "openhands-completions"
    joins_files = True
    description = (
        "OpenHands LLM completion logs: usage per completion, one file each, gathered into "
        "sessions by folder and common prefix; context, stripping and rewrites from the messages"
    )

    def recognises(self, file: SourceFile) -> bool:
        """Whether it is an object that begins with its messages, or OpenHands' conversation."""
        head = file.start
        if file.ending == ".jsonl":
            return False
        if head.startswith(b"["):
            return _CONVERSATION.match(head) is not None
        return _MESSAGES.match(head) is not None and _ROLE.search(head) is not None

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push the sessions of all files; raises `InputError` for a broken document."""
        chains: dict[tuple[Path, str], list[_Chain]] = {}
        completions: list[tuple[float, str, SourceFile]] = []
        seen = NameNumbers()
        for file in files:
            if file.start.startswith(b"["):
                _push_conversation(file, builder, options.count_tokens)
            else:
                stamp = decoded_document(file.peeked(), _STAMP).timestamp
                completions.append((stamp or 0.0, file.name, file))
        for _, _, file in sorted(completions, key=lambda each: each[:2]):
            log = decoded_document(file, _LOG)
            if not log.messages or log.response is None:
                builder.skip(file.name, "holds no messages, or no response")
                continue
            known = len(seen)
            if log.response.id and seen.of(log.response.id) < known:
                builder.exclude("completion that was logged before")
                continue
            place = (file.path.parent, log.response.model or "")
            chain = _chain_of(log.messages, chains.setdefault(place, []))
            if chain is None:
                chain = _Chain(file, log.messages, builder, options.count_tokens)
                chains[place].append(chain)
            chain.push(file, log)


READER: Final = OpenHandsCompletionsReader()


def _key(message: ChatMessage) -> int:
    calls = "".join(f"\n{call.text}" for call in message.tool_calls or ())
    return content_key(f"{message.text.strip()}{calls}", message.role or "")


def _shared(first: Sequence[int], second: Sequence[int]) -> int:
    for index, (ours, theirs) in enumerate(zip(first, second, strict=False)):
        if ours != theirs:
            return index
    return min(len(first), len(second))


def _chain_of(messages: Sequence[ChatMessage], chains: Sequence[_Chain]) -> _Chain | None:
    """Find the session that shares most with `messages`, and at least what opens them."""
    keys = [_key(message) for message in messages]
    opening = next(
        (index for index, message in enumerate(messages) if message.role == "assistant"),
        len(messages),
    )
    shares = [_shared(chain.keys, keys) for chain in chains]
    most = max(shares, default=0)
    return chains[shares.index(most)] if most and most >= opening else None


class _Chain:
    """One session while its completions are pushed. `keys`: the last input's messages."""

    def __init__(
        self,
        file: SourceFile,
        messages: Sequence[ChatMessage],
        builder: TraceBuilder,
        count_tokens: CountTokens,
    ) -> None:
        self.keys: list[int] = []
        self._builder = builder
        self._count_tokens = count_tokens
        self._parts: dict[tuple[int, PartKind], Part] = {}
        self._session: SessionBuilder = builder.session(
            file.path.stem,
            workload=HARNESS,
            harness=HARNESS,
            source=file.name,
            starts_midway=any(message.role == "assistant" for message in messages),
        )

    def push(self, file: SourceFile, log: CompletionLog) -> None:
        """Push one completion."""
        messages, response = log.messages or [], log.response or Completion()
        written_out = log.raw_response is not None
        system = [] if written_out or not log.tools else [self._tools_part(log.tools)]
        usage = response.usage
        known = usage is not None and usage.is_known
        output = self._output(response.message)
        weight = sum(part.tokens for part in output)
        if log.raw_response is not None:
            # The text that the model wrote, calls included.
            weight = self._count_tokens(log.raw_response.message.text)
        if usage is not None and known:
            output_tokens = max(usage.completion_tokens or 0, 1)
        else:
            output_tokens = max(weight, 1)
            self._builder.fill("usage", "none in the response: counted from the text")
        reasoning = sum(part.tokens for part in output if part.kind is PartKind.REASONING)
        reported = usage.reasoning_tokens if usage is not None else None
        calls = _called(response.message)
        end_s = log.timestamp
        start_s = None if end_s is None or log.latency_sec is None else end_s - log.latency_sec
        fresh = messages[_shared(self.keys, [_key(message) for message in messages]) :]
        self._count_missing(fresh)
        self._session.request(
            opens_turn=_opens_turn(fresh),
            parts=(*system, *self.parts(messages)),
            input_tokens=usage.input_tokens if usage is not None and known else None,
            output_tokens=output_tokens,
            reasoning_tokens=min(reported or reasoning, output_tokens),
            output_parts=None if written_out else output,
            observations=sum(_is_result(message) for message in fresh),
            tools=[tool_class(name) for name in calls],
            model=response.model,
            start_s=start_s,
            end_s=end_s,
            reported_cached_tokens=usage.cached_tokens if usage is not None else None,
            usage_source=UsageSource.REPORTED if known else UsageSource.INFERRED,
            row=file.path.name,
        )
        self._session.ends_open = bool(calls) and not _ENDS.intersection(calls)
        self.keys = [_key(message) for message in messages]

    def push_conversation(self, messages: Sequence[ChatMessage]) -> None:
        """Push a request for each answer in a whole conversation."""
        parts: list[Part] = []
        fresh: list[ChatMessage] = []
        for position, message in enumerate(messages):
            output = self.parts([message])
            if message.role == "assistant" and output:
                self._builder.fill("usage", "none in the log: counted from the text")
                calls = _called(message)
                self._session.request(
                    opens_turn=_opens_turn(fresh),
                    parts=tuple(parts),
                    output_tokens=max(1, sum(part.tokens for part in output)),
                    reasoning_tokens=sum(
                        part.tokens for part in output if part.kind is PartKind.REASONING
                    ),
                    output_parts=output,
                    observations=sum(_is_result(given) for given in fresh),
                    tools=[tool_class(name) for name in calls],
                    usage_source=UsageSource.INFERRED,
                    row=f"[{position}]",
                )
                self._session.ends_open = bool(calls) and not _ENDS.intersection(calls)
                fresh = []
            else:
                fresh.append(message)
            parts += output

    def parts(self, messages: Sequence[ChatMessage]) -> list[Part]:
        """Return the parts of messages, in order."""
        found: list[Part] = []
        for message in messages:
            match message.role:
                case "system":
                    found.append(self._part(PartKind.SYSTEM, message.text))
                case "assistant":
                    found += self._output(message)
                case _:
                    kind = PartKind.OBSERVATION if _is_result(message) else PartKind.USER
                    found.append(self._part(kind, message.text))
        return found

    def _output(self, message: ChatMessage) -> list[Part]:
        parts = []
        if message.reasoning_content:
            parts.append(self._part(PartKind.REASONING, message.reasoning_content))
        if text := message.text.strip():
            parts.append(self._part(PartKind.ANSWER, text))
        parts += [self._part(PartKind.CALL, call.text) for call in message.tool_calls or ()]
        return parts

    def _tools_part(self, tools: object) -> Part:
        return self._part(PartKind.SYSTEM, msgspec.json.encode(tools).decode())

    def _part(self, kind: PartKind, text: str) -> Part:
        key = (content_key(text, kind), kind)
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = Part(key[0], self._count_tokens(text), kind)
        return part

    def _count_missing(self, fresh: Sequence[ChatMessage]) -> None:
        answers = sum(message.role == "assistant" for message in fresh)
        missing = answers - bool(self.keys)
        if missing > 0:
            self._session.exclude(_MISSING, missing)


def _push_conversation(file: SourceFile, builder: TraceBuilder, count_tokens: CountTokens) -> None:
    messages = decoded_document(file, _LIST)
    if not any(message.role == "assistant" for message in messages):
        builder.skip(file.name, "no request in it")
        return
    _Chain(file, [], builder, count_tokens).push_conversation(messages)


def _is_result(message: ChatMessage) -> bool:
    if message.role == "tool":
        return True
    return message.role == "user" and message.text.startswith(_RESULT_TEXT)


def _opens_turn(fresh: Sequence[ChatMessage]) -> bool:
    before: ChatMessage | None = None
    for message in fresh:
        typed = message.role == "user" and not _is_result(message)
        if typed and (before is None or not _is_result(before)):
            return True
        before = message
    return False


def _called(message: ChatMessage) -> list[str]:
    """Name the tools that an answer calls, also where its text does so."""
    if message.tool_calls:
        return [call.name for call in message.tool_calls]
    return _FUNCTION_TEXT.findall(message.text)

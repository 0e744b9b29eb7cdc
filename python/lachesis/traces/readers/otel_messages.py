"""Input and output of GenAI spans as parts of a context.

Messages come as JSON strings (or as JSON) under `gen_ai.input.messages` and
`gen_ai.output.messages`, in the chat form (`content`, `tool_calls`) or in that of the semantic
conventions (`parts`), or as numbered attributes (`gen_ai.prompt.0.role`). System instructions and
tool definitions may stand apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from lachesis.errors import InputError
from lachesis.traces.logged import Part, PartKind, content_key
from lachesis.traces.readers.otel_spans import Json, Span

_NUMBERED: Final = re.compile(r"gen_ai\.(prompt|completion)\.(\d+)\.(.+)")
_CALL: Final = re.compile(r"tool_calls\.(\d+)\.(name|arguments)")
_INPUTS: Final = ("gen_ai.input.messages", "gen_ai.prompt")
_OUTPUTS: Final = ("gen_ai.output.messages", "gen_ai.completion")
_KIND_OF_ROLE: Final = {
    "system": PartKind.SYSTEM,
    "developer": PartKind.SYSTEM,
    "user": PartKind.USER,
    "human": PartKind.USER,
    "tool": PartKind.OBSERVATION,
    "function": PartKind.OBSERVATION,
    "assistant": PartKind.ANSWER,
    "model": PartKind.ANSWER,
    "ai": PartKind.ANSWER,
}
_REASONING: Final = frozenset({"reasoning", "thinking", "redacted_thinking"})
_CALLS: Final = frozenset({"tool_call", "tool_use", "function_call"})
_RESULTS: Final = frozenset({"tool_call_response", "tool_result", "function_call_output"})


class SpanText:
    """Reads the text of spans of one file; counts every text once."""

    def __init__(self, count_tokens: Callable[[str], int], name: str) -> None:
        self._count = count_tokens
        self._name = name
        self._parts: dict[tuple[int, PartKind], Part] = {}

    def input_parts(self, span: Span) -> list[Part] | None:
        """The whole input; None where the span has no messages."""
        messages = self._messages(span, _INPUTS, "prompt")
        if messages is None:
            return None
        parts: list[Part] = []
        instructions = self._json(span, "gen_ai.system_instructions")
        if instructions is not None:
            parts.append(self._part(PartKind.SYSTEM, _flat(instructions)))
        tools = self._json(span, "gen_ai.tool.definitions")
        if tools:
            parts.append(self._part(PartKind.SYSTEM, _encoded(tools)))
        for message in messages:
            parts += self._of_message(message)
        return parts

    def output_parts(self, span: Span) -> tuple[list[Part], list[str]] | None:
        """The output and the names of the tools that it calls; None where there is no text."""
        messages = self._messages(span, _OUTPUTS, "completion")
        if messages is None:
            text = span.text("gen_ai.output.text")
            if text is None:
                return None
            return [self._part(PartKind.ANSWER, text)], []
        parts: list[Part] = []
        called: list[str] = []
        for message in messages:
            parts += self._of_message({"role": "assistant", **message})
            called += _called(message)
        return parts, called

    def _part(self, kind: PartKind, text: str) -> Part:
        key = content_key(text, kind)
        found = self._parts.get((key, kind))
        if found is None:
            found = self._parts[key, kind] = Part(key, self._count(text), kind)
        return found

    def _of_message(self, message: Json) -> list[Part]:
        role = message.get("role")
        kind = _KIND_OF_ROLE.get(role if isinstance(role, str) else "", PartKind.USER)
        parts: list[Part] = []
        for block in _blocks(message):
            of = block.get("type")
            if of in _REASONING:
                parts.append(self._part(PartKind.REASONING, _flat(block)))
            elif of in _CALLS:
                parts.append(self._part(PartKind.CALL, _call_text(block)))
            elif of in _RESULTS:
                parts.append(self._part(PartKind.OBSERVATION, _flat(block)))
            elif text := _flat(block):
                parts.append(self._part(kind, text))
        return parts

    def _messages(self, span: Span, names: tuple[str, ...], numbered: str) -> list[Json] | None:
        for name in names:
            value = self._json(span, name)
            if isinstance(value, str):
                return [{"role": "user", "content": value}] if value else []
            if isinstance(value, dict):
                value = [value]
            if value is not None:
                if not isinstance(value, list) or not all(isinstance(m, dict) for m in value):
                    raise InputError("must be a list of messages", path=self._name, row=span.row,
                                     field=name, value=value)  # fmt: skip
                return value
        return _numbered(span.attributes, numbered)

    def _json(self, span: Span, name: str) -> Any:  # noqa: ANN401 - any JSON
        value = span.attributes.get(name)
        if not isinstance(value, str) or value[:1] not in ("[", "{"):
            return value
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError, UnicodeEncodeError, RecursionError):
            pass
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as wrong:
            raise InputError(f"not valid JSON: {wrong}", path=self._name, row=span.row,
                             field=name) from wrong  # fmt: skip


def _numbered(attributes: Json, which: str) -> list[Json] | None:
    """Messages from attributes such as ``gen_ai.prompt.0.content``."""
    messages: dict[int, Json] = {}
    for name, value in attributes.items():
        found = _NUMBERED.fullmatch(name)
        if found is None or found[1] != which:
            continue
        message = messages.setdefault(int(found[2]), {})
        call = _CALL.fullmatch(found[3])
        if call is None:
            message[found[3]] = value
        else:
            calls = message.setdefault("calls by number", {})
            calls.setdefault(int(call[1]), {"type": "tool_call"})[call[2]] = value
    for message in messages.values():
        calls = message.pop("calls by number", {})
        if calls:
            message["tool_calls"] = [calls[number] for number in sorted(calls)]
    return [messages[number] for number in sorted(messages)] or None


def _blocks(message: Json) -> list[Json]:
    """A message's content block by block, its tool calls after it."""
    blocks: list[Json] = []
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(reasoning, str) and reasoning:
        blocks.append({"type": "reasoning", "content": reasoning})
    content = message.get("parts") if "parts" in message else message.get("content")
    if isinstance(content, list):
        blocks += [each if isinstance(each, dict) else {"content": each} for each in content]
    elif content is not None:
        blocks.append({"content": content})
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        blocks += [{**each, "type": "tool_call"} for each in calls if isinstance(each, dict)]
    return blocks


def _called(message: Json) -> list[str]:
    names: list[str] = []
    for block in _blocks(message):
        if block.get("type") in _CALLS:
            function = block.get("function")
            name = function.get("name") if isinstance(function, dict) else block.get("name")
            names.append(name if isinstance(name, str) else "")
    return names


def _call_text(block: Json) -> str:
    function = block.get("function")
    inner = function if isinstance(function, dict) else block
    arguments = inner.get("arguments", inner.get("input"))
    return f"{inner.get('name')} {arguments if isinstance(arguments, str) else _encoded(arguments)}"


def _flat(value: object) -> str:
    """The text of a block, whatever key it stands under."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_flat(each) for each in value)
    if isinstance(value, dict):
        for name in ("text", "content", "thinking", "response", "result", "output"):
            if value.get(name) is not None:
                return _flat(value[name])
    return _encoded(value)


def _encoded(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)

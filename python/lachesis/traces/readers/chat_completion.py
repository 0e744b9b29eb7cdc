"""A chat completion as harnesses log it: the response's message and the provider's usage.

Providers differ in whether `prompt_tokens` includes what a cache held. It does where it is at
least as large as the cached counts together; where it is smaller, they are added.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from lachesis.traces.readers.agent_log import Meter, arguments_tokens
from lachesis.traces.schema import TOKENS_MAX

Tokens = Annotated[int, msgspec.Meta(ge=0, le=TOKENS_MAX)]


class PromptDetails(msgspec.Struct):
    """Of the prompt, what came from the provider's cache."""

    cached_tokens: Tokens | None = None


class CompletionDetails(msgspec.Struct):
    """Of the completion, what was reasoning."""

    reasoning_tokens: Tokens | None = None


class CompletionUsage(msgspec.Struct):
    """The provider's counts of one completion."""

    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None
    cache_creation_input_tokens: Tokens | None = None
    cache_read_input_tokens: Tokens | None = None

    @property
    def is_known(self) -> bool:
        """Whether it counts anything; some harnesses write zeros where they know nothing."""
        return bool(self.prompt_tokens or self.completion_tokens)

    @property
    def cached_tokens(self) -> int | None:
        """The provider's own cache hit."""
        details = self.prompt_tokens_details
        detailed = details.cached_tokens if details is not None else None
        return self.cache_read_input_tokens if detailed is None else detailed

    @property
    def input_tokens(self) -> int:
        """The whole input, cached tokens included.

        Example:
            >>> CompletionUsage(prompt_tokens=120, cache_read_input_tokens=100).input_tokens
            120
            >>> CompletionUsage(prompt_tokens=20, cache_read_input_tokens=100).input_tokens
            120
        """
        prompt = self.prompt_tokens or 0
        cached = (self.cache_read_input_tokens or 0) + (self.cache_creation_input_tokens or 0)
        return prompt if prompt >= cached else prompt + cached

    @property
    def reasoning_tokens(self) -> int | None:
        """Of the output, reasoning; None where the provider does not say."""
        details = self.completion_tokens_details
        return details.reasoning_tokens if details is not None else None


class Function(msgspec.Struct):
    """What a call calls; arguments are JSON in a text."""

    name: str | None = None
    arguments: Any = None


class FunctionCall(msgspec.Struct):
    """A tool call."""

    id: str | None = None
    function: Function | None = None

    @property
    def name(self) -> str:
        """The tool's name; empty where the log has none."""
        return (self.function.name or "") if self.function is not None else ""

    @property
    def text(self) -> str:
        """Name and arguments, as text."""
        arguments = self.function.arguments if self.function is not None else None
        if not isinstance(arguments, str):
            arguments = msgspec.json.encode(arguments).decode()
        return f"{self.name} {arguments}"


class ChatMessage(msgspec.Struct):
    """A message of any role."""

    role: str | None = None
    content: Any = None
    reasoning_content: str | None = None
    tool_calls: list[FunctionCall] | None = None
    tool_call_id: str | None = None
    name: str | None = None

    @property
    def text(self) -> str:
        """The texts of its content."""
        return "\n".join(content_texts(self.content))


class Choice(msgspec.Struct):
    """One of a completion's alternatives."""

    message: ChatMessage | None = None
    finish_reason: str | None = None


class Completion(msgspec.Struct):
    """A response."""

    id: str | None = None
    model: str | None = None
    choices: list[Choice] | None = None
    usage: CompletionUsage | None = None

    @property
    def message(self) -> ChatMessage:
        """The first choice's message; an empty one where there is none."""
        first = self.choices[0].message if self.choices else None
        return first if first is not None else ChatMessage()


def content_texts(content: object) -> Iterator[str]:
    """Yield the texts of a content: a text, or a list of parts; images have none."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, str):
                yield part
            elif isinstance(part, dict) and isinstance(part.get("text"), str):
                yield part["text"]


def message_tokens(message: ChatMessage, meter: Meter) -> float:
    """Weigh what a response shows: its text and its calls."""
    calls = message.tool_calls or ()
    arguments = (call.function.arguments if call.function else None for call in calls)
    return meter(message.text) + sum(arguments_tokens(each, meter) for each in arguments)

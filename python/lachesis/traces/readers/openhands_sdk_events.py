"""What OpenHands' SDK writes: the structs of `base_state.json` and of events."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from lachesis.traces.readers.chat_completion import Tokens


class Text(msgspec.Struct):
    """A text content."""

    text: str | None = None


class ToolCall(msgspec.Struct):
    """A call as the model made it; arguments are JSON in a text."""

    name: str | None = None
    arguments: Any = None


class LlmMessage(msgspec.Struct):
    """A message of the user or the agent."""

    content: Any = None
    reasoning_content: str | None = None
    thinking_blocks: Any = None


class TaskFields(msgspec.Struct):
    """Of an action or observation, what the `task` tools have."""

    prompt: Any = None
    description: Any = None
    subagent_type: Any = None
    resume: Any = None
    task_id: Any = None
    status: Any = None
    content: Any = None


class Event(msgspec.Struct):
    """An event of any kind."""

    kind: str
    timestamp: datetime | None = None
    source: str | None = None
    llm_response_id: str | None = None
    system_prompt: Text | None = None
    dynamic_context: Text | None = None
    tools: Any = None
    llm_message: LlmMessage | None = None
    extended_content: Any = None
    thought: Any = None
    reasoning_content: str | None = None
    thinking_blocks: Any = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    tool_call: ToolCall | None = None
    action: TaskFields | None = None
    observation: TaskFields | None = None
    error: str | None = None
    rejection_reason: str | None = None
    summary: str | None = None


class ResponseUsage(msgspec.Struct):
    """Usage of one response."""

    response_id: str | None = None
    model: str | None = None
    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None
    cache_read_tokens: Tokens | None = None
    cache_write_tokens: Tokens | None = None
    reasoning_tokens: Tokens | None = None


class Metrics(msgspec.Struct):
    """What one use of a model cost."""

    token_usages: list[ResponseUsage] | None = None


class Stats(msgspec.Struct):
    """Metrics by use: the agent's, the condenser's."""

    usage_to_metrics: dict[str, Metrics] | None = None


class State(msgspec.Struct):
    """`base_state.json`."""

    stats: Stats | None = None


def usages(state: State) -> dict[str, ResponseUsage]:
    """The usage of every response that has an id."""
    metrics = (state.stats.usage_to_metrics if state.stats is not None else None) or {}
    return {usage.response_id: usage for usage in _all_usages(metrics) if usage.response_id}


def _all_usages(metrics: dict[str, Metrics]) -> Iterator[ResponseUsage]:
    for each in metrics.values():
        yield from each.token_usages or ()

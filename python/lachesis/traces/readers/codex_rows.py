"""Rows of a Codex rollout, decoded no further than a replay needs.

Every row is `timestamp`, `type` and a `payload` whose own type tells how it is decoded. Rollouts of
the first versions had no envelope: each line is the payload itself, without a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from lachesis.traces.readers.json_rows import decoded_lines, decoded_part
from lachesis.traces.readers.protocol import SourceFile
from lachesis.traces.schema import TOKENS_MAX

_NONE: Final = msgspec.Raw(b"null")
Tokens = Annotated[int, msgspec.Meta(ge=0, le=TOKENS_MAX)]


class Row(msgspec.Struct):
    """A line; `type` is missing in the first line of the first versions."""

    type: str | None = None
    timestamp: datetime | None = None
    payload: msgspec.Raw = _NONE
    id: str | None = None


class PayloadHead(msgspec.Struct):
    """The type of what a row carries."""

    type: str | None = None


class Meta(msgspec.Struct):
    """`session_meta`: the thread, who started it, and its instructions."""

    id: str | None = None
    timestamp: datetime | None = None
    originator: str | None = None
    cli_version: str | None = None
    instructions: str | None = None
    base_instructions: Any = None
    source: Any = None
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    agent_path: str | None = None
    agent_role: str | None = None

    @property
    def system_text(self) -> str:
        """The instructions that the thread starts with, where the log has them."""
        base = self.base_instructions
        if isinstance(base, dict):
            base = base.get("text")
        return base if isinstance(base, str) and base else self.instructions or ""

    @property
    def subagent(self) -> object:
        """What `source` says of a sub-agent: its name, or an object; None for a lead."""
        return self.source.get("subagent") if isinstance(self.source, dict) else None

    @property
    def thread_spawn(self) -> dict[str, Any]:
        """Parent, path and role of a sub-agent that a call spawned."""
        found = self.subagent.get("thread_spawn") if isinstance(self.subagent, dict) else None
        return found if isinstance(found, dict) else {}

    @property
    def parent(self) -> str | None:
        """The thread that spawned this one, where the rollout names it."""
        named = self.thread_spawn.get("parent_thread_id") or self.parent_thread_id
        return named if isinstance(named, str) else None


class TurnContext(msgspec.Struct):
    """`turn_context`: only the model matters."""

    model: str | None = None


class Item(msgspec.Struct):
    """A `response_item`: part of an input or of an output."""

    type: str
    role: str | None = None
    content: Any = None
    summary: Any = None
    name: str | None = None
    call_id: str | None = None
    arguments: Any = None
    input: Any = None
    action: Any = None
    output: Any = None


class Usage(msgspec.Struct, frozen=True):
    """Counts of one call, or of all calls so far; `input_tokens` includes the cached ones."""

    input_tokens: Tokens = 0
    cached_input_tokens: Tokens | None = None
    output_tokens: Tokens = 0
    reasoning_output_tokens: Tokens | None = None


class UsageInfo(msgspec.Struct):
    """`info` of a token count."""

    last_token_usage: Usage | None = None
    total_token_usage: Usage | None = None


class UsageRecord(msgspec.Struct):
    """`token_usage_record` of newer versions: one a response."""

    usage: Usage | None = None
    response_id: str | None = None


class Event(msgspec.Struct):
    """An `event_msg`."""

    type: str
    message: Any = None
    text: Any = None
    info: UsageInfo | None = None
    num_turns: Annotated[int, msgspec.Meta(ge=0)] | None = None
    prompt: Any = None
    call_id: str | None = None
    new_thread_id: str | None = None
    review_output: Any = None
    item: Any = None


class Compacted(msgspec.Struct):
    """`compacted`: what a compaction left."""

    message: str | None = None
    replacement_history: Any = None


_ROW: Final = msgspec.json.Decoder(Row)
_HEAD: Final = msgspec.json.Decoder(PayloadHead)
_META: Final = msgspec.json.Decoder(Meta)
_KINDS: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    "session_meta": _META,
    "turn_context": msgspec.json.Decoder(TurnContext),
    "response_item": msgspec.json.Decoder(Item),
    "event_msg": msgspec.json.Decoder(Event),
    "compacted": msgspec.json.Decoder(Compacted),
    "token_usage_record": msgspec.json.Decoder(UsageRecord),
}
#: Types that a line has in the first versions, where it is the item itself.
_BARE: Final = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "local_shell_call"}
)

Payload = Meta | TurnContext | Item | Event | Compacted | UsageRecord


@dataclass(slots=True)
class RolloutRow:
    """A row that can matter: its line, its time, and its payload (None: of no use)."""

    number: int
    time: datetime | None
    kind: str
    payload: Payload | None


def rollout_rows(file: SourceFile, dropped: list[str]) -> Iterator[RolloutRow]:
    """Yield every row; raises `InputError` with file, line and field for a broken one."""
    for number, line, row in decoded_lines(file, _ROW, dropped):
        kind, raw = row.type, row.payload
        if kind in _BARE:
            kind, raw = "response_item", msgspec.Raw(line)
        elif kind is None and row.id is not None:
            kind, raw = "session_meta", msgspec.Raw(line)
        decoder = _KINDS.get(kind or "")
        if decoder is None or kind is None:
            yield RolloutRow(number, row.timestamp, kind or "untyped", None)
            continue
        field = None if raw is not row.payload else "payload"
        payload = decoded_part(raw, decoder, file, number, field)
        yield RolloutRow(number, row.timestamp, kind, payload)


def texts_of(content: object) -> str:
    """Join the texts of a message, a summary or a tool's output; images count as nothing."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n\n".join(said for piece in content if (said := texts_of(piece)))
    if isinstance(content, dict):
        text = content.get("text")
        return text if isinstance(text, str) else texts_of(content.get("content"))
    return ""

"""Rows of a Claude Code transcript, decoded no further than a replay needs.

Rows of all types are decoded into one struct, which passes over every field that it does not name.
What it cannot take is decoded again, into the struct of the row's type: a field of the wrong shape
is an error only in rows of which it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from lachesis.errors import InputError
from lachesis.traces.readers.json_fault import MALFORMED, field_fault
from lachesis.traces.readers.json_rows import without_half_surrogates
from lachesis.traces.readers.protocol import STREAM_FAULTS, SourceFile, unreadable
from lachesis.traces.schema import TOKENS_MAX

_NONE = msgspec.Raw(b"null")
Tokens = Annotated[int, msgspec.Meta(ge=0, le=TOKENS_MAX)]


class Usage(msgspec.Struct, gc=False):
    """The provider's counts; `input_tokens` is only what was not cached."""

    input_tokens: Tokens | None = None
    cache_creation_input_tokens: Tokens | None = None
    cache_read_input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None

    @property
    def total_input_tokens(self) -> int:
        """Uncached, cache-writing and cache-reading input together."""
        return (
            (self.input_tokens or 0)
            + (self.cache_creation_input_tokens or 0)
            + (self.cache_read_input_tokens or 0)
        )


class Block(msgspec.Struct, gc=False):
    """A content block of any type."""

    type: str
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = _NONE
    tool_use_id: str | None = None
    content: msgspec.Raw = _NONE


class Message(msgspec.Struct, gc=False, frozen=True):
    """The `message` of a user or an assistant row."""

    model: str | None = None
    id: str | None = None
    content: str | list[Block] | None = None
    stop_reason: str | None = None
    usage: Usage | None = None


class Origin(msgspec.Struct, gc=False):
    """Where newer versions say that a user row comes from."""

    kind: str | None = None


class Attachment(msgspec.Struct):
    """What an attachment row attaches."""

    type: str | None = None
    prompt: Any = None


class _Kind(msgspec.Struct):
    """The type alone."""

    type: str


class OtherRow(msgspec.Struct, rename="camel", gc=False):
    """A row that is no part of a request; its place matters, for others follow it."""

    kind: str = msgspec.field(name="type")
    uuid: str | None = None
    parent_uuid: str | None = None


class AttachmentRow(OtherRow):
    """Among other things, a message queued into a running turn."""

    attachment: Attachment | None = None
    timestamp: datetime | None = None


class QueueRow(OtherRow):
    """A message that was put into the queue, or taken out."""

    operation: str | None = None
    content: Any = None
    timestamp: datetime | None = None


class ConversationRow(OtherRow, kw_only=True):
    """What a person or a tool said (`user`), or a line of an answer (`assistant`)."""

    message: Message
    timestamp: datetime | None = None
    session_id: str | None = None
    agent_id: str | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    version: str | None = None
    origin: Origin | None = None
    tool_use_result: msgspec.Raw = _NONE


_NO_MESSAGE = Message()


class Row(msgspec.Struct, rename="camel", gc=False, kw_only=True):
    """A row of any type, its fields in the log's order, in which they are found fastest."""

    parent_uuid: str | None = None
    is_sidechain: bool | None = None
    agent_id: str | None = None
    session_id: str | None = None
    version: str | None = None
    kind: str = msgspec.field(name="type")
    message: Message = _NO_MESSAGE
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    uuid: str | None = None
    timestamp: datetime | None = None
    tool_use_result: msgspec.Raw = _NONE
    origin: Origin | None = None
    operation: str | None = None
    content: Any = None
    attachment: Attachment | None = None


class TaskState(msgspec.Struct):
    """The state of a background task, as `TaskOutput` gives it."""

    task_id: str | None = None
    status: str | None = None


class ToolUseResult(msgspec.Struct, rename="camel"):
    """What the harness notes beside a tool result that concerns an agent."""

    agent_id: str | None = None
    agent_type: str | None = None
    is_async: bool | None = None
    status: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    task: TaskState | None = None


class SpawnArguments(msgspec.Struct):
    """Arguments of the tools that start or resume a sub-agent, or send it a message."""

    prompt: str | None = None
    description: str | None = None
    subagent_type: str | None = None
    model: str | None = None
    allowed_tools: list[str] | None = None
    resume: str | None = None
    to: str | None = None
    message: Any = None


class AgentMeta(msgspec.Struct, rename="camel"):
    """`agent-ID.meta.json`, which newer versions write beside a sub-agent's transcript."""

    agent_type: str | None = None
    description: str | None = None
    tool_use_id: str | None = None


#: Rows that are part of a request.
CONVERSATION = frozenset({"assistant", "user"})
_ROW = msgspec.json.Decoder(Row)
_KIND = msgspec.json.Decoder(_Kind)
_OTHER = msgspec.json.Decoder(OtherRow)
_OF_KIND: dict[str, msgspec.json.Decoder[Any]] = {
    **dict.fromkeys(CONVERSATION, msgspec.json.Decoder(ConversationRow)),
    "attachment": msgspec.json.Decoder(AttachmentRow),
    "queue-operation": msgspec.json.Decoder(QueueRow),
}
_TOOL_USE_RESULT = msgspec.json.Decoder(ToolUseResult)
_SPAWN = msgspec.json.Decoder(SpawnArguments)
_META = msgspec.json.Decoder(AgentMeta)


def seconds(time: datetime | None) -> float | None:
    """Seconds since 1970; a time without a zone is taken as UTC.

    >>> seconds(datetime(1970, 1, 1, 0, 1))
    60.0
    """
    if time is None:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return time.timestamp()


def rows(file: SourceFile, dropped: list[str]) -> Iterator[tuple[int, Row]]:
    """Yield every row with its line number.

    A malformed last line is what a crash leaves and is dropped (named in `dropped`); a malformed
    line anywhere else, or a field of the wrong type, raises `InputError` with file and line.
    """
    fault: tuple[int, Exception] | None = None
    decode = _ROW.decode
    try:
        # Not by way of `SourceFile.lines`, which would add a twentieth to the time.
        with file.open() as stream:
            for number, line in enumerate(stream, 1):
                if fault is not None and not line.isspace():
                    raise InputError(f"not valid JSON: {fault[1]}", path=file.name, row=fault[0])
                try:
                    row = decode(line)
                    if row.message is _NO_MESSAGE and row.kind in CONVERSATION:
                        row = _row_of_kind(line, file, number)
                except MALFORMED as wrong:
                    if line.isspace():
                        continue
                    try:
                        row = _row_of_kind(line, file, number)
                    except MALFORMED as nearer:
                        by_field = isinstance(wrong, msgspec.ValidationError)
                        fault = (number, nearer if by_field else wrong)
                        continue
                yield number, row
    except STREAM_FAULTS as wrong:
        raise unreadable(file.name, wrong) from wrong
    if fault is not None:
        dropped.append(f"truncated last line ({file.name}:{fault[0]})")


def _row_of_kind(line: bytes, file: SourceFile, number: int) -> Row:
    """Decode a row by the rules of its own type, and with half surrogate pairs mended.

    Raises `InputError` if it breaks the rules, and what a decoder raises if it is no JSON: a line
    may have a wrong field and be cut off behind it.
    """
    try:
        kind = _KIND.decode(line).type
        row = _OF_KIND.get(kind, _OTHER).decode(line)
    except msgspec.ValidationError as wrong:
        raise field_fault(wrong, line, name=file.name, row=number) from wrong
    except MALFORMED:
        mended = without_half_surrogates(line)
        if mended is None or mended == line:
            raise
        return _row_of_kind(mended, file, number)
    return Row(**msgspec.structs.asdict(row))


def tool_use_result(row: Row) -> ToolUseResult | None:
    """Return what a tool result says of an agent or a background task, or None."""
    raw = bytes(row.tool_use_result)
    if not raw.startswith(b"{") or (
        b'"agentId"' not in raw and b'"task_id"' not in raw and b'"runId"' not in raw
    ):
        return None
    try:
        return _TOOL_USE_RESULT.decode(raw)
    except msgspec.ValidationError:
        return None  # a tool of that shape that has nothing to do with agents


def spawn_arguments(arguments: msgspec.Raw) -> SpawnArguments:
    """Return the arguments of a spawning call; empty ones where they have another shape."""
    try:
        return _SPAWN.decode(arguments)
    except msgspec.DecodeError:
        return SpawnArguments()


def agent_meta(content: bytes) -> AgentMeta:
    """Return a sub-agent's meta file; an empty one where it has another shape."""
    try:
        return _META.decode(content)
    except MALFORMED:
        return AgentMeta()


def result_text(content: msgspec.Raw) -> str:
    """Return the text of a tool result, which is a string or a list of blocks."""
    value = msgspec.json.decode(content) if bytes(content) else None
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        texts = [piece.get("text") for piece in value if isinstance(piece, dict)]
        return "\n\n".join(text for text in texts if isinstance(text, str))
    return ""

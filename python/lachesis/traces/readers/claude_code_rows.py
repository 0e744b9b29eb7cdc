"""Rows of a Claude Code transcript, decoded no further than a replay needs.

A row's type chooses the struct that it is decoded into, in one pass: structs pass over every field
that they do not name, and of rows that are part of no request only the place is kept. `progress`
rows, half of a large transcript, cost next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

import msgspec

from lachesis.errors import InputError
from lachesis.traces.readers.json_fault import MALFORMED, field_fault
from lachesis.traces.readers.json_rows import without_half_surrogates
from lachesis.traces.readers.protocol import SourceFile
from lachesis.traces.schema import TOKENS_MAX

_NONE = msgspec.Raw(b"null")
Tokens = Annotated[int, msgspec.Meta(ge=0, le=TOKENS_MAX)]


class OtherRow(msgspec.Struct, rename="camel", gc=False):
    """A row that is no part of a request; its place matters, for others follow it."""

    kind: ClassVar[str]
    uuid: str | None = None
    parent_uuid: str | None = None


class _Kind(msgspec.Struct):
    """The type alone, of rows that are not as the structs below have them."""

    type: str


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


class Message(msgspec.Struct, gc=False):
    """The `message` of a user or an assistant row."""

    content: str | list[Block] | None = None
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None


class Origin(msgspec.Struct, gc=False):
    """Where newer versions say that a user row comes from."""

    kind: str | None = None


class Row(msgspec.Struct, rename="camel", gc=False):
    """A user or assistant row."""

    kind: ClassVar[str]
    message: Message
    uuid: str | None = None
    parent_uuid: str | None = None
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


class UserRow(Row, tag_field="type", tag="user"):
    """What a person or a tool said."""

    kind: ClassVar[str] = "user"


class AssistantRow(Row, tag_field="type", tag="assistant"):
    """A line of an answer."""

    kind: ClassVar[str] = "assistant"


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


class Attachment(msgspec.Struct):
    """What an attachment row attaches."""

    type: str | None = None
    prompt: Any = None


class AttachmentRow(OtherRow, rename="camel", tag_field="type", tag="attachment"):
    """Among other things, a message queued into a running turn."""

    kind: ClassVar[str] = "attachment"
    attachment: Attachment | None = None
    timestamp: datetime | None = None


class QueueRow(OtherRow, rename="camel", tag_field="type", tag="queue-operation"):
    """A message that was put into the queue, or taken out."""

    kind: ClassVar[str] = "queue-operation"
    operation: str | None = None
    content: Any = None
    timestamp: datetime | None = None


class AgentMeta(msgspec.Struct, rename="camel"):
    """`agent-ID.meta.json`, which newer versions write beside a sub-agent's transcript."""

    agent_type: str | None = None
    description: str | None = None
    tool_use_id: str | None = None


class ProgressRow(OtherRow, tag_field="type", tag="progress"):
    """What a running tool or sub-agent shows."""

    kind: ClassVar[str] = "progress"


class SystemRow(OtherRow, tag_field="type", tag="system"):
    """What the harness notes for itself."""

    kind: ClassVar[str] = "system"


class SummaryRow(OtherRow, tag_field="type", tag="summary"):
    """A session's title."""

    kind: ClassVar[str] = "summary"


class SnapshotRow(OtherRow, tag_field="type", tag="file-history-snapshot"):
    """The state of files that the agent edits."""

    kind: ClassVar[str] = "file-history-snapshot"


AnyRow = UserRow | AssistantRow | AttachmentRow | QueueRow
_ROW = msgspec.json.Decoder(AnyRow | ProgressRow | SystemRow | SummaryRow | SnapshotRow)
_KIND = msgspec.json.Decoder(_Kind)
_OTHER = msgspec.json.Decoder(OtherRow)
_KNOWN = frozenset(
    {"user", "assistant", "attachment", "queue-operation", "progress", "system", "summary",
     "file-history-snapshot"}
)  # fmt: skip
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
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def rows(file: SourceFile, dropped: list[str]) -> Iterator[tuple[int, str, Row | OtherRow]]:
    """Yield every row: its line number, its kind, and what is kept of it.

    A malformed last line is what a crash leaves and is dropped (named in `dropped`); a malformed
    line anywhere else, or a field of the wrong type, raises `InputError` with file and line.
    """
    fault: tuple[int, Exception] | None = None
    decode = _ROW.decode
    for number, line in file.lines():
        if fault is not None:
            raise InputError(f"not valid JSON: {fault[1]}", path=file.name, row=fault[0])
        try:
            try:
                row = decode(line)
            except msgspec.ValidationError as wrong:
                yield number, *_unknown_row(line, wrong, file, number)
                continue
        except MALFORMED as wrong:
            mended = without_half_surrogates(line)
            if mended is None:
                fault = (number, wrong)
                continue
            try:
                row = decode(mended)
            except msgspec.ValidationError as still_wrong:
                yield number, *_unknown_row(mended, still_wrong, file, number)
                continue
        yield number, row.kind, row
    if fault is not None:
        dropped.append(f"truncated last line ({file.name}:{fault[0]})")


def _unknown_row(
    line: bytes, wrong: msgspec.ValidationError, file: SourceFile, number: int
) -> tuple[str, OtherRow]:
    """A row of a kind that is not known.

    Raises `InputError` if that is not what is wrong, and what a decoder raises for no JSON: a line
    may have a wrong field and be cut off behind it.
    """
    try:
        kind = _KIND.decode(line).type
        if kind not in _KNOWN:
            return kind, _OTHER.decode(line)
    except msgspec.ValidationError as nearer:
        wrong = nearer
    raise field_fault(wrong, line, name=file.name, row=number) from wrong


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

"""An ATIF document (Harbor's Agent Trajectory Interchange Format, v1.0 to v1.8), decoded.

Structs pass over every field that they do not name (token ids, log probabilities, costs). What
differs between versions is taken in either shape: a message is a text or a list of content parts
(from v1.6), a sub-agent reference an object or a list of them.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from lachesis.errors import InputError
from lachesis.traces.readers.claude_code_rows import ToolUseResult
from lachesis.traces.readers.json_fault import MALFORMED, field_fault
from lachesis.traces.readers.protocol import SourceFile
from lachesis.traces.schema import TOKENS_MAX

_NONE = msgspec.Raw(b"null")
Tokens = Annotated[int, msgspec.Meta(ge=0, le=TOKENS_MAX)]


class ContentPart(msgspec.Struct):
    """A part of a message; only text has a length that we know."""

    type: str | None = None
    text: str | None = None


Content = str | list[ContentPart] | None


class ToolCall(msgspec.Struct):
    """A tool call of an agent step."""

    function_name: str
    tool_call_id: str | None = None
    arguments: msgspec.Raw = _NONE


class SubagentRef(msgspec.Struct):
    """Where a sub-agent's trajectory is: in this document, in another, or in a file."""

    session_id: str | None = None
    trajectory_id: str | None = None
    trajectory_path: str | None = None


class ToolResultMetadata(msgspec.Struct):
    """What Harbor's Claude Code converter keeps of a tool result beside its text."""

    tool_use_result: msgspec.Raw = _NONE


class ResultExtra(msgspec.Struct):
    """Free fields of a result, as far as known."""

    tool_result_metadata: ToolResultMetadata | None = None


class Result(msgspec.Struct):
    """One result of an observation."""

    source_call_id: str | None = None
    content: Content = None
    subagent_trajectory_ref: SubagentRef | list[SubagentRef] | None = None
    extra: ResultExtra | None = None


class Observation(msgspec.Struct):
    """What an action led to."""

    results: list[Result] = []


class MetricsExtra(msgspec.Struct):
    """Free fields of the metrics, as far as known."""

    reasoning_tokens: Tokens | None = None


class Metrics(msgspec.Struct):
    """Usage of a step; `prompt_tokens` includes what was cached."""

    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None
    cached_tokens: Tokens | None = None
    extra: MetricsExtra | None = None


class StepExtra(msgspec.Struct):
    """Free fields of a step, as far as known."""

    is_sidechain: bool | None = None
    agent_id: str | None = None
    stop_reason: str | None = None


class Step(msgspec.Struct):
    """One step."""

    source: Literal["system", "user", "agent"]
    step_id: int | None = None
    timestamp: datetime | None = None
    model_name: str | None = None
    message: Content = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: Tokens | None = None
    extra: StepExtra | None = None


class Agent(msgspec.Struct):
    """The agent system."""

    name: str = "unknown"
    version: str | None = None
    model_name: str | None = None


class Trajectory(msgspec.Struct):
    """A document, or a sub-agent's within one."""

    steps: list[Step]
    schema_version: str | None = None
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: Agent = msgspec.field(default_factory=Agent)
    continued_trajectory_ref: str | None = None
    subagent_trajectories: list[Trajectory] | None = None


_TRAJECTORY = msgspec.json.Decoder(Trajectory)
_TOOL_USE_RESULT = msgspec.json.Decoder(ToolUseResult)
_VERSION = re.compile(r"ATIF-v1(\.\d+)?$")
_BYTE = re.compile(r"\(byte (\d+)\)")


def load(file: SourceFile) -> Trajectory:
    """Decode a document; `InputError` names the line of malformed JSON, or the field."""
    content = file.read_bytes()
    try:
        document = _TRAJECTORY.decode(content)
    except msgspec.ValidationError as wrong:
        raise field_fault(wrong, content, name=file.name) from wrong
    except MALFORMED as wrong:
        at = _BYTE.search(str(wrong))
        end = int(at[1]) if at is not None else len(content)
        row = content.count(b"\n", 0, end) + 1
        raise InputError(f"not valid JSON: {wrong}", path=file.name, row=row) from wrong
    version = document.schema_version or ""
    if not _VERSION.match(version):
        raise InputError(
            "must be ATIF-v1 or ATIF-v1.N",
            path=file.name,
            field="schema_version",
            value=version,
        )
    return document


def text_of(content: Content) -> str:
    """Return the text of a message or a result; images and other media have none.

    >>> text_of([ContentPart(type="text", text="a"), ContentPart(type="image")])
    'a'
    """
    if content is None or isinstance(content, str):
        return content or ""
    return "\n\n".join(part.text for part in content if part.text)


def noted_of(result: Result) -> ToolUseResult | None:
    """Return what the harness noted beside a tool result, where the conversion kept it."""
    metadata = result.extra.tool_result_metadata if result.extra is not None else None
    raw = bytes(metadata.tool_use_result) if metadata is not None else b""
    if not raw.startswith(b"{"):
        return None
    try:
        return _TOOL_USE_RESULT.decode(raw)
    except msgspec.ValidationError:
        return None  # a tool of that shape that has nothing to do with agents


def refs_of(result: Result) -> list[SubagentRef]:
    """Return a result's references to sub-agents."""
    refs = result.subagent_trajectory_ref
    if refs is None:
        return []
    return refs if isinstance(refs, list) else [refs]


def results_of(step: Step) -> list[Result]:
    """Return the results that a step observed."""
    return step.observation.results if step.observation is not None else []

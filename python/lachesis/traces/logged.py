"""What a reader hands to the builder: parts of a context, edges, and logged requests.

A reader that has the text gives `Part`s; one that has only counts gives `input_tokens`. Nothing
here knows of segments: those are recovered by `lachesis.traces.builder`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from typing import Literal, NamedTuple

import msgspec

from lachesis.traces.schema import EdgeKind, Status, UsageSource

#: ``turn``: reasoning leaves the context when a turn ends; ``round``: after every request.
Stripping = Literal["auto", "turn", "round", "off"]
#: The lead's agent key.
LEAD = 0


class PartKind(StrEnum):
    """What a part of a context is."""

    SYSTEM = "system"  # system prompt and tool schemas: becomes the `prompt` segment
    USER = "user"
    OBSERVATION = "observation"
    CALL = "call"
    ANSWER = "answer"
    REASONING = "reasoning"
    SUMMARY = "summary"  # what a compaction left


class Part(NamedTuple):
    """A run of tokens that enters or leaves a context as one.

    `key` identifies the content: equal keys at the same place mean that the tokens are the same
    (see `content_key`). `tokens` is the reader's best count; where the request also has a reported
    `input_tokens`, the new parts are scaled so that the sum is what was reported.
    """

    key: Hashable
    tokens: int
    kind: PartKind


class Edge(NamedTuple):
    """Waits for `request` (a handle of the same session); `delay_s` None is drawn at replay."""

    request: int
    kind: EdgeKind
    delay_s: float | None = None


def content_key(text: str, kind: str = "") -> int:
    """A 64-bit key of a text, the same in every process (unlike `hash`).

    Example:
        >>> content_key("a") == content_key("a") != content_key("a", "call")
        True
    """
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=kind.encode()[:64])
    return int.from_bytes(digest.digest(), "big")


class LoggedRequest(msgspec.Struct, gc=False):
    """One provider call as the log has it. Made by `SessionBuilder.request`; see there."""

    agent: Hashable
    opens_turn: bool
    parts: Sequence[Part] | None
    input_tokens: int | None
    appended_tokens: int | None
    carried_tokens: int | None
    prompt_tokens: int | None
    prefix_key: str | None
    output_tokens: int
    reasoning_tokens: int
    output_parts: Sequence[Part] | None
    observations: int
    tools: Sequence[str] | None
    status: Status
    model: str | None
    start_s: float | None
    end_s: float | None
    reported_cached_tokens: int | None
    usage_source: UsageSource
    after: Sequence[Edge]
    delay_s: float | None
    compacts: bool
    rewinds_to: int | None
    row: int | str | None
    # Filled by the session builder from spawn(), resume(), returns() and compacted().
    extra_edges: tuple[Edge, ...] = ()
    after_compaction: bool = False
    summary_tokens: int | None = None


@dataclass(slots=True)
class LoggedSpawn:
    """The spawn record ⟨instruction, context, tools, model⟩ and where it hangs in the session."""

    agent: Hashable
    role: str
    agent_type: str | None
    parent: Hashable
    spawned_by: int
    instruction: str | None
    context: str | None
    instruction_tokens: int | None
    context_tokens: int | None
    tools: Sequence[str]
    model: str | None
    returns: list[int] = field(default_factory=list)  # requests of the parent
    triggers: list[int] = field(default_factory=list)  # spawned_by, and whatever resumed it

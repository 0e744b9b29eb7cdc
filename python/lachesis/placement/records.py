"""What goes into the layer with a spawn, and what comes out of its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from lachesis.errors import InputError
from lachesis.placement.protocols import Name, Tier


@dataclass(frozen=True)
class SpawnRecord:
    """What a harness knows of a sub-agent when it spawns it.

    Attributes:
        instruction, context: texts, if they may be read.
        tools: names of the tools that it may call.
        model: the model that it runs on.
        role: a ``worker`` is ranked by predicted lifetime, a ``reviewer`` is not.
        instruction_tokens, context_tokens: lengths, if known.
        position: sub-agents that its session spawned before; None: the layer counts.

    Example:
        >>> SpawnRecord.of({"instruction": "Find the bug.", "tools": ["shell"]}).role
        'worker'
    """

    instruction: str | None = None
    context: str | None = None
    tools: Sequence[str] = ()
    model: str | None = None
    role: Literal["worker", "reviewer"] = "worker"
    instruction_tokens: int | None = None
    context_tokens: int | None = None
    position: int | None = None

    def __post_init__(self) -> None:
        if self.role not in ("worker", "reviewer"):
            raise InputError("must be worker or reviewer", field="role", value=self.role)

    @classmethod
    def of(cls, record: SpawnRecord | Mapping[str, Any]) -> SpawnRecord:
        """The record itself, or one from a mapping.

        Raises:
            InputError: a key that no spawn record has, or a role that is none.
        """
        if isinstance(record, SpawnRecord):
            return record
        known = [field.name for field in fields(cls)]
        for key in record:
            if key not in known:
                raise InputError(f"must be one of {', '.join(known)}", field="record", value=key)
        return cls(**record)


@dataclass(frozen=True)
class Score:
    """What came of a spawn.

    Attributes:
        value: rank key of the predicted lifetime, lower lives shorter; None without a predictor.
        tier: where the sub-agent's blocks go.
        position: sub-agents that its session had spawned before.
        generation: tells this opening of the segment from others.
    """

    value: float | None
    tier: Tier
    position: int
    generation: int


@dataclass(frozen=True)
class Released:
    """What a boundary, or the end of a request, released.

    Attributes:
        freed: ids of blocks that nobody holds any more; they belong on the engine's free lists.
        deferred: ids of blocks whose segments wait for running requests.
        still_shared: ids of blocks that were let go and that other segments hold.
        closed: segments that have ended.
        waiting: segments that end with the last request that runs on them.
        kept_blocks: blocks that stay until they are reclaimed.
        ignored: why nothing was done: ``late``, ``repeated``, ``keeps-reasoning``; None otherwise.
    """

    freed: list[int]
    deferred: list[int]
    still_shared: list[int]
    closed: list[Name]
    waiting: list[Name]
    kept_blocks: int
    ignored: Literal["late", "repeated", "keeps-reasoning"] | None


@dataclass(frozen=True)
class Stats:
    """What the layer holds, and what happened so far.

    Attributes:
        policy: its name.
        total_blocks, free_blocks: by tier.
        kept_blocks: by tier; of ended segments, until they are reclaimed.
        shared_blocks: held by two segments or more.
        written_blocks: committed so far, by kind of segment and tier.
        segments: live ones by kind.
        sessions, running_requests: live ones.
        extents: runs of blocks.
        closed: segments closed.
        deferred: closes that had to wait for a request.
        reopened: closed segments opened again, and pending closes taken back.
        reaped: segments closed because nothing was heard of them.
        late_events, repeated_events: ignored.
        turn_ends_kept: turn ends that closed nothing, because the harness keeps reasoning.
        requests, aborted: started, given up.
        fallback_blocks: committed in another tier than the policy named.
        adopted_blocks: adopted.
        reclaimed_blocks: freed by reclaiming.
    """

    policy: str
    total_blocks: dict[str, int]
    free_blocks: dict[str, int]
    kept_blocks: dict[str, int]
    shared_blocks: int
    written_blocks: dict[str, dict[str, int]]
    segments: dict[str, int]
    sessions: int
    running_requests: int
    extents: int
    closed: int
    deferred: int
    reopened: int
    reaped: int
    late_events: int
    repeated_events: int
    turn_ends_kept: int
    requests: int
    aborted: int
    fallback_blocks: int
    adopted_blocks: int
    reclaimed_blocks: int

    @property
    def live_segments(self) -> int:
        """Live segments of all kinds."""
        return sum(self.segments.values())

    def held_blocks(self, tier: Tier) -> int:
        """Blocks of a tier that somebody holds."""
        return self.total_blocks[tier] - self.free_blocks[tier]

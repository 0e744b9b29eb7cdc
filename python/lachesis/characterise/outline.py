"""A session as a tree: agents, runs of requests, and where context was thrown away and why.

`outliner` makes the tree of a trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class SegmentTokens(NamedTuple):
    """Tokens in one segment."""

    segment: int
    kind: str
    tokens: int


@dataclass(frozen=True)
class Rewrite:
    """Context that an agent lost between two of its requests, or at its end.

    Attributes:
        why: the boundary (`Boundary`) that closed what is missing.
        request: the request whose input shows it; the agent's last one at its end.
        turn: of that request.
        agent: whose context.
        before_tokens: the context before, input and output of the agent's previous request.
        dropped_tokens: of it, what this boundary threw away.
        kept_tokens: of it, what still matched afterwards.
        dropped_segments: dropped tokens by segment.
        written_segments: what the request wrote on top, by segment; nothing at the agent's end,
            and where another boundary of the same request stands first.
        model_switch: the request went to another model than the one before.
    """

    why: str
    request: int
    turn: int
    agent: int
    before_tokens: int
    dropped_tokens: int
    kept_tokens: int
    dropped_segments: tuple[SegmentTokens, ...]
    written_segments: tuple[SegmentTokens, ...]
    model_switch: bool = False

    @property
    def written_tokens(self) -> int:
        """What the request wrote on top of what was kept."""
        return sum(each.tokens for each in self.written_segments)


@dataclass
class Run:
    """Requests of one agent in a row, within one turn, between which its context only grew.

    Small resets and stripping after every request do not end a run; they are in `absorbed`.

    Attributes:
        requests: numbers of the requests.
        written_tokens: of inputs.
        output_tokens, reasoning_tokens: generated.
        context_tokens: held at the end, output included.
        peak_tokens: the most that was held.
        segments: class of each segment that was written into, by id.
        tools: classes called, counted.
        failed: requests that were aborted or ended in an error.
    """

    agent: int
    turn: int
    requests: list[int] = field(default_factory=list)
    written_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    context_tokens: int = 0
    peak_tokens: int = 0
    segments: dict[int, str] = field(default_factory=dict)
    tools: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    absorbed: list[Rewrite] = field(default_factory=list)


@dataclass
class AgentOutline:
    """One agent: what it did, in order, with the sub-agents that it started where it did.

    Attributes:
        role: ``lead``, ``worker`` or ``reviewer``.
        agent_type: the harness's own name for it.
        spawned_by: the request that started it; None for a lead.
        return_requests: requests of its parent that took its results.
        items: runs, rewrites and sub-agents.
        end: what its end threw away; one entry a boundary.
    """

    agent: int
    role: str
    agent_type: str | None
    spawned_by: int | None
    return_requests: list[int]
    items: list[Run | Rewrite | AgentOutline] = field(default_factory=list)
    end: list[Rewrite] = field(default_factory=list)

    def rewrites(self) -> Iterator[Rewrite]:
        """All rewrites of this agent and the agents below it, ends included."""
        for item in self.items:
            if isinstance(item, AgentOutline):
                yield from item.rewrites()
            elif isinstance(item, Rewrite):
                yield item
            else:
                yield from item.absorbed
        yield from self.end


@dataclass(frozen=True)
class SessionOutline:
    """A session's tree and totals.

    Attributes:
        agents: the lead; others only where a log does not say who started them.
        duration_s: from the first recorded start to the last recorded end; None without.
        written_tokens: materialised, a shared prompt included.
        read_tokens: input that matched and was not written.
    """

    session: str
    workload: str
    harness: str
    models: list[str]
    turns: int
    agent_count: int
    requests: int
    written_tokens: int
    output_tokens: int
    read_tokens: int
    peak_tokens: int
    duration_s: float | None
    starts_midway: bool
    ends_open: bool
    agents: list[AgentOutline]

    def rewrites(self) -> list[Rewrite]:
        """All rewrites of the session, ends of agents included."""
        return [rewrite for agent in self.agents for rewrite in agent.rewrites()]

    def to_json(self) -> dict[str, Any]:
        """The tree as ``trace show --json`` gives it: every item says its `kind`."""
        columns = (
            "session", "workload", "harness", "models", "turns", "requests", "written_tokens",
            "output_tokens", "read_tokens", "peak_tokens", "duration_s", "starts_midway",
            "ends_open",
        )  # fmt: skip
        found: dict[str, Any] = {name: getattr(self, name) for name in columns}
        found["agents"] = self.agent_count
        found["tree"] = [_agent_json(agent) for agent in self.agents]
        return found


def _agent_json(agent: AgentOutline) -> dict[str, Any]:
    return {
        "kind": "agent",
        "agent": agent.agent,
        "role": agent.role,
        "agent_type": agent.agent_type,
        "spawned_by": agent.spawned_by,
        "return_requests": agent.return_requests,
        "items": [
            _agent_json(item) if isinstance(item, AgentOutline) else _item_json(item)
            for item in agent.items
        ],
        "end": [_item_json(each) for each in agent.end],
    }


def _item_json(item: Run | Rewrite) -> dict[str, Any]:
    if isinstance(item, Rewrite):
        found = {"kind": "rewrite", **vars(item)}
        for name in ("dropped_segments", "written_segments"):
            found[name] = [
                {"segment": each.segment, "class": each.kind, "tokens": each.tokens}
                for each in getattr(item, name)
            ]
        return found
    found = {"kind": "run", **vars(item)}
    found["tools"] = dict(sorted(item.tools.items()))
    found["segments"] = [{"segment": key, "class": kind} for key, kind in item.segments.items()]
    found["absorbed"] = [_item_json(each) for each in item.absorbed]
    return found

"""Pushes a session whose agents are known, and whose spawns and returns only times can tell.

A sub-agent was spawned by the last request of its parent that had ended when its own first request
began, and gives its result to the parent's first request after its last one. If it is *resumable*
and a request of the parent lies between two of its own, the parent has taken a result and asked
again. A sub-agent whose parent had no request before it is an orphan: a session of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lachesis.traces.logged import LEAD
from lachesis.traces.session_builder import SessionBuilder

#: Opens the session, or with the key of an orphan that orphan's own.
OpenSession = Callable[[Hashable | None], SessionBuilder]


@dataclass(slots=True)
class TimedRequest:
    """One request. `arguments`: those of `SessionBuilder.request` besides agent and times."""

    agent: Hashable
    start_s: float
    end_s: float | None
    arguments: dict[str, Any]

    @property
    def over_s(self) -> float:
        """When it had ended, as far as is known."""
        return self.start_s if self.end_s is None else self.end_s


@dataclass(slots=True)
class TimedAgent:
    """What is known of a sub-agent. `record`: arguments of `SessionBuilder.spawn`.

    `ends_s`: when its result was there, if that is later than its last request. `explicit`: the log
    says that it belongs to its parent, so it may have been spawned by a request still running.
    """

    parent: Hashable = LEAD
    record: dict[str, Any] = field(default_factory=dict)
    ends_s: float | None = None
    resumable: bool = True
    explicit: bool = False


def push_timed(
    open_session: OpenSession,
    requests: Sequence[TimedRequest],
    agents: Mapping[Hashable, TimedAgent],
    *,
    slack_s: float = 0.0,
) -> list[SessionBuilder]:
    """Push all requests, in order of start (equal starts in the given order).

    `agents` describes every sub-agent among them. `slack_s`: by how much times may be off, where
    the log rounds them.
    """
    ordered = sorted(requests, key=lambda request: request.start_s)
    plan = _Plan(ordered, agents, slack_s)
    session = open_session(None)
    opened = [session]
    handles: dict[int, int] = {}
    for index, request in enumerate(ordered):
        if request.agent in plan.orphans:
            continue
        agent = request.agent
        if index in plan.spawned_by:
            by = handles[plan.spawned_by[index]]
            session.spawn(agent, spawned_by=by, **agents[agent].record)
        elif index in plan.resumed_by:
            session.resume(agent, resumed_by=handles[plan.resumed_by[index]])
        handles[index] = _push(session, request, agent)
        for returning in plan.returns_to.get(index, ()):
            session.returns(returning, to=handles[index])
    for orphan in plan.orphans:
        own = open_session(orphan)
        opened.append(own)
        for request in ordered:
            if request.agent == orphan:
                _push(own, request, LEAD)
    return opened


def _push(session: SessionBuilder, request: TimedRequest, agent: Hashable) -> int:
    arguments = request.arguments
    if agent != LEAD and arguments.get("opens_turn"):
        arguments = {**arguments, "opens_turn": False}
    return session.request(agent=agent, start_s=request.start_s, end_s=request.end_s, **arguments)


class _Plan:
    """Who spawns, resumes and takes results, as positions among the ordered requests."""

    def __init__(
        self,
        ordered: Sequence[TimedRequest],
        agents: Mapping[Hashable, TimedAgent],
        slack_s: float,
    ) -> None:
        self.ordered = ordered
        self.slack_s = slack_s
        self.own: dict[Hashable, list[int]] = {}
        for index, request in enumerate(ordered):
            self.own.setdefault(request.agent, []).append(index)
        self.spawned_by: dict[int, int] = {}
        self.resumed_by: dict[int, int] = {}
        self.returns_to: dict[int, list[Hashable]] = {}
        self.orphans: dict[Hashable, None] = {}
        for agent in self.own:  # in order of first request, so a parent was settled before
            if agent != LEAD:
                self._settle(agent, agents[agent])

    def _settle(self, agent: Hashable, known: TimedAgent) -> None:
        first, *later = self.own[agent]
        is_lost = known.parent in self.orphans or known.parent == agent
        asked = [] if is_lost else self.own.get(known.parent, [])
        spawner = self._last_over(asked, first)
        if spawner is None and known.explicit:
            spawner = next((index for index in reversed(asked) if index < first), None)
        if spawner is None:
            self.orphans[agent] = None
            return
        self.spawned_by[first] = spawner
        last = first
        for index in later:
            taker = self._taker(asked, last, self.ordered[last].over_s)
            trigger = self._last_over(asked, index)
            if known.resumable and taker is not None and trigger is not None and trigger >= taker:
                self.returns_to.setdefault(taker, []).append(agent)
                self.resumed_by[index] = trigger
            last = index
        over_s = max(self.ordered[last].over_s, known.ends_s or float("-inf"))
        taker = self._taker(asked, last, over_s)
        if taker is not None:
            self.returns_to.setdefault(taker, []).append(agent)

    def _last_over(self, asked: Sequence[int], index: int) -> int | None:
        """The last of the parent's requests that had ended when request `index` began."""
        latest_s = self.ordered[index].start_s + self.slack_s
        over = [at for at in asked if at < index and self.ordered[at].over_s <= latest_s]
        return max(over, key=lambda at: (self.ordered[at].over_s, at), default=None)

    def _taker(self, asked: Sequence[int], last: int, over_s: float) -> int | None:
        """The first of the parent's requests that can have taken what was there at `over_s`."""
        earliest_s = over_s - self.slack_s
        return next(
            (at for at in asked if at > last and self.ordered[at].start_s >= earliest_s), None
        )

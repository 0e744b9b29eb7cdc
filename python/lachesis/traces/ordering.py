"""The order of a session's requests, and the edges between them.

Requests of one agent follow each other; a sub-agent's first request follows the one that spawned
it; a request that takes a result follows the sub-agent's last one. Between requests that these
edges leave open, recorded start times decide, and where there are none the order of the log.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from heapq import heapify, heappop, heappush

import msgspec

from lachesis.errors import InputError
from lachesis.traces.logged import LoggedRequest, LoggedSpawn
from lachesis.traces.quality import Quality
from lachesis.traces.schema import EdgeKind, ToolClass

_NO_DELAY_OF_ITS_OWN = {ToolClass.SPAWN}
# By names of their own: before Python 3.12, asking an enum for a member is slow.
_USER = EdgeKind.USER
_TOOL = EdgeKind.TOOL
_RETURN = EdgeKind.RETURN


#: What a request waits for: an earlier one, and the delay (None: not known yet, or at all).
_Waits = tuple[int, EdgeKind, float | None]


class OrderedRequest(msgspec.Struct, frozen=True, gc=False):
    """A request with its number in the session's order, and its edges to earlier numbers."""

    number: int
    handle: int
    turn: int
    after: list[_Waits]


def order_requests(
    requests: Sequence[LoggedRequest],
    spawns: Mapping[Hashable, LoggedSpawn],
    *,
    lead: Hashable,
    recorded_delays: bool,
    source: str,
    session: str,
    quality: Quality,
) -> list[OrderedRequest]:
    """Number the requests 0, 1, … so that every edge points backwards.

    A `return` edge that contradicts all others (a log whose rows are out of order) is left out and
    counted; any other cycle is an `InputError`.
    """
    previous = _previous_of_agent(requests, spawns, lead=lead, source=source, session=session)
    edges = [
        _edges_of(index, request, previous[index], spawns, lead)
        for index, request in enumerate(requests)
    ]
    order: Sequence[int] = range(len(requests))
    if not _in_log_order(requests, edges):
        order = _topological(requests, edges, source=source, session=session, quality=quality)
    number_of = [0] * len(requests)
    for number, handle in enumerate(order):
        number_of[handle] = number

    ordered: list[OrderedRequest] = []
    turn_of = [0] * len(requests)
    for number, handle in enumerate(order):
        request = requests[handle]
        before = previous[handle]
        if request.agent == lead:
            turn = 0 if before < 0 else turn_of[before] + request.opens_turn
        else:
            turn = turn_of[spawns[request.agent].spawned_by]
        turn_of[handle] = turn
        of = edges[handle]
        after: list[_Waits] = []
        for earlier, kind, delay_s in of:
            if delay_s is None:
                took_subagents = (
                    kind is _TOOL
                    and earlier == before
                    and len(of) > 1
                    and _returned_to(before, of, requests, spawns)
                )
                delay_s = _delay(request, requests[earlier], kind, recorded_delays, took_subagents)
            after.append((number_of[earlier], kind, delay_s))
        if len(after) > 1:
            after.sort()
        ordered.append(OrderedRequest(number, handle, turn, after))
    return ordered


def _previous_of_agent(
    requests: Sequence[LoggedRequest],
    spawns: Mapping[Hashable, LoggedSpawn],
    *,
    lead: Hashable,
    source: str,
    session: str,
) -> list[int]:
    latest: dict[Hashable, int] = {}
    previous: list[int] = []
    for index, request in enumerate(requests):
        agent = request.agent
        if agent != lead and agent not in spawns:
            raise InputError(
                f"session {session}: no spawn names this agent",
                path=source,
                row=request.row,
                field="agent",
                value=agent,
            )
        previous.append(latest.get(agent, -1))
        latest[agent] = index
    return previous


def _edges_of(
    index: int,
    request: LoggedRequest,
    previous: int,
    spawns: Mapping[Hashable, LoggedSpawn],
    lead: Hashable,
) -> Sequence[_Waits]:
    """Edges of one request, one an earlier request; the explicit ones win over the automatic."""
    is_lead = request.agent == lead
    automatic: _Waits | None = None
    if previous >= 0:
        automatic = (previous, _USER if request.opens_turn and is_lead else _TOOL, request.delay_s)
    elif not is_lead:
        automatic = (spawns[request.agent].spawned_by, EdgeKind.SPAWN, request.delay_s)
    if not (request.after or request.extra_edges):
        return () if automatic is None or automatic[0] == index else (automatic,)
    explicit = (*request.after, *request.extra_edges)
    found: dict[int, _Waits] = {}
    for edge in explicit if automatic is None else (*explicit, automatic):
        found.setdefault(edge[0], edge)
    return [edge for edge in found.values() if edge[0] != index]


def _topological(
    requests: Sequence[LoggedRequest],
    edges: list[Sequence[_Waits]],
    *,
    source: str,
    session: str,
    quality: Quality,
) -> list[int]:
    count = len(requests)
    waiting = [len(of) for of in edges]
    followers: list[list[int]] = [[] for _ in range(count)]
    for index, of in enumerate(edges):
        for earlier, _, _ in of:
            followers[earlier].append(index)
    # Without a start time a request comes as early as what it waits for allows.
    earliest = [
        request.start_s if request.start_s is not None else float("-inf") for request in requests
    ]
    ready = [(earliest[index], index) for index in range(count) if not waiting[index]]
    heapify(ready)
    order: list[int] = []
    placed = [False] * count
    while len(order) < count:
        while ready:
            _, index = heappop(ready)
            placed[index] = True
            order.append(index)
            for follower in followers[index]:
                if requests[follower].start_s is None:
                    earliest[follower] = max(earliest[follower], earliest[index])
                waiting[follower] -= 1
                if not waiting[follower]:
                    heappush(ready, (earliest[follower], follower))
        if len(order) == count:
            break
        freed = _drop_one_return(edges, placed, waiting, followers)
        if freed is None:
            stuck = placed.index(False)
            raise InputError(
                f"session {session}: requests wait for each other in a circle",
                path=source,
                row=requests[stuck].row,
                field="after",
            )
        quality.adjusted["return left out: it contradicts the order of requests"] += 1
        if not waiting[freed]:
            heappush(ready, (earliest[freed], freed))
    return order


def _in_log_order(requests: Sequence[LoggedRequest], edges: list[Sequence[_Waits]]) -> bool:
    """Whether every edge points backwards and start times never fall in the order of the log."""
    latest_s = float("-inf")
    for index, request in enumerate(requests):
        for earlier, _, _ in edges[index]:
            if earlier >= index:
                return False
        start_s = request.start_s
        if start_s is not None:
            if start_s < latest_s:
                return False
            latest_s = start_s
    return True


def _drop_one_return(
    edges: list[Sequence[_Waits]],
    placed: list[bool],
    waiting: list[int],
    followers: list[list[int]],
) -> int | None:
    for index, of in enumerate(edges):
        if placed[index]:
            continue
        for edge in of:
            earlier, kind, _ = edge
            if kind is _RETURN and not placed[earlier]:
                edges[index] = [other for other in of if other is not edge]
                followers[earlier].remove(index)
                waiting[index] -= 1
                return index
    return None


def _returned_to(
    before: int,
    edges: Sequence[_Waits],
    requests: Sequence[LoggedRequest],
    spawns: Mapping[Hashable, LoggedSpawn],
) -> bool:
    """Whether one of the edges brings the result of a sub-agent that `before` had started."""
    for earlier, kind, _ in edges:
        agent = requests[earlier].agent
        if kind is _RETURN and agent in spawns and before in spawns[agent].triggers:
            return True
    return False


def _delay(
    request: LoggedRequest,
    earlier: LoggedRequest,
    kind: EdgeKind,
    recorded_delays: bool,
    took_subagents: bool,
) -> float | None:
    tools = earlier.tools
    only_spawns = tools is not None and all(tool in _NO_DELAY_OF_ITS_OWN for tool in tools)
    if kind is _TOOL and took_subagents:
        # The recorded gap is the sub-agents' run, which the replay plays itself.
        return 0.0 if only_spawns or tools is None else None
    if recorded_delays and request.start_s is not None and earlier.end_s is not None:
        return max(0.0, request.start_s - earlier.end_s)
    if kind in (EdgeKind.SPAWN, _RETURN):
        return 0.0
    if kind is _TOOL and only_spawns:
        return 0.0
    return None

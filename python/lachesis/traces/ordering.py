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
from lachesis.traces.logged import Edge, LoggedRequest, LoggedSpawn
from lachesis.traces.quality import Quality
from lachesis.traces.schema import EdgeKind, ToolClass

_NO_DELAY_OF_ITS_OWN = {ToolClass.SPAWN}
# By names of their own: before Python 3.12, asking an enum for a member is slow.
_USER = EdgeKind.USER
_TOOL = EdgeKind.TOOL
_RETURN = EdgeKind.RETURN


class OrderedRequest(msgspec.Struct, frozen=True, gc=False):
    """A request with its number in the session's order, and its edges to earlier numbers."""

    number: int
    handle: int
    turn: int
    previous: int  # number of the agent's previous request, -1 if it is the first
    after: list[tuple[int, EdgeKind, float | None]]


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
            turn_of[handle] = (
                0 if before < 0 else turn_of[before] + (1 if request.opens_turn else 0)
            )
        else:
            turn_of[handle] = turn_of[spawns[request.agent].spawned_by]
        delays = _delays(handle, requests, edges[handle], before, spawns, recorded_delays)
        after = [
            (number_of[earlier], kind, delay)
            for (earlier, kind, _), delay in zip(edges[handle], delays, strict=True)
        ]
        after.sort()
        ordered.append(
            OrderedRequest(
                number,
                handle,
                turn_of[handle],
                number_of[before] if before >= 0 else -1,
                after,
            )
        )
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
        if request.agent != lead and request.agent not in spawns:
            raise InputError(
                f"session {session}: no spawn names this agent",
                path=source,
                row=request.row,
                field="agent",
                value=request.agent,
            )
        previous.append(latest.get(request.agent, -1))
        latest[request.agent] = index
    return previous


def _edges_of(
    index: int,
    request: LoggedRequest,
    previous: int,
    spawns: Mapping[Hashable, LoggedSpawn],
    lead: Hashable,
) -> list[Edge]:
    """Edges of one request, one an earlier request; the explicit ones win over the automatic."""
    edges = [*request.after, *request.extra_edges]
    if previous >= 0:
        opens = request.opens_turn and request.agent == lead
        edges.append(Edge(previous, _USER if opens else _TOOL, request.delay_s))
        if len(edges) == 1:
            return edges
    elif request.agent != lead:
        edges.append(Edge(spawns[request.agent].spawned_by, EdgeKind.SPAWN, request.delay_s))
    if len(edges) > 1:
        found: dict[int, Edge] = {}
        for edge in edges:
            found.setdefault(edge.request, edge)
        edges = list(found.values())
    return [edge for edge in edges if edge.request != index]


def _topological(
    requests: Sequence[LoggedRequest],
    edges: list[list[Edge]],
    *,
    source: str,
    session: str,
    quality: Quality,
) -> list[int]:
    count = len(requests)
    if _in_log_order(requests, edges):
        return list(range(count))
    waiting = [len(of) for of in edges]
    followers: list[list[int]] = [[] for _ in range(count)]
    for index, of in enumerate(edges):
        for edge in of:
            followers[edge.request].append(index)
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


def _in_log_order(requests: Sequence[LoggedRequest], edges: list[list[Edge]]) -> bool:
    """Whether every edge points backwards and start times never fall in the order of the log."""
    latest = float("-inf")
    for index, request in enumerate(requests):
        for edge in edges[index]:
            if edge.request >= index:
                return False
        start_s = request.start_s
        if start_s is not None:
            if start_s < latest:
                return False
            latest = start_s
    return True


def _drop_one_return(
    edges: list[list[Edge]],
    placed: list[bool],
    waiting: list[int],
    followers: list[list[int]],
) -> int | None:
    for index, of in enumerate(edges):
        if placed[index]:
            continue
        for position, edge in enumerate(of):
            if edge.kind is _RETURN and not placed[edge.request]:
                del of[position]
                followers[edge.request].remove(index)
                waiting[index] -= 1
                return index
    return None


def _delays(
    handle: int,
    requests: Sequence[LoggedRequest],
    edges: Sequence[Edge],
    previous: int,
    spawns: Mapping[Hashable, LoggedSpawn],
    recorded_delays: bool,
) -> list[float | None]:
    delays = [edge.delay_s for edge in edges]
    if None not in delays:
        return delays
    request = requests[handle]
    returned_to_previous = any(
        edge.kind is _RETURN and previous in spawns[requests[edge.request].agent].triggers
        for edge in edges
        if requests[edge.request].agent in spawns
    )
    return [
        edge.delay_s
        if edge.delay_s is not None
        else _delay(request, requests[edge.request], edge.kind, recorded_delays,
                    returned_to_previous and edge.request == previous)
        for edge in edges
    ]  # fmt: skip


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

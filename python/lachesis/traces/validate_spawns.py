"""Agents: who spawned whom, when, in which turn, and where the results went."""

from __future__ import annotations

import numpy as np

from lachesis.traces.schema import EdgeKind, Role, SegmentClass
from lachesis.traces.trace_view import Ints, TraceView, lookup, pair_keys


def check_spawns(view: TraceView) -> None:
    """Every sub-agent is spawned once, by an earlier request of its parent, and so on."""
    requests = pair_keys(view.session["requests"], view.column("requests", "agent"))
    spawns = pair_keys(view.session["spawns"], view.column("spawns", "agent"))
    view.require(
        view.column("spawns", "agent") >= 1, "spawns", "agent", "the lead (0) is not spawned"
    )
    order = np.argsort(spawns, kind="stable")
    repeated = np.zeros(len(spawns), np.bool_)
    repeated[order[1:]] = spawns[order[1:]] == spawns[order[:-1]]
    view.require(~repeated, "spawns", "agent", "must be unique in its session")
    agent = view.column("requests", "agent")
    sorted_spawns = np.sort(spawns)
    view.require(
        (agent == 0) | (lookup(sorted_spawns, requests) >= 0),
        "requests", "agent", "no spawn names this sub-agent",
    )  # fmt: skip
    segment_agent = view.column("segments", "agent")
    segment_keys = pair_keys(view.session["segments"], segment_agent)
    view.require(
        (segment_agent == 0) | (lookup(sorted_spawns, segment_keys) >= 0),
        "segments", "agent", "no spawn names this sub-agent",
    )  # fmt: skip
    by_agent = np.argsort(requests, kind="stable")
    first = by_agent[np.minimum(np.searchsorted(requests[by_agent], spawns), len(requests) - 1)]
    view.require(requests[first] == spawns, "spawns", "agent", "has no request")

    by = view.rows_of_requests("spawns", view.column("spawns", "spawned_by"))
    view.require(by >= 0, "spawns", "spawned_by", "no such request")
    view.require(
        agent[by] == view.column("spawns", "parent"),
        "spawns", "parent", "must be the agent of the request that spawned it",
    )  # fmt: skip
    edges = np.unique(pair_keys(view.after_of, view.after_request))
    view.require(
        lookup(edges, pair_keys(first, by)) >= 0,
        "spawns", "spawned_by", "the sub-agent's first request must be after it",
    )  # fmt: skip
    _check_turns(view, agent, by, order, spawns, requests)
    _check_roles(view, order, spawns)
    _check_returns(view, agent)
    codes = view.session["spawns"]
    view.require(
        view.column("spawns", "position")
        == np.arange(len(codes)) - np.searchsorted(codes, codes, "left"),
        "spawns", "position", "must be 0, 1, 2, … in each session",
    )  # fmt: skip


def _check_turns(
    view: TraceView, agent: Ints, by: Ints, order: Ints, spawns: Ints, requests: Ints
) -> None:
    turn = view.column("requests", "turn")
    lead = np.flatnonzero(agent == 0)
    session = view.session["requests"][lead]
    step = np.diff(turn[lead], prepend=0)
    new = np.ones(len(lead), np.bool_)
    new[1:] = session[1:] != session[:-1]
    holds = np.ones(len(agent), np.bool_)
    holds[lead] = np.where(new, turn[lead] == 0, (step == 0) | (step == 1))
    view.require(holds, "requests", "turn", "the lead's turns are 0, 1, 2, … in order")
    if len(spawns):
        sub = np.flatnonzero(agent > 0)
        spawn_row = order[lookup(spawns[order], requests[sub])]
        holds[sub] = turn[sub] == turn[by[spawn_row]]
        view.require(holds, "requests", "turn", "a sub-agent carries the turn of its spawn")


def _check_roles(view: TraceView, order: Ints, spawns: Ints) -> None:
    segment_agent = view.column("segments", "agent")
    for role in Role:
        of_role = view.is_any("segments", "class", SegmentClass(role))
        rows = np.flatnonzero(of_role)
        holds = np.ones(len(of_role), np.bool_)
        if len(spawns):
            keys = pair_keys(view.session["segments"][rows], segment_agent[rows])
            found = lookup(spawns[order], keys)
            holds[rows] = (found >= 0) & view.is_any("spawns", "role", role)[order[found]]
        else:
            holds[rows] = False
        view.require(holds, "segments", "class", f"its agent is no {role}")
    lead_only = view.is_any("segments", "class", SegmentClass.LEAD, SegmentClass.STRIPPED)
    view.require(
        ~lead_only | (segment_agent == 0), "segments", "class", "belongs to the lead (agent 0)"
    )


def _check_returns(view: TraceView, agent: Ints) -> None:
    """Return requests are the parent's, and have a `return` edge from the sub-agent."""
    kinds = view.trace.requests["after"].combine_chunks().flatten().field("kind")
    returning = {
        (int(of), int(agent[before]))
        for of, before, kind in zip(
            view.after_of.tolist(), view.after_request.tolist(), kinds.to_pylist(), strict=True
        )
        if kind == EdgeKind.RETURN
    }
    parent = view.column("spawns", "parent")
    child = view.column("spawns", "agent")
    for row, returns in enumerate(view.trace.spawns["return_requests"].to_pylist()):
        if not returns:
            continue
        rows = view.request_rows(
            np.full(len(returns), view.session["spawns"][row]), np.array(returns, np.int64)
        )
        for number, target in zip(returns, rows.tolist(), strict=True):
            rule = None
            if target < 0:
                rule = "no such request"
            elif agent[target] != parent[row]:
                rule = "must be requests of the parent"
            elif (target, int(child[row])) not in returning:
                rule = "must be after a request of the sub-agent, by an edge of kind return"
            if rule is not None:
                raise view.fail("spawns", row, "return_requests", rule, number)

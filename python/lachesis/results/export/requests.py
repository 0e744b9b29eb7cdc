"""A trace's requests one by one, by their starts, as other simulators take them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lachesis.characterise.reference_clock import join_rows
from lachesis.results.export.arrivals import RequestTimes
from lachesis.results.export.contexts import BlockNumbers
from lachesis.traces.trace import Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ExportedRequest:
    """One request.

    Attributes:
        row: its row in the trace's requests.
        agent: the session's name for agent 0, with the agent's number for the others.
        name: of the request, unique in the export.
        wait_for: names of the requests that must be over before it.
        branches: names of the first requests of the agents that it starts.
        is_first: the agent's first.
        start_s, wait_s: see `RequestTimes`.
        input_tokens, output_tokens: lengths.
        matched_tokens: of the input, what the trace does not write.
        hash_ids: a number for each block of the input.
    """

    row: int
    agent: str
    name: str
    wait_for: tuple[str, ...]
    branches: tuple[str, ...]
    is_first: bool
    start_s: float
    wait_s: float
    input_tokens: int
    output_tokens: int
    matched_tokens: int
    hash_ids: list[int]


def exported_requests(
    trace: Trace, times: RequestTimes, block_tokens: int
) -> Iterator[ExportedRequest]:
    """Every request, by start; at one start in the order of the trace.

    Memory grows with the contexts of the sessions that are under way, not with the trace's tokens.
    """
    numbers = BlockNumbers(trace, block_tokens)
    rows, runs = numbers.rows, numbers.runs
    request_of_run = np.repeat(np.arange(len(runs.offsets) - 1), np.diff(runs.offsets))
    count = trace.requests.num_rows
    inputs = _sums(request_of_run, runs.tokens, count)
    matched = _sums(request_of_run, np.where(runs.written, 0, runs.tokens), count)
    outputs: list[int] = trace.requests["output_tokens"].to_pylist()
    agents: list[int] = trace.requests["agent"].to_pylist()
    after = trace.requests["after"].combine_chunks()
    bounds: list[int] = after.offsets.to_pylist()
    earlier: list[int] = after.values.field("request").to_pylist()
    sessions: list[str] = trace.sessions["session"].to_pylist()
    owner: list[int] = rows.session_of_request.tolist()
    first: list[int] = rows.first_request.tolist()
    firsts = _first_of_agents(owner, agents)
    branches = _branches(trace, firsts, first)
    left = np.bincount(rows.session_of_request, minlength=len(trace)).tolist()
    for row in in_order(trace, times.start_s).tolist():
        session = owner[row]
        name = sessions[session]
        waits = dict.fromkeys(earlier[bounds[row] : bounds[row + 1]])
        yield ExportedRequest(
            row=row,
            agent=name if agents[row] == 0 else f"{name}/{agents[row]}",
            name=f"{name}:{row - first[session]}",
            wait_for=tuple(f"{name}:{request}" for request in waits),
            branches=tuple(f"{name}:{request}" for request in branches.get(row, ())),
            is_first=firsts[session, agents[row]] == row,
            start_s=float(times.start_s[row]),
            wait_s=float(times.wait_s[row]),
            input_tokens=inputs[row],
            output_tokens=outputs[row],
            matched_tokens=matched[row],
            hash_ids=numbers.of_request(row),
        )
        left[session] -= 1
        if not left[session]:
            numbers.forget(session)


def in_order(trace: Trace, start_s: Floats) -> Ints:
    """Rows of requests by start, none before what it waits for or before its agent's last one.

    Clocks of logs are not always in order; the reference clock's times are.
    """
    rows = join_rows(trace)
    owner: list[int] = rows.session_of_request.tolist()
    first: list[int] = rows.first_request.tolist()
    after = trace.requests["after"].combine_chunks()
    bounds: list[int] = after.offsets.to_pylist()
    earlier: list[int] = after.values.field("request").to_pylist()
    not_before = start_s.tolist()
    last: dict[tuple[int, int], float] = {}
    for row, agent in enumerate(trace.requests["agent"].to_pylist()):
        own = (owner[row], agent)
        base = first[own[0]]
        waits = (not_before[base + request] for request in earlier[bounds[row] : bounds[row + 1]])
        not_before[row] = max(not_before[row], last.get(own, not_before[row]), *waits)
        last[own] = not_before[row]
    return np.argsort(np.array(not_before), kind="stable")


def _sums(owner: Ints, tokens: Ints, count: int) -> list[int]:
    found: list[int] = np.rint(np.bincount(owner, tokens, count)).astype(np.int64).tolist()
    return found


def _first_of_agents(owner: list[int], agents: list[int]) -> dict[tuple[int, int], int]:
    """The row of each agent's first request, by session and agent."""
    firsts: dict[tuple[int, int], int] = {}
    for row, key in enumerate(zip(owner, agents, strict=True)):
        firsts.setdefault(key, row)
    return firsts


def _branches(
    trace: Trace, firsts: dict[tuple[int, int], int], first: list[int]
) -> dict[int, list[int]]:
    """By a request's row, the first requests (in their session) of the agents that it starts."""
    place = {name: number for number, name in enumerate(trace.sessions["session"].to_pylist())}
    found: dict[int, list[int]] = {}
    columns = (trace.spawns[name].to_pylist() for name in ("session", "agent", "spawned_by"))
    for name, agent, by in zip(*columns, strict=True):
        session = place[name]
        child = firsts.get((session, agent))
        if child is not None:
            found.setdefault(first[session] + by, []).append(child - first[session])
    return found

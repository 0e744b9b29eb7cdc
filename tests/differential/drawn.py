"""What the engine draws, delays and arrivals, put into the case for the oracle, which draws none.

Every draw of a session becomes a session of its own, with its own delays and start.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from lachesis import _engine

from .case import Config, Drawing, Request, Result, Session, Workload


def random_drawing(rng: Random) -> Drawing:
    """Delays of about the length of the steps of `strategies`."""
    return Drawing(
        seed=rng.choice([0, 1, rng.randint(0, 2**64 - 1)]),
        tool_mean_s=tuple(rng.choice([0.0, 2e-12, 9e-12, 40e-12]) for _ in range(3)),
        tool_sigma=rng.choice([None, 0.4, 1.5]),
        user_median_s=rng.choice([3e-12, 20e-12]),
        user_sigma=rng.choice([0.0, 1.0, 2.0]),
    )


def with_open_delays(rng: Random, workload: Workload) -> Workload:
    """The workload with calls of tools, and most delays still to be drawn."""

    def opened(request: Request) -> Request:
        after = [(*edge[:2], edge[2] if rng.randint(0, 3) == 0 else None) for edge in request.after]
        tools = [rng.randint(0, 2) for _ in range(rng.randint(0, 3))]
        return replace(request, after=after, tools=tools)

    return Workload(
        [
            replace(s, requests=[opened(request) for request in s.requests])
            for s in workload.sessions
        ]
    )


def delay_ps(session: Session, drawing: Drawing, draw: int, number: int, before: int) -> int:
    """The delay of the edge from `before` to request `number`, of whichever kind it is."""
    kinds = {request: kind for request, kind, _ in session.requests[number].after}
    if kinds[before] == "user":
        median_s, sigma = drawing.user_median_s, drawing.user_sigma
        return _engine.user_delay_ps(drawing.seed, draw, number, median_s=median_s, sigma=sigma)
    if kinds[before] == "tool":  # its calls run beside each other: the slowest counts
        latencies = [
            _engine.tool_delay_ps(
                drawing.seed,
                draw,
                before,
                call,
                mean_s=drawing.tool_mean_s[tool],
                sigma=drawing.tool_sigma,
            )
            for call, tool in enumerate(session.requests[before].tools)
        ]
        return max(latencies, default=0)
    return 0  # a sub-agent starts, and its parent hears of its return, at once


def with_delays_drawn(session: Session, drawing: Drawing, draw: int) -> Session:
    requests = []
    for number, request in enumerate(session.requests):
        after = [
            (before, kind, delay_ps(session, drawing, draw, number, before) if ps is None else ps)
            for before, kind, ps in request.after
        ]
        requests.append(replace(request, after=after))
    return replace(session, requests=requests)


def unrolled(workload: Workload, config: Config) -> tuple[Workload, Config]:
    """The same case with every delay fixed: draw i takes session i."""
    sessions = [
        with_delays_drawn(workload.sessions[index], config.drawing, draw)
        for draw, index in enumerate(config.draws)
    ]
    return Workload(sessions), replace(config, draws=list(range(len(sessions))))


def starting_as_in(result: Result, workload: Workload, config: Config) -> tuple[Workload, Config]:
    """The unrolled case as a recording whose sessions start when the result says they arrived."""
    sessions = [
        replace(session, start_ps=result.requests[draw, 0]["ready"])
        for draw, session in enumerate(workload.sessions)
    ]
    return Workload(sessions), replace(config, arrivals=("recorded",))

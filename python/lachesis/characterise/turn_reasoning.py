"""How much of a turn's reasoning comes before its first tool call."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from lachesis.traces.trace import Trace


@dataclass(frozen=True)
class TurnReasoning:
    """Over the turns of several requests that reason: turns, requests, and reasoning tokens."""

    turns: int
    requests: int
    tokens: int
    first_tokens: int
    """Those of the turns' first requests."""


def turn_reasoning(trace: Trace) -> TurnReasoning:
    """Count the reasoning of turns, each agent's apart.

    Example:
        >>> from lachesis.traces import open_trace
        >>> found = turn_reasoning(open_trace("bfclv4-long-context"))
        >>> found.turns, round(found.first_tokens / found.tokens, 2)
        (734, 0.9)
    """
    names = ("session", "agent", "turn", "request", "reasoning_tokens")
    columns = (trace.requests[name].to_pylist() for name in names)
    rows = sorted(zip(*columns, strict=True), key=itemgetter(0, 1, 2, 3))
    turns = requests = tokens = first = 0
    for _, turn in groupby(rows, key=itemgetter(0, 1, 2)):
        reasoning = [row[4] or 0 for row in turn]
        if len(reasoning) > 1 and any(reasoning):
            turns += 1
            requests += len(reasoning)
            tokens += sum(reasoning)
            first += reasoning[0]
    return TurnReasoning(turns, requests, tokens, first)

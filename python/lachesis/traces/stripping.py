"""Whether a harness removes reasoning from the context, and when: seen from the log itself.

Two kinds of evidence count, for pairs of consecutive requests of one agent. Text: reasoning that
an earlier output holds is missing from the later input. Counts: the later input is smaller than
the earlier input and output together (and what is known to be new), by no more than the reasoning
that could have been removed. A provider's cache is no evidence: one that expired looks the same.

A fall can hide behind a large tool result or user text, whereas nothing but a rewind fakes one;
so a quarter of the pairs that could show it is enough.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal

import msgspec

from lachesis.traces.logged import LoggedRequest, PartKind
from lachesis.traces.schema import Status

_ENOUGH = 4  # one pair in four
# By names of their own: before Python 3.12, asking an enum for a member is slow.
_OK = Status.OK


class _Votes(msgspec.Struct):
    seen: int = 0
    pairs: int = 0

    def add(self, vote: bool | None) -> None:
        if vote is not None:
            self.pairs += 1
            self.seen += vote

    @property
    def carried(self) -> bool:
        return self.seen > 0 and self.seen * _ENOUGH >= self.pairs


def input_tokens_of(request: LoggedRequest) -> int:
    """The request's input: as reported, else the sum of its parts."""
    if request.input_tokens is not None:
        return request.input_tokens
    return sum(part.tokens for part in request.parts or ())


def recognise_stripping(
    requests: Sequence[LoggedRequest], lead: Hashable
) -> Literal["turn", "round", "off"]:
    """Which stripping the requests of one session show; ``off`` where they show none.

    `requests` in the order of the log. ``round`` wins over ``turn``, since reasoning that goes
    after every request is missing at a turn's start as well.
    """
    within, at_start = _Votes(), _Votes()
    latest: dict[Hashable, LoggedRequest] = {}
    turn: list[LoggedRequest] = []  # the lead's, since its last turn began
    for request in requests:
        agent = request.agent
        before = latest.get(agent)
        latest[agent] = request
        is_lead = agent == lead
        opens = request.opens_turn and is_lead
        if before is not None and _comparable(before, request):
            if opens:
                at_start.add(_removed(turn, request, at_turn_start=True))
            elif before.reasoning_tokens or request.parts is not None:  # else nothing shows
                within.add(_removed([before], request, at_turn_start=False))
        if is_lead:
            if opens:
                turn = []
            turn.append(request)
    if within.carried:
        return "round"
    return "turn" if at_start.carried else "off"


def _comparable(before: LoggedRequest, request: LoggedRequest) -> bool:
    return not (
        before.compacts
        or request.compacts
        or request.after_compaction
        or request.rewinds_to is not None
        or before.status is not _OK
        or (before.model and request.model and before.model != request.model)
    )


def _removed(
    earlier: Sequence[LoggedRequest], later: LoggedRequest, *, at_turn_start: bool
) -> bool | None:
    """Whether reasoning of `earlier` outputs is gone from `later`; None if the pair cannot tell."""
    if later.parts is not None and all(each.output_parts is not None for each in earlier):
        reasoning = {
            part.key
            for each in earlier
            for part in each.output_parts or ()
            if part.kind is PartKind.REASONING and part.tokens > 0
        }
        if not reasoning:
            return None
        return not any(part.key in reasoning for part in later.parts)

    before = earlier[-1]
    fall = input_tokens_of(before) + before.output_tokens - input_tokens_of(later)
    fall += later.appended_tokens or 0
    reasoning_tokens = sum([each.reasoning_tokens for each in earlier])
    if reasoning_tokens == 0:
        # Reasoning may be hidden in the output; within a turn a fall then means a rewrite.
        if not at_turn_start:
            return None
        reasoning_tokens = sum(each.output_tokens for each in earlier)
    return 0 < fall <= reasoning_tokens

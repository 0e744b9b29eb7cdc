"""Lays the sizes of single-agent sessions out as requests, spans, segments and edges.

Segments of a session are numbered as they appear: the shared prompt, the session's own prompt
(where it has one), then for each turn its laden segment and, but for the last, the stripped one.
"""

from __future__ import annotations

import numpy as np

from lachesis.traces.generator.columns import (
    BOUNDARIES,
    CLASSES,
    EDGES,
    Columns,
    Edges,
    Requests,
    Segments,
    Spans,
    code,
    join_spans,
)
from lachesis.traces.generator.draws import Ints, group_sums, index_within, offsets, sums_before
from lachesis.traces.generator.specification import Specification
from lachesis.traces.generator.temporal import TemporalSizes
from lachesis.traces.schema import Boundary, EdgeKind, SegmentClass


def lay_out(
    specification: Specification,
    sizes: TemporalSizes,
    tools: np.ndarray[tuple[int], np.dtype[np.object_]],
) -> Columns:
    """Columns of one workload; ``tools`` are the classes of all its calls, one a round but last."""
    turns, rounds = sizes.turns, sizes.rounds
    prompts = 1 + int(sizes.own_prompt.any())
    turn_session = np.repeat(np.arange(len(turns)), turns)
    turn_index = index_within(turns)
    session = np.repeat(turn_session, rounds)
    turn = np.repeat(turn_index, rounds)
    round_index = index_within(rounds)
    number = index_within(group_sums(rounds, turns))
    calls = (round_index < np.repeat(rounds, rounds) - 1).astype(np.int64)
    requests = Requests(
        session=session,
        number=number,
        turn=turn,
        agent=np.zeros_like(session),
        segment=prompts + 2 * turn,
        output_tokens=sizes.output,
        reasoning_tokens=sizes.reasoning,
        observations=(round_index > 0).astype(np.int64),
        tool_counts=calls,
        tools=tools,
    )
    return Columns(
        workload=specification.name,
        harness=specification.harness,
        sessions=len(turns),
        requests=requests,
        edges=_edges(requests, round_index),
        spans=_spans(sizes, requests, round_index, prompts),
        segments=_segments(specification, sizes, requests, prompts),
    )


def _edges(requests: Requests, round_index: Ints) -> Edges:
    later = requests.number > 0
    opens = round_index[later] == 0
    return Edges(
        session=requests.session[later],
        request=requests.number[later],
        earlier=requests.number[later] - 1,
        kind=np.where(opens, code(EDGES, EdgeKind.USER), code(EDGES, EdgeKind.TOOL)),
        drawn=np.ones(int(later.sum()), dtype=bool),
    )


def _spans(sizes: TemporalSizes, requests: Requests, round_index: Ints, prompts: int) -> Spans:
    session, number, turn = requests.session, requests.number, requests.turn
    first = number == 0
    user = np.repeat(sizes.user, sizes.rounds)
    laden_before = user + sums_before(sizes.output + sizes.observation, sizes.rounds)
    # Places: prompts, then the stripped segment of turn t at prompts + t, then the laden ones.
    laden_place = prompts + turn
    parts = [
        Spans(session, number, np.zeros_like(number), np.zeros_like(number),
              np.full_like(number, sizes.shared_prompt), first),
        _stripped_spans(sizes, requests, round_index, prompts),
        Spans(session, number, laden_place, requests.segment,
              np.where(round_index > 0, laden_before, 0), np.zeros_like(first)),
        Spans(session, number, laden_place + 1, requests.segment,
              np.where(round_index > 0, sizes.observation, user), np.ones_like(first)),
    ]  # fmt: skip
    if prompts > 1:
        own = sizes.own_prompt[session]
        ones = np.ones_like(number)
        parts.append(Spans(session, number, ones, ones, own, first))
    return join_spans(parts)


def _stripped_spans(
    sizes: TemporalSizes, requests: Requests, round_index: Ints, prompts: int
) -> Spans:
    """Each request holds what every earlier turn carried; its turn's first writes the latest."""
    turn = requests.turn
    earlier = index_within(turn)
    of = np.repeat(np.arange(len(turn)), turn)
    turn_row = offsets(sizes.turns)[requests.session[of]] + earlier
    return Spans(
        session=requests.session[of],
        request=requests.number[of],
        place=prompts + earlier,
        segment=prompts + 2 * earlier + 1,
        tokens=sizes.stripped[turn_row],
        written=(round_index[of] == 0) & (earlier == turn[of] - 1),
    )


def _segments(
    specification: Specification, sizes: TemporalSizes, requests: Requests, prompts: int
) -> Segments:
    turns = sizes.turns
    per_session = prompts + 2 * turns - 1
    session = np.repeat(np.arange(len(turns)), per_session)
    number = index_within(per_session)
    last_request = group_sums(group_sums(sizes.rounds, turns), np.ones_like(turns)) - 1
    turn_end = np.cumsum(sizes.rounds) - 1 - np.repeat(
        offsets(group_sums(sizes.rounds, turns))[:-1], turns
    )  # fmt: skip
    beyond = number - prompts
    is_prompt = beyond < 0
    is_laden = ~is_prompt & (beyond % 2 == 0)
    turn_row = offsets(turns)[session] + np.maximum(beyond, 0) // 2
    kind = np.where(
        is_prompt,
        code(CLASSES, SegmentClass.PROMPT),
        np.where(is_laden, code(CLASSES, SegmentClass.LADEN), code(CLASSES, SegmentClass.STRIPPED)),
    )
    return Segments(
        session=session,
        number=number,
        kind=kind,
        agent=np.zeros_like(session),
        closed_by=np.where(
            is_laden, code(BOUNDARIES, Boundary.TURN_END), code(BOUNDARIES, Boundary.SESSION_END)
        ),
        closed_after=np.where(is_laden, turn_end[turn_row], last_request[session]),
        prefix=np.where(number == 0, 0, -1),
        prefix_keys=(f"{specification.name}/{sizes.shared_prompt}",),
    )

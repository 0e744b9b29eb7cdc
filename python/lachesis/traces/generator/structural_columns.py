"""Lays the sizes of multi-agent sessions out as requests, spans, segments, edges and spawns.

Requests of a session run batch by batch: the lead's delegation, then each worker's rounds, each
followed by its reviewer. Agents are numbered as they are spawned, segments as they appear; the
prompts of lead, workers and reviewers are one segment each in a session. With
``reviewers=False`` the same sessions are laid out without the reviewers' requests, agents and
segments; nothing else changes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
    join_edges,
    join_spans,
)
from lachesis.traces.generator.draws import (
    Flags,
    Ints,
    group_sums,
    index_within,
    offsets,
    sums_before,
)
from lachesis.traces.generator.spawn_columns import spawn_rows
from lachesis.traces.generator.spawn_text import SpawnTexts
from lachesis.traces.generator.specification import Specification
from lachesis.traces.generator.structural import StructuralSizes
from lachesis.traces.generator.structural_layout import (
    LEAD_PROMPT,
    REVIEWER_PROMPT,
    WORKER_PROMPT,
    Layout,
    layout,
    own_segments,
)
from lachesis.traces.schema import Boundary, EdgeKind, SegmentClass, ToolClass


def lay_out(
    specification: Specification,
    sizes: StructuralSizes,
    lead_tools: NDArray[np.object_],
    worker_tools: NDArray[np.object_],
    texts: SpawnTexts,
    *,
    reviewers: bool,
) -> Columns:
    """Columns of one workload.

    ``lead_tools`` are the classes of calls of the rounds in which leads work alone, one each;
    ``worker_tools`` those of all calls of workers, in their order; ``texts`` the workers' spawn
    records.
    """
    at = layout(sizes, reviewers=reviewers)
    return Columns(
        workload=specification.name,
        harness=specification.harness,
        sessions=len(sizes.batches),
        requests=_requests(sizes, at, lead_tools, worker_tools),
        edges=_edges(sizes, at),
        spans=_spans(specification, sizes, at),
        segments=_segments(specification, sizes, at),
        spawns=spawn_rows(sizes, at, texts),
    )


def _taken(sizes: StructuralSizes, at: Layout) -> Ints:
    """How many workers' results each lead request takes."""
    taken = np.zeros(len(at.lead_round), dtype=np.int64)
    stage = at.lead_round - sizes.own_rounds[at.lead_session] - 1
    takes = stage >= 0
    taken[takes] = sizes.workers[offsets(sizes.batches)[at.lead_session[takes]] + stage[takes]]
    return taken


def _requests(
    sizes: StructuralSizes,
    at: Layout,
    lead_tools: NDArray[np.object_],
    worker_tools: NDArray[np.object_],
) -> Requests:
    round_worker = np.repeat(np.arange(len(sizes.rounds)), sizes.rounds)
    reviewed = len(at.review_request)
    own = at.lead_round < sizes.own_rounds[at.lead_session]
    taken = _taken(sizes, at)
    # The lead calls one tool where it works alone, and spawns what its next request takes.
    spawned = np.concatenate((taken[1:], [0])) * (
        at.lead_round < sizes.lead_rounds[at.lead_session] - 1
    )
    lead_calls = np.where(own, 1, spawned)
    previous_own = np.concatenate(([False], own[:-1])) & (at.lead_round > 0)
    lead_observations = np.where(previous_own, 1, taken)
    counts = np.concatenate((lead_calls, sizes.calls, np.zeros(reviewed, dtype=np.int64)))
    lead_words = np.full(int(lead_calls.sum()), str(ToolClass.SPAWN), dtype=object)
    lead_words[np.repeat(own, lead_calls)] = lead_tools
    words = np.concatenate((lead_words, worker_tools))
    order = at.order
    starts = offsets(counts)[:-1][order]
    word_rows = np.repeat(starts, counts[order]) + index_within(counts[order])

    def column(lead: Ints, worker: Ints, review: Ints) -> Ints:
        return np.concatenate((lead, worker, review[:reviewed]))[order]

    worker_segment, review_segment = own_segments(at)
    zeros = np.zeros(len(order), dtype=np.int64)
    none = np.zeros(reviewed, dtype=np.int64)
    return Requests(
        session=column(at.lead_session, at.worker_session[round_worker], at.worker_session),
        number=column(at.lead_request, at.round_request, at.review_request),
        turn=zeros,
        agent=column(
            np.zeros_like(at.lead_round), at.worker_agent[round_worker], at.worker_agent + 1
        ),
        segment=column(np.ones_like(at.lead_round), worker_segment[round_worker], review_segment),
        output_tokens=column(sizes.lead_output, sizes.output, sizes.review_output),
        reasoning_tokens=zeros,
        observations=column(lead_observations, sizes.observations, none),
        tool_counts=counts[order],
        tools=words[word_rows],
    )


def _edges(sizes: StructuralSizes, at: Layout) -> Edges:
    tool, spawn, back = (
        code(EDGES, kind) for kind in (EdgeKind.TOOL, EdgeKind.SPAWN, EdgeKind.RETURN)
    )
    later = np.flatnonzero(at.lead_round > 0)
    own_before = at.lead_round[later] - 1 < sizes.own_rounds[at.lead_session[later]]
    round_worker = np.repeat(np.arange(len(sizes.rounds)), sizes.rounds)
    next_round = np.flatnonzero(index_within(sizes.rounds) > 0)
    session = at.worker_session
    parts = [
        # The wait of a delegation is the sub-agents' own run, so its edge has no delay.
        _edge(at.lead_session[later], at.lead_request[later], at.lead_request[later - 1],
              tool, own_before),
        _edge(session[round_worker[next_round]], at.round_request[next_round],
              at.round_request[next_round - 1], tool, True),
        _edge(session, at.worker_first, at.delegation, spawn, False),
        _edge(session, at.taking, at.worker_last, back, False),
    ]  # fmt: skip
    if len(at.review_request):
        parts += [
            _edge(session, at.review_request, at.delegation, spawn, False),
            _edge(session, at.review_request, at.worker_last, back, False),
            _edge(session, at.taking, at.review_request, back, False),
        ]
    return join_edges(parts)


def _edge(session: Ints, request: Ints, earlier: Ints, kind: int, drawn: Flags | bool) -> Edges:
    count = len(request)
    return Edges(
        session, request, earlier, np.full(count, kind), np.broadcast_to(np.asarray(drawn), count)
    )


def _spans(specification: Specification, sizes: StructuralSizes, at: Layout) -> Spans:
    law = specification.structural
    assert law is not None, "Invariant: structural sizes come from a structural specification"
    round_worker = np.repeat(np.arange(len(sizes.rounds)), sizes.rounds)
    worker_segment, review_segment = own_segments(at)
    opening = sizes.instruction + sizes.context
    parts = _prompt_spans(
        at.lead_session, at.lead_request, LEAD_PROMPT, law.lead.prompt_tokens.value,
        at.lead_round == 0,
    ) + _context_spans(
        at.lead_session, at.lead_request, at.lead_round, np.ones_like(at.lead_round),
        sizes.task[at.lead_session], sizes.lead_output, sizes.lead_observation, sizes.lead_rounds,
    ) + _prompt_spans(
        at.worker_session[round_worker], at.round_request, WORKER_PROMPT,
        law.worker.prompt_tokens.value,
        (at.worker_index[round_worker] == 0) & (index_within(sizes.rounds) == 0),
    ) + _context_spans(
        at.worker_session[round_worker], at.round_request, index_within(sizes.rounds),
        worker_segment[round_worker], opening[round_worker],
        sizes.output, sizes.observation, sizes.rounds,
    )  # fmt: skip
    if len(at.review_request):
        ones = np.ones(len(at.review_request), dtype=np.int64)
        parts += _prompt_spans(
            at.worker_session, at.review_request, REVIEWER_PROMPT,
            law.reviewer.prompt_tokens.value, at.worker_index == 0,
        ) + _context_spans(
            at.worker_session, at.review_request, 0 * ones, review_segment,
            sizes.review_input, sizes.review_output, 0 * ones, ones,
        )  # fmt: skip
    return join_spans(parts)


def _prompt_spans(
    session: Ints, request: Ints, segment: int, tokens: int, written: Flags
) -> list[Spans]:
    """Every request begins with its agent's prompt; the session's first use of it writes it."""
    zeros = np.zeros_like(request)
    return [Spans(session, request, zeros, zeros + segment, zeros + tokens, written)]


def _context_spans(
    session: Ints,
    request: Ints,
    step: Ints,
    segment: Ints,
    opening: Ints,
    output: Ints,
    observation: Ints,
    rounds: Ints,
) -> list[Spans]:
    """Spans of agents that keep one growing context behind their prompt."""
    first = step == 0
    ones = np.ones_like(step)
    before = opening + sums_before(output + observation, rounds)
    new = np.where(first, opening, observation)
    return [
        Spans(session, request, ones, segment, np.where(first, 0, before), ones == 0),
        Spans(session, request, 2 * ones, segment, new, ones == 1),
    ]


def _segments(specification: Specification, sizes: StructuralSizes, at: Layout) -> Segments:
    law = specification.structural
    assert law is not None, "Invariant: structural sizes come from a structural specification"
    workers = sizes.workers_of_session
    sessions = np.arange(len(workers))
    each = np.ones_like(sessions)
    last = group_sums(sizes.rounds, workers) + sizes.lead_rounds - 1
    last = last + (at.agents_per_worker - 1) * workers
    worker_segment, review_segment = own_segments(at)
    prompt, ended, returned = (
        code(CLASSES, SegmentClass.PROMPT),
        code(BOUNDARIES, Boundary.SESSION_END),
        code(BOUNDARIES, Boundary.SUBAGENT_RETURN),
    )
    # session, number, class, agent, closed by, closed after, prefix key
    rows = [
        (sessions, LEAD_PROMPT * each, prompt, 0 * each, ended, last, 0),
        (sessions, each, code(CLASSES, SegmentClass.LEAD), 0 * each, ended, last, -1),
        (sessions, WORKER_PROMPT * each, prompt, each, ended, last, 1),
        (at.worker_session, worker_segment, code(CLASSES, SegmentClass.WORKER), at.worker_agent,
         returned, at.worker_last, -1),
    ]  # fmt: skip
    if len(at.review_request):
        rows += [
            (sessions, REVIEWER_PROMPT * each, prompt, 2 * each, ended, last, 2),
            (at.worker_session, review_segment, code(CLASSES, SegmentClass.REVIEWER),
             at.worker_agent + 1, returned, at.review_request, -1),
        ]  # fmt: skip
    joined = [
        np.concatenate([np.broadcast_to(row[column], len(row[0])) for row in rows])
        for column in range(7)
    ]
    order = np.lexsort((joined[1], joined[0]))
    session, number, kind, agent, closed_by, closed_after, prefix = (
        column[order] for column in joined
    )
    tokens = (law.lead.prompt_tokens, law.worker.prompt_tokens, law.reviewer.prompt_tokens)
    return Segments(
        session=session,
        number=number,
        kind=kind,
        agent=agent,
        closed_by=closed_by,
        closed_after=closed_after,
        prefix=prefix,
        prefix_keys=tuple(
            f"{specification.name}/{word}/{each_prompt.value}"
            for word, each_prompt in zip(("lead", "worker", "reviewer"), tokens, strict=True)
        ),
    )

"""Where everything of a multi-agent session stands: numbers of requests, agents and segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from lachesis.traces.generator.draws import Ints, index_within, offsets
from lachesis.traces.generator.structural import StructuralSizes

# Segment numbers that every session has; the lead's own is 1.
LEAD_PROMPT: Final = 0
WORKER_PROMPT: Final = 2
REVIEWER_PROMPT: Final = 4


@dataclass(frozen=True)
class Layout:
    """Rows are those of the sizes: lead rounds, workers, workers' rounds."""

    lead_session: Ints
    lead_round: Ints
    """Session and round of each lead request."""
    worker_session: Ints
    """Session of each worker."""
    worker_index: Ints
    """Position of each worker among its session's workers."""
    delegation: Ints
    """Number of the request that spawned each worker."""
    taking: Ints
    """Number of the lead request that takes each worker's result."""
    lead_request: Ints
    round_request: Ints
    """Numbers of the lead's and of the workers' requests."""
    worker_first: Ints
    worker_last: Ints
    """Numbers of each worker's first and last request."""
    review_request: Ints
    """Number of each worker's reviewer's request (empty without reviewers)."""
    order: Ints
    """Rows in request order: lead requests, then worker rounds, then reviews."""
    agents_per_worker: int

    @property
    def worker_agent(self) -> Ints:
        """Agent number of each worker; its reviewer's is the next."""
        return 1 + self.agents_per_worker * self.worker_index


def layout(sizes: StructuralSizes, *, reviewers: bool) -> Layout:
    """Number requests and agents."""
    lead_rounds = sizes.lead_rounds
    lead_session = np.repeat(np.arange(len(lead_rounds)), lead_rounds)
    lead_round = index_within(lead_rounds)
    # A lead request's stage: -1 while it works alone, then one a batch, then the answer.
    lead_stage = np.maximum(lead_round - sizes.own_rounds[lead_session], -1)
    batch_session = np.repeat(np.arange(len(lead_rounds)), sizes.batches)
    batch_of = np.repeat(np.arange(len(sizes.workers)), sizes.workers)
    worker_session = batch_session[batch_of]
    worker_stage = index_within(sizes.batches)[batch_of]
    worker_index = index_within(sizes.workers_of_session)
    round_worker = np.repeat(np.arange(len(sizes.rounds)), sizes.rounds)
    round_index = index_within(sizes.rounds)
    count = len(worker_session) if reviewers else 0

    session = np.concatenate((lead_session, worker_session[round_worker], worker_session[:count]))
    stage = np.concatenate((lead_stage, worker_stage[round_worker], worker_stage[:count]))
    place = np.concatenate(
        (np.full(len(lead_round), -1), worker_index[round_worker], worker_index[:count])
    )
    # A reviewer's one request comes after any round of its worker.
    step = np.concatenate((lead_round, round_index, np.full(count, np.iinfo(np.int64).max)))
    order = np.lexsort((step, place, stage, session))
    number = np.empty(len(order), dtype=np.int64)
    number[order] = index_within(np.bincount(session, minlength=len(lead_rounds)))

    lead_request = number[: len(lead_round)]
    round_request = number[len(lead_round) : len(lead_round) + len(round_index)]
    delegating = offsets(lead_rounds)[worker_session] + sizes.own_rounds[worker_session]
    delegating = delegating + worker_stage
    return Layout(
        lead_session=lead_session,
        lead_round=lead_round,
        worker_session=worker_session,
        worker_index=worker_index,
        delegation=lead_request[delegating],
        taking=lead_request[delegating + 1],
        lead_request=lead_request,
        round_request=round_request,
        worker_first=round_request[offsets(sizes.rounds)[:-1]],
        worker_last=round_request[offsets(sizes.rounds)[1:] - 1],
        review_request=number[len(lead_round) + len(round_index) :],
        order=order,
        agents_per_worker=2 if reviewers else 1,
    )


def own_segments(at: Layout) -> tuple[Ints, Ints]:
    """Segment numbers of each worker and of its reviewer.

    The lead has 0 (its prompt) and 1, the first worker 3 after the workers' prompt, the first
    reviewer 5 after theirs; from then on they alternate without a new prompt.
    """
    index = at.worker_index
    if at.agents_per_worker == 1:
        return WORKER_PROMPT + 1 + index, np.zeros_like(index)
    return np.where(index == 0, WORKER_PROMPT + 1, REVIEWER_PROMPT + 2 * index), (
        REVIEWER_PROMPT + 1 + 2 * index
    )

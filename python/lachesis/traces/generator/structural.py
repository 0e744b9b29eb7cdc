"""Sessions of a lead that delegates to workers, each followed by a reviewer of its trace.

The lead's rounds are: those in which it works alone, one delegation a batch of workers, and a last
one that answers. A worker runs its rounds in a context of its own; the reviewer is one request that
is given a share of the finished trace. Requests are met exactly: what the lead and the reviewers
leave of Table 3's requests are the workers' rounds. So are tokens written:

    tokens written = three prompts + lead's writes + sum over workers (trace + review)
    review         = share x trace + its output
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lachesis.errors import InputError
from lachesis.traces.generator.draws import (
    Floats,
    Ints,
    apportion,
    group_sums,
    index_within,
    normals,
    permutation,
    place,
    strata,
    stream,
    whole_numbers,
)
from lachesis.traces.generator.specification import Specification, Structural

_Stream = Callable[[str], np.random.Generator]

_OUTPUT_MINIMUM = 16
_OBSERVATION_MINIMUM = 8
_TASK_MINIMUM = 16
_RESULT_MINIMUM = 16


@dataclass(frozen=True)
class StructuralSizes:
    """Sizes of one workload (batches by session, workers by batch, rounds by worker)."""

    own_rounds: Ints
    """Rounds of each session in which the lead works alone, before it delegates."""
    batches: Ints
    """Delegations of each session."""
    workers: Ints
    """Workers of each batch."""
    rounds: Ints
    """Rounds of each worker."""
    instruction: Ints
    context: Ints
    """Tokens of each worker's spawn record."""
    output: Ints
    """Output tokens of each worker's round."""
    observation: Ints
    """Tokens of the observations in each worker's round (0 in a first round)."""
    calls: Ints
    """Tool calls that each worker's round makes (0 in a last round)."""
    review_input: Ints
    review_output: Ints
    """Tokens of each worker's reviewer."""
    task: Ints
    """Tokens of each session's task."""
    lead_output: Ints
    """Output tokens of each lead round."""
    lead_observation: Ints
    """Tokens of the observations in each lead round (0 in a session's first)."""

    @property
    def workers_of_session(self) -> Ints:
        """Workers of each session."""
        return group_sums(self.workers, self.batches)

    @property
    def lead_rounds(self) -> Ints:
        """Rounds of each session's lead: alone, delegations, and the answer."""
        return self.own_rounds + self.batches + 1

    @property
    def trace(self) -> Ints:
        """Tokens each worker writes: spawn record, outputs, observations."""
        return self.instruction + self.context + group_sums(
            self.output + self.observation, self.rounds
        )  # fmt: skip

    @property
    def observations(self) -> Ints:
        """Tool results in the input of each worker's round: the calls of the round before."""
        first = index_within(self.rounds) == 0
        return np.where(first, 0, np.concatenate(([0], self.calls[:-1])))


def draw(specification: Specification, seed: int, scale: float) -> StructuralSizes:
    """Draw the sizes of every session; raises ``InputError`` if the specification cannot be met."""
    law = specification.structural
    if law is None:
        raise InputError("must have [structural]", path=specification.name)
    counts = specification.counts
    sessions = max(1, round(counts.sessions.value * scale))
    requests = max(1, round(counts.requests.value * scale))
    written = max(1, round(counts.tokens_written.value * scale))

    def rng(purpose: str) -> np.random.Generator:
        return stream(seed, specification.name, purpose)

    workers_of_session = _workers_of_session(law, sessions, rng("workers"))
    workers = _batched(workers_of_session, law.worker.concurrent.value, rng("batches"))
    batches = np.bincount(
        np.repeat(np.arange(sessions), workers_of_session)[np.cumsum(workers) - 1],
        minlength=sessions,
    ).astype(np.int64)
    own_rounds = _own_rounds(law, sessions, rng("own rounds"))
    lead_rounds = own_rounds + batches + 1
    count = int(workers.sum())
    session_effect = np.repeat(normals(rng("difficulty"), sessions), workers_of_session)
    rounds = _worker_rounds(
        law, session_effect, requests - int(lead_rounds.sum()) - count, rng("rounds")
    )

    prompts = law.lead.prompt_tokens.value + law.worker.prompt_tokens.value
    prompts += law.reviewer.prompt_tokens.value
    instruction = _spread(law.worker.instruction_tokens.values(count), rng("instruction"))
    context = _spread(law.worker.context_tokens.values(count), rng("context"))
    review_output = _spread(law.reviewer.output_tokens.values(count), rng("review"))
    lead_total = round(law.lead.share_of_writes.value * written)
    trace_total = _trace_total(law, written - prompts - lead_total - int(review_output.sum()))
    output, observation, calls = _worker_tokens(
        law, rounds, trace_total - int((instruction + context).sum()), rng
    )
    trace = instruction + context + group_sums(output + observation, rounds)
    review_total = written - prompts - lead_total - int(review_output.sum()) - trace_total
    weights = np.exp(law.reviewer.trace_share_sigma.value * normals(rng("share"), count))
    weights = trace.astype(np.float64) * weights
    review_input = apportion(np.array([review_total]), weights, np.array([count]), minimum=1)
    task, lead_output, lead_observation = _lead_tokens(law, lead_rounds, lead_total, rng)
    return StructuralSizes(
        own_rounds, batches, workers, rounds, instruction, context, output, observation, calls,
        review_input, review_output, task, lead_output, lead_observation,
    )  # fmt: skip


def _workers_of_session(law: Structural, sessions: int, rng: np.random.Generator) -> Ints:
    scores = law.worker.per_session_sigma.value * strata(sessions)
    maximum = law.worker.per_session_maximum.value
    total = min(round(law.worker.per_session.value * sessions), maximum * sessions)
    ascending = whole_numbers(lambda s: np.exp(s + scores), max(total, sessions), 1, maximum)
    return ascending[permutation(rng, sessions)]


def _batched(workers_of_session: Ints, concurrent: list[float], rng: np.random.Generator) -> Ints:
    """Workers of each batch, batches by session: cut each session's row of workers in groups."""
    thresholds = np.cumsum(concurrent) / np.sum(concurrent)
    batches: list[int] = []
    for workers in workers_of_session.tolist():
        left = workers
        while left:
            wanted = 1 + int(np.searchsorted(thresholds, rng.random(), side="right"))
            taken = min(wanted, left)
            batches.append(taken)
            left -= taken
    return np.array(batches, dtype=np.int64)


def _own_rounds(law: Structural, sessions: int, rng: np.random.Generator) -> Ints:
    total = round(law.lead.own_rounds.value * sessions)
    weights = np.exp(0.5 * normals(rng, sessions))
    return apportion(np.array([total]), weights, np.array([sessions]))


def _worker_rounds(
    law: Structural, session_effect: Floats, total: int, rng: np.random.Generator
) -> Ints:
    count = len(session_effect)
    explained = law.worker.session_correlation.value
    score = np.sqrt(explained) * session_effect + np.sqrt(1.0 - explained) * normals(rng, count)
    shape = law.worker.rounds_sigma.value * place(strata(count), score)
    return whole_numbers(lambda s: np.exp(s + shape), total, 1, law.worker.rounds_maximum.value)


def _spread(ascending: Floats, rng: np.random.Generator) -> Ints:
    values = np.maximum(np.rint(ascending), 1).astype(np.int64)
    return values[permutation(rng, len(values))]


def _trace_total(law: Structural, traces_and_reviews: int) -> int:
    """Tokens of all worker traces, when reviewers are given ``trace_share`` of them on top."""
    return round(traces_and_reviews / (1.0 + law.reviewer.trace_share.value))


def _worker_tokens(
    law: Structural, rounds: Ints, total: int, rng: _Stream
) -> tuple[Ints, Ints, Ints]:
    """Outputs, observations and tool calls of every worker round."""
    worker = law.worker
    count, round_count = len(rounds), int(rounds.sum())
    length = np.array([round_count])
    last = index_within(rounds) == np.repeat(rounds, rounds) - 1
    first = index_within(rounds) == 0

    def rate(purpose: str, sigma: float, trend: float = 0.0) -> Floats:
        of_worker = sigma * normals(rng(f"{purpose} of worker"), count)
        of_worker = of_worker + trend * (np.log(rounds) - np.log(rounds).mean())
        of_round = worker.round_sigma.value * normals(rng(purpose), round_count)
        return np.exp(np.repeat(of_worker, rounds) + of_round)

    output_total = round(worker.output_share.value * total)
    output = apportion(
        np.array([output_total]), rate("output", worker.output_sigma.value), length,
        minimum=_OUTPUT_MINIMUM,
    )  # fmt: skip
    calls = np.where(last, 0, 1 + (rng("calls").random(round_count) < worker.parallel_calls.value))
    weights = rate("observation", worker.observation_sigma.value, worker.observation_trend.value)
    observation = np.zeros(round_count, dtype=np.int64)
    observed = np.array([total - output_total])
    later = np.flatnonzero(~first)
    # An observation answers the calls of the round before.
    weights = weights[later] * calls[later - 1]
    observation[later] = apportion(
        observed, weights, np.array([len(later)]), minimum=_OBSERVATION_MINIMUM
    )
    return output, observation, calls.astype(np.int64)


def _lead_tokens(
    law: Structural, lead_rounds: Ints, total: int, rng: _Stream
) -> tuple[Ints, Ints, Ints]:
    """Task of every session, output and observations of every lead round."""
    lead = law.lead
    sessions, round_count = len(lead_rounds), int(lead_rounds.sum())
    of_session = np.repeat(lead.session_sigma.value * normals(rng("lead"), sessions), lead_rounds)
    output_total = round(lead.output_share.value * total)
    task_total = round(lead.task_share.value * (total - output_total))
    task = apportion(
        np.array([task_total]), np.exp(0.4 * normals(rng("task"), sessions)),
        np.array([sessions]), minimum=_TASK_MINIMUM,
    )  # fmt: skip
    weights = np.exp(of_session + 0.3 * normals(rng("lead output"), round_count))
    output = apportion(
        np.array([output_total]), weights, np.array([round_count]), minimum=_OUTPUT_MINIMUM
    )
    later = index_within(lead_rounds) > 0
    observation = np.zeros(round_count, dtype=np.int64)
    weights = np.exp(of_session + 0.4 * normals(rng("results"), round_count))
    observation[later] = apportion(
        np.array([total - output_total - task_total]), weights[later],
        np.array([int(later.sum())]), minimum=_RESULT_MINIMUM,
    )  # fmt: skip
    return task, output, observation

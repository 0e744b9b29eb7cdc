"""Scores that a policy in Python gives to workers at their spawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lachesis.policy import Policy
from lachesis.policy.python_policy import PythonPolicy, asked_to_score, construct
from lachesis.presets import LatencyPreset
from lachesis.traces.trace import Trace

if TYPE_CHECKING:
    from lachesis.predict import SpawnRecords


@dataclass
class _Spawn:
    instruction: str | None
    context: str | None
    tools: Sequence[str]
    instruction_tokens: int | None
    context_tokens: int | None
    position: int | None


def spawn_scores(policy: Policy, trace: Trace, latency: LatencyPreset) -> NDArray[np.float64]:
    """One score a row of the trace's `segments` table; NaN where the policy gives none.

    All workers are scored before the run, in an order that follows the content of their sessions:
    the engine then opens segments without reading a text.

    Args:
        policy: one in Python; a new object of it is asked once a worker segment.
        trace: the workers' spawn records.
        latency: of the reference clock, for the order.

    Raises:
        PolicyError: the policy raised an error.
    """
    scores = np.full(trace.segments.num_rows, np.nan)
    if policy.python is None or policy.python.spawn is PythonPolicy.spawn:
        return scores
    # Only a policy that reads spawn records needs the reference clock.
    from lachesis.predict import worker_table

    scorer = construct(policy.python, policy.name)
    table = worker_table(trace, latency=latency)
    for row, record in zip(table.segment_row.tolist(), _records(table.records), strict=True):
        score = asked_to_score(scorer, record)
        scores[row] = np.nan if score is None else score
    return scores


def _records(columns: SpawnRecords) -> list[_Spawn]:
    return [
        _Spawn(
            columns.instruction[row],
            columns.context[row],
            list(columns.tools[row]),
            columns.instruction_tokens[row],
            columns.context_tokens[row],
            columns.position[row],
        )
        for row in range(len(columns))
    ]

"""Spawn records of multi-agent sessions, in the order of their agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import numpy as np

from lachesis.traces.generator.columns import Spawns
from lachesis.traces.generator.draws import Ints
from lachesis.traces.generator.spawn_text import SpawnTexts
from lachesis.traces.generator.structural import StructuralSizes
from lachesis.traces.generator.structural_layout import Layout
from lachesis.traces.schema import Role

T = TypeVar("T")

REVIEW_INSTRUCTION: Final = "Judge from the trace whether the result does what was asked."


def spawn_rows(sizes: StructuralSizes, at: Layout, texts: SpawnTexts) -> Spawns:
    """Records of workers and reviewers; the reviewers' say no more than what they are for."""
    count, reviewed = len(at.worker_session), len(at.review_request)
    session = np.concatenate((at.worker_session, at.worker_session[:reviewed]))
    agent = np.concatenate((at.worker_agent, (at.worker_agent + 1)[:reviewed]))
    order = np.lexsort((agent, session))

    def pick(worker: Sequence[T], review: Sequence[T]) -> list[T]:
        joined = [*worker, *review]
        return [joined[row] for row in order.tolist()]

    def twice(values: Ints) -> Ints:
        return np.concatenate((values, values[:reviewed]))[order]

    absent: list[None] = [None] * reviewed
    return Spawns(
        session=session[order],
        agent=agent[order],
        roles=pick([str(Role.WORKER)] * count, [str(Role.REVIEWER)] * reviewed),
        spawned_by=twice(at.delegation),
        return_request=twice(at.taking),
        instructions=pick(texts.instructions, [REVIEW_INSTRUCTION] * reviewed),
        contexts=pick(texts.contexts, absent),
        instruction_tokens=pick(sizes.instruction.tolist(), absent),
        context_tokens=pick(sizes.context.tolist(), sizes.review_input[:reviewed].tolist()),
        tools=pick(texts.tools, [[]] * reviewed),
        position=agent[order] - 1,
    )

"""The layer between harness and engine: where each segment's KV goes, and when it comes back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from lachesis._engine import Placement as _Core
from lachesis.errors import InputError
from lachesis.placement.engine_calls import EngineCalls
from lachesis.placement.engine_lists import EngineLists
from lachesis.placement.errors import errors_of_the_core
from lachesis.placement.protocols import Engine, Name, Tier
from lachesis.placement.records import Released, Score, SpawnRecord
from lachesis.placement.scoring import Predictor, Scorer
from lachesis.policy import Policy, choose_policy, policy_names
from lachesis.policy.python_policy import PythonPolicy, Spawn, asked_to_score, load
from lachesis.predict import TrainedPredictor

#: Policies that need what a live engine has not, and what to do instead.
_NOT_LIVE = {
    "lachesis-oracle": "ranks by true lifetimes, which nobody knows at a spawn: use lachesis",
    "read-write-ratio": "needs a threshold: give what lachesis.policy.ratio.fix_threshold returns",
}


def _policy_of(name: str) -> Policy | PythonPolicy:
    base, mark, _ = name.partition(":")
    if base in _NOT_LIVE:
        raise InputError(_NOT_LIVE[base], field="policy", value=name)
    # What follows a built-in policy's name are its options; what follows a module's, a class.
    return load(name) if mark and base not in policy_names() else choose_policy(name)


class Placement(EngineCalls):
    """Places KV blocks by the lifetime of what they hold.

    The engine owns its free lists. Either it draws blocks itself and tells (`plan`, `commit`,
    `adopt`), or it is given as `engine` and drawn from (`extend`). The harness tells of segments,
    spawns and context boundaries. Names of segments, sessions, requests and events are ints or
    strings. A call that raises has changed nothing; all may be made from any thread.

    Args:
        hbm_blocks: KV blocks of HBM; their ids are 0 to ``hbm_blocks - 1``.
        hbf_blocks: KV blocks of HBF, whose ids follow.
        policy: a policy's name (``lachesis presets``), ``module:Class``, a `lachesis.policy.Policy`
            or a `PythonPolicy`.
        predictor: what scores spawn records: one of `lachesis.predict`, or any object with
            ``score(record) -> float``, where lower lives shorter; with ``learn(record,
            lifetime_s)`` it hears of workers that returned. Without one, workers have no score
            and ``lachesis`` ranks them last.
        block_tokens: tokens of a block, for `blocks_for`.
        turn_end_strips: whether the harness drops reasoning at a turn's end. Where it does not, no
            turn end closes anything, and a turn's context is placed as the lead's.
        keeps_prompts: whether prompts that no session holds stay until they are reclaimed; else
            they are freed with their last holder, and the engine may cache them as it likes.
        reap_after_s: a segment that nothing was heard of for so long has lost its boundary, and
            `reap` closes it; None: never.
        engine: free lists to draw from in `extend` and to give back to.
        clock: seconds since any instant, never falling.

    Raises:
        InputError: an argument breaks a rule.
        PolicyError: a policy in Python cannot be loaded.

    Example:
        >>> placement = Placement(4, 8, policy="lachesis-deterministic")
        >>> _ = placement.open("worker-1", "worker", session="s")
        >>> placement.plan("worker-1", 2)
        ['hbm', 'hbm']
        >>> placement.commit("worker-1", [0, 1])
        >>> placement.boundary("subagent_return", session="s", segment="worker-1").freed
        [0, 1]
    """

    def __init__(
        self,
        hbm_blocks: int,
        hbf_blocks: int,
        *,
        policy: str | Policy | PythonPolicy = "lachesis",
        predictor: Predictor | TrainedPredictor | None = None,
        block_tokens: int = 16,
        turn_end_strips: bool = True,
        keeps_prompts: bool = False,
        reap_after_s: float | None = None,
        engine: Engine | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if block_tokens < 1:
            raise InputError("must be at least 1", field="block_tokens", value=block_tokens)
        if isinstance(policy, str):
            policy = _policy_of(policy)
        self._python_policy = policy if isinstance(policy, PythonPolicy) else None
        self.block_tokens = block_tokens
        self._scorer = Scorer(predictor)
        self._clock = clock
        self._needs_time = reap_after_s is not None
        with errors_of_the_core():
            self._core = _Core(
                hbm_blocks,
                hbf_blocks,
                policy=policy.engine(),
                turn_end_strips=turn_end_strips,
                keeps_prompts=keeps_prompts,
                reap_after_s=reap_after_s,
            )
        self._lists = EngineLists(self._core, engine)

    def open(
        self,
        segment: Name,
        kind: str,
        *,
        session: Name,
        closes: str | None = None,
        parent: Name | None = None,
        event: Name | None = None,
    ) -> int:
        """Enter a segment at its first write; the policy names its tier.

        A closed segment may be opened again, and starts without blocks; one whose close waits for
        a request stays open instead, with its blocks.

        Args:
            segment: its name.
            kind: its class: ``prompt``, ``reasoning-laden``, ``reasoning-stripped``, ``lead``,
                ``worker``, ``reviewer``, ``summary``.
            session: its session, which begins with its first segment.
            closes: the boundary that closes it, if another than its class's.
            parent: segment of the agent that spawned it.
            event: name of this event; should it come again, it does nothing.

        Returns:
            The generation, which tells this opening of the segment from others.

        Raises:
            DuplicateSegment, UnknownSegment, WrongSession, InputError, PolicyError.

        Example:
            >>> placement = Placement(4, 8)
            >>> placement.open("turn-1", "reasoning-laden", session="s")
            1
        """
        with errors_of_the_core():
            return self._core.open(
                segment,
                kind,
                session,
                closes=closes,
                parent=parent,
                event=event,
                now_s=self._now_s(),
            )[0]

    def spawn(
        self,
        segment: Name,
        record: SpawnRecord | Mapping[str, Any],
        *,
        session: Name,
        parent: Name | None = None,
        closes: str | None = None,
        event: Name | None = None,
    ) -> Score:
        """Enter the segment of a sub-agent, scored from its spawn record.

        Args:
            segment: its name.
            record: what the harness knows of it, or a mapping with the fields of `SpawnRecord`.
            session: as in `open`, and so are the others.
            parent: segment of its spawner.
            closes: the boundary that closes it.
            event: name of this event.

        Raises:
            DuplicateSegment, UnknownSegment, WrongSession, InputError, PolicyError.

        Example:
            >>> placement = Placement(4, 8)
            >>> record = {"instruction": "Review the change.", "role": "reviewer"}
            >>> placement.spawn("review-1", record, session="s").tier
            'hbm'
        """
        known = SpawnRecord.of(record)
        if known.position is None:
            with errors_of_the_core():
                known = replace(known, position=self._core.spawns(session))
        score = self._score(known) if known.role == "worker" else None
        now_s = self._clock() if self._scorer.learns else self._now_s()
        with errors_of_the_core():
            generation, tier, position = self._core.open(
                segment,
                known.role,
                session,
                closes=closes,
                parent=parent,
                score=score,
                is_spawn=True,
                event=event,
                now_s=now_s,
            )
        if self._scorer.learns and known.role == "worker":
            self._scorer.spawned(segment, known, now_s or 0.0)
        return Score(score, cast(Tier, tier), position, generation)

    def boundary(
        self,
        kind: str,
        *,
        session: Name,
        segment: Name | None = None,
        generation: int | None = None,
        event: Name | None = None,
    ) -> Released:
        """Take a context boundary: free what the segments that it closes hold alone.

        Without `segment` it speaks of the lead's context, and at ``session_end`` of everything. A
        segment on which requests run closes with the last of them. A boundary of what has ended
        already, or of an earlier `generation`, is ignored and counted.

        Args:
            kind: ``turn_end``, ``subagent_return``, ``session_end``, ``compaction``,
                ``request_end``, ``reset``.
            session: where it happened.
            segment: what it closes.
            generation: the opening that is meant; None: the present one.
            event: as in `open`.

        Raises:
            UnknownSegment, UnknownSession, WrongSession, WrongBoundary, InputError, PolicyError.
        """
        with self._lists.one_at_a_time():
            return self._released(
                self._core.boundary(
                    kind,
                    session,
                    segment=segment,
                    generation=generation,
                    event=event,
                    now_s=self._now_s(),
                )
            )

    def _score(self, record: SpawnRecord) -> float | None:
        if self._python_policy is not None:
            score = asked_to_score(self._python_policy, cast(Spawn, record))
            if score is not None or not self._python_policy.needs_scores:
                return score
        return self._scorer.score(record)

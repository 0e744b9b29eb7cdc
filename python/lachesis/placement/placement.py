"""The layer between harness and engine: where each segment's KV goes, and when it comes back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from lachesis._engine import EngineError
from lachesis._engine import Placement as _Core
from lachesis.errors import InputError
from lachesis.placement.engine_lists import EngineLists
from lachesis.placement.errors import errors_of_the_core, reraise
from lachesis.placement.protocols import Engine, Name, Tier
from lachesis.placement.records import Released, Score, SpawnRecord
from lachesis.placement.scoring import Predictor, Scorer
from lachesis.placement.views import Views
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


class Placement(Views):
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

    # What the harness tells.

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

    # What the engine asks and tells.

    def start_request(self, request: Name, segments: Sequence[Name]) -> None:
        """Tell that a request runs on segments: none of them ends under it.

        Name all that it reads or writes: the carried history and the new turn.

        Raises:
            UnknownSegment, SegmentClosed, DuplicateRequest, TooManyRequests.
        """
        with errors_of_the_core():
            self._core.start_request(request, list(segments), now_s=self._now_s())

    def finish_request(self, request: Name) -> Released:
        """Tell that a request has ended; closes that waited for it take place.

        Raises:
            UnknownRequest, PolicyError.

        Example:
            >>> placement = Placement(4, 8)
            >>> _ = placement.open("turn", "reasoning-laden", session="s")
            >>> placement.start_request("r", ["turn"])
            >>> placement.commit("turn", [0])
            >>> placement.boundary("turn_end", session="s").deferred
            [0]
            >>> placement.finish_request("r").freed
            [0]
        """
        with self._lists.one_at_a_time():
            return self._released(self._core.finish_request(request, now_s=self._now_s()))

    def abort(self, request: Name) -> Released:
        """Tell that a request was given up. What it wrote stays with its segments.

        Raises:
            UnknownRequest, PolicyError.
        """
        with self._lists.one_at_a_time():
            return self._released(
                self._core.finish_request(request, aborted=True, now_s=self._now_s())
            )

    def plan(self, segment: Name, blocks: int, *, generation: int | None = None) -> list[str]:
        """Say in which tiers the next blocks of a segment go, in order. Changes nothing.

        Raises:
            UnknownSegment, SegmentClosed, OutOfBlocks, InputError.

        Example:
            >>> placement = Placement(2, 8, policy="lachesis-deterministic")
            >>> _ = placement.open("worker-1", "worker", session="s")
            >>> placement.plan("worker-1", 3)
            ['hbm', 'hbm', 'hbf']
        """
        # Called for every few tokens: a bare try costs nothing, a context manager a microsecond.
        try:
            return self._core.plan(segment, blocks, generation=generation)
        except EngineError as fault:
            reraise(fault)

    def commit(
        self,
        segment: Name,
        blocks: Sequence[int],
        *,
        generation: int | None = None,
        event: Name | None = None,
    ) -> None:
        """Enter blocks that the engine drew for a segment, in their order.

        Raises:
            UnknownSegment, SegmentClosed, UnknownBlock, BlockHeld, WrongTier.
        """
        try:
            self._core.commit(
                segment, blocks, generation=generation, event=event, now_s=self._now_s()
            )
        except EngineError as fault:
            reraise(fault)

    def adopt(
        self,
        segment: Name,
        block_ids: Sequence[int],
        *,
        generation: int | None = None,
        cached: bool = False,
        event: Name | None = None,
    ) -> None:
        """Have a segment hold blocks that a prefix cache found, until its end.

        Blocks of other segments are then freed with their last holder. With `cached`, blocks that
        nobody holds may be among them: the engine has taken them off its free list because it
        still has their content.

        Raises:
            UnknownSegment, SegmentClosed, UnknownBlock, BlockHeld.

        Example:
            >>> placement = Placement(4, 8)
            >>> for session in ("a", "b"):
            ...     _ = placement.open(f"prompt-{session}", "prompt", session=session)
            >>> placement.commit("prompt-a", [4, 5])
            >>> placement.adopt("prompt-b", [4, 5])
            >>> placement.boundary("session_end", session="a").still_shared
            [4, 5]
            >>> placement.boundary("session_end", session="b").freed
            [4, 5]
        """
        with errors_of_the_core():
            self._core.adopt(
                segment,
                block_ids,
                generation=generation,
                cached=cached,
                event=event,
                now_s=self._now_s(),
            )

    def extend(self, segment: Name, blocks: int, *, generation: int | None = None) -> list[int]:
        """Draw blocks for a segment from the engine, where the policy says; return their ids.

        What a policy keeps past its boundary is reclaimed first if nothing else is free.

        Raises:
            UnknownSegment, SegmentClosed, OutOfBlocks, InputError; and what the engine raises,
            after it got back what it had handed out.
        """
        with self._lists.one_at_a_time():
            return self._lists.draw(segment, blocks, generation, self._now_s())

    def free(
        self, segment: Name, blocks: Sequence[int], *, generation: int | None = None
    ) -> Released:
        """Take single blocks from a live segment: a window moved on, tokens were rejected.

        Raises:
            UnknownSegment, SegmentClosed, UnknownBlock, DoubleFree, BlockHeld.
        """
        with self._lists.one_at_a_time():
            return self._released(
                self._core.free(segment, blocks, generation=generation, now_s=self._now_s())
            )

    def evict(self, segment: Name, *, generation: int | None = None) -> Released:
        """Take all blocks from a live segment, which stays open: the engine preempted it.

        Raises:
            UnknownSegment, SegmentClosed.
        """
        with self._lists.one_at_a_time():
            held = self._core.blocks(segment, generation=generation)
            return self._released(
                self._core.free(segment, held, generation=generation, now_s=self._now_s())
            )

    def reap(self) -> Released:
        """Close what nothing was heard of for `reap_after_s`, as if its lost boundary had come.

        Call it from time to time. Segments on which requests run are left alone.
        """
        with self._lists.one_at_a_time():
            return self._released(self._core.reap(now_s=self._now_s()))

    def reclaim(self, blocks: int, *, tier: Tier | None = None) -> Released:
        """Free up to so many blocks (of a tier) that ended segments still keep."""
        with self._lists.one_at_a_time():
            return self._released(self._core.reclaim(blocks, tier=tier))

    # How it is done.

    def _now_s(self) -> float | None:
        return self._clock() if self._needs_time else None

    def _score(self, record: SpawnRecord) -> float | None:
        if self._python_policy is not None:
            score = asked_to_score(self._python_policy, cast(Spawn, record))
            if score is not None or not self._python_policy.needs_scores:
                return score
        return self._scorer.score(record)

    def _released(self, core: dict[str, Any]) -> Released:
        released = Released(**core)
        self._lists.give_back(released.freed)
        if self._scorer.learns and released.closed:
            self._scorer.returned(released.closed, self._clock())
        return released

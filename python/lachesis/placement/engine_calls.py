"""What an engine asks the placement layer, and tells it: blocks, and requests that run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lachesis._engine import EngineError
from lachesis.placement.errors import errors_of_the_core, reraise
from lachesis.placement.protocols import Name, Tier
from lachesis.placement.records import Released
from lachesis.placement.scoring import Scorer
from lachesis.placement.views import Views


class EngineCalls(Views):
    """The calls of `Placement` that an engine makes."""

    _scorer: Scorer
    _clock: Callable[[], float]
    _needs_time: bool

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
            >>> from lachesis.placement import Placement
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
            >>> from lachesis.placement import Placement
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
            >>> from lachesis.placement import Placement
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

    def _now_s(self) -> float | None:
        return self._clock() if self._needs_time else None

    def _released(self, core: dict[str, Any]) -> Released:
        released = Released(**core)
        self._lists.give_back(released.freed)
        if self._scorer.learns and released.closed:
            self._scorer.returned(released.closed, self._clock())
        return released

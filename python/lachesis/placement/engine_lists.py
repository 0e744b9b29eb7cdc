"""The free lists of an engine that the layer draws from and gives back to."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Literal, cast

from lachesis._engine import EngineError
from lachesis._engine import Placement as Core
from lachesis.placement.errors import CensusError, OutOfBlocks, PlacementError, reraise
from lachesis.placement.protocols import Engine, Name, Tier

_TIERS: tuple[Tier, ...] = ("hbm", "hbf")


class EngineLists:
    """Draws and gives back, one call at a time, so that the engine's count and ours stay together.

    Without an engine nothing is drawn and nothing given back: the engine does both itself.
    """

    def __init__(self, core: Core, engine: Engine | None) -> None:
        self._core = core
        self._engine = engine
        # Reentrant: an engine may call the layer while it is asked for a block.
        self._lock = threading.RLock()
        self._owed: list[int] = []

    @contextlib.contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        """Around calls that may give blocks back; errors of the core come out as ours."""
        try:
            if self._engine is None:
                yield
                return
            # A policy that calls back would wait for us, and we for it.
            self._core.refuse_reentry()
            with self._lock:
                self.give_back([])
                yield
        except EngineError as fault:
            reraise(fault)

    def give_back(self, blocks: list[int]) -> None:
        """Return blocks; what the engine refuses is owed to it, and offered with the next call."""
        if self._engine is None or not (blocks or self._owed):
            return
        self._owed += blocks
        self._engine.free(list(self._owed))
        self._owed.clear()

    def draw(
        self, segment: Name, blocks: int, generation: int | None, now_s: float | None
    ) -> list[int]:
        """Draw blocks where the policy says, and enter them: all, or none."""
        if self._engine is None:
            raise PlacementError(
                "extend draws from an engine: give Placement one, or plan and commit"
            )
        drawn: list[int] = []
        try:
            for tier in self._plan(self._engine, segment, blocks, generation):
                drawn.append(self._engine.alloc(tier))  # noqa: PERF401 - kept if a call raises
            self._core.commit(segment, drawn, generation=generation, now_s=now_s)
        except BaseException:
            if drawn:
                self._engine.free(drawn)
            raise
        return drawn

    def _plan(
        self, engine: Engine, segment: Name, blocks: int, generation: int | None
    ) -> list[Literal["hbm", "hbf"]]:
        while True:
            free = (engine.free_blocks("hbm"), engine.free_blocks("hbf"))
            try:
                tiers = self._core.plan(segment, blocks, generation=generation, engine_free=free)
                return cast(list[Tier], tiers)
            except EngineError as fault:
                kept = sum(self._core.stats()["kept_blocks"].values())
                if fault.args[0] != OutOfBlocks.__name__ or kept == 0 or sum(free) + kept < blocks:
                    raise
            # Each round takes a block at least from what is kept, so that the rounds end.
            reclaimed: dict[str, Any] = self._core.reclaim(max(blocks - sum(free), 1))
            self.give_back(reclaimed["freed"])

    def check(self) -> None:
        """Compare the engine's count of free blocks with ours.

        Raises:
            CensusError: with the difference.
        """
        with self.one_at_a_time():
            self._core.check()
            if self._engine is None:
                return
            free = self._core.stats()["free_blocks"]
            for tier in _TIERS:
                listed = self._engine.free_blocks(tier)
                if listed != free[tier]:
                    raise CensusError(
                        f"census of {tier.upper()}: the engine has {listed} free blocks, but "
                        f"{free[tier]} are held by nobody"
                    )

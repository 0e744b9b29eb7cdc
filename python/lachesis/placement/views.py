"""What harness and engine may look at: blocks, tiers, counts."""

from __future__ import annotations

from typing import cast

from lachesis._engine import Placement as Core
from lachesis.placement.engine_lists import EngineLists
from lachesis.placement.errors import errors_of_the_core
from lachesis.placement.protocols import Name, Tier
from lachesis.placement.records import Stats


class Views:
    """The calls of `Placement` that change nothing."""

    block_tokens: int
    _core: Core
    _lists: EngineLists

    def blocks_for(self, tokens: int) -> int:
        """Blocks that so many tokens fill.

        Example:
            >>> from lachesis.placement import Placement
            >>> Placement(1, 1).blocks_for(33)
            3
        """
        return -(-tokens // self.block_tokens)

    def blocks(self, segment: Name, *, generation: int | None = None) -> list[int]:
        """Ids of a live segment's blocks, in the order in which they came.

        Raises:
            UnknownSegment, SegmentClosed.
        """
        with errors_of_the_core():
            return self._core.blocks(segment, generation=generation)

    def tier_of(self, block: int) -> Tier:
        """The tier of a block.

        Raises:
            UnknownBlock.
        """
        with errors_of_the_core():
            return cast(Tier, self._core.tier_of(block))

    def stats(self) -> Stats:
        """What the layer holds now, and what happened so far.

        Example:
            >>> from lachesis.placement import Placement
            >>> Placement(4, 8).stats().free_blocks
            {'hbm': 4, 'hbf': 8}
        """
        with errors_of_the_core():
            return Stats(**self._core.stats())

    def check(self) -> None:
        """Count every block: free + held = total in each tier, also as the engine counts.

        A pass over all blocks: for tests, and to find out who is wrong.

        Raises:
            CensusError: with the difference.
        """
        self._lists.check()

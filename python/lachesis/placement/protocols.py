"""What the layer asks of an engine and of a predictor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

#: A tier's name.
Tier: TypeAlias = Literal["hbm", "hbf"]

#: What names a segment, a session, a request or an event.
Name: TypeAlias = int | str


class Engine(Protocol):
    """A serving engine's free lists, one a tier.

    HBM's block ids run from 0, HBF's follow. Calls come from whatever thread called the layer, one
    at a time.
    """

    def alloc(self, tier: Tier) -> int:
        """Take one block off a tier's free list. May raise; the layer then gives all back."""
        ...

    def free(self, blocks: Sequence[int]) -> None:
        """Put blocks back, each on the list that it came from: all, or none if it raises."""
        ...

    def free_blocks(self, tier: Tier) -> int:
        """Blocks on a tier's free list."""
        ...

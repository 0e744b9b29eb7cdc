"""Spawn records as columns: what is known of sub-agents when they are spawned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lachesis import _engine


@dataclass(frozen=True)
class SpawnRecords:
    """One entry a spawn in each column.

    Attributes:
        instruction, context: texts; None where private or absent.
        instruction_tokens, context_tokens: lengths; None where unknown. A text whose length is
            unknown counts as a token every four characters.
        tools: names of the tools that the sub-agent may call.
        position: sub-agents that its session spawned before it.

    Example:
        >>> records = SpawnRecords(["Find it."], [None], [3], [None], [["search"]], [0])
        >>> len(records)
        1
    """

    instruction: Sequence[str | None]
    context: Sequence[str | None]
    instruction_tokens: Sequence[int | None]
    context_tokens: Sequence[int | None]
    tools: Sequence[Sequence[str]]
    position: Sequence[int]

    def __len__(self) -> int:
        return len(self.position)

    @classmethod
    def from_table(cls, spawns: pa.Table) -> SpawnRecords:
        """The rows of a trace's `spawns` table."""
        return cls(*(spawns[name].to_pylist() for name in cls.__dataclass_fields__))

    def extract(self, spec: _engine.FeatureSpec) -> _engine.SpawnFeatures:
        """Their features, by the same Rust code that an engine calls at a spawn."""
        return spec.extract(
            instruction=self.instruction,
            context=self.context,
            instruction_tokens=self.instruction_tokens,
            context_tokens=self.context_tokens,
            tools=self.tools,
            position=self.position,
        )

"""The placement layer that a serving engine embeds: KV placed by the lifetime of what it holds.

The decisions are made by the same Rust code that `lachesis run` simulates;
``docs/engine_engineers.md`` shows both ways to embed it.

Example:
    >>> from lachesis.placement import Placement
    >>> placement = Placement(hbm_blocks=100, hbf_blocks=300)
    >>> _ = placement.open("lead", "lead", session="s1")
    >>> placement.spawn("worker", {"instruction": "Find it."}, session="s1", parent="lead").tier
    'hbm'
    >>> placement.check()
"""

from lachesis.errors import InputError, LachesisError
from lachesis.placement.errors import (
    BlockHeld,
    CensusError,
    DoubleFree,
    DuplicateRequest,
    DuplicateSegment,
    OutOfBlocks,
    PlacementError,
    SegmentClosed,
    TooManyRequests,
    UnknownBlock,
    UnknownRequest,
    UnknownSegment,
    UnknownSession,
    WrongBoundary,
    WrongSession,
    WrongTier,
)
from lachesis.placement.placement import Placement
from lachesis.placement.protocols import Engine, Name, Tier
from lachesis.placement.records import Released, Score, SpawnRecord, Stats
from lachesis.policy.python_policy import PolicyError, PythonPolicy

__all__ = [
    "BlockHeld",
    "CensusError",
    "DoubleFree",
    "DuplicateRequest",
    "DuplicateSegment",
    "Engine",
    "InputError",
    "LachesisError",
    "Name",
    "OutOfBlocks",
    "Placement",
    "PlacementError",
    "PolicyError",
    "PythonPolicy",
    "Released",
    "Score",
    "SegmentClosed",
    "SpawnRecord",
    "Stats",
    "Tier",
    "TooManyRequests",
    "UnknownBlock",
    "UnknownRequest",
    "UnknownSegment",
    "UnknownSession",
    "WrongBoundary",
    "WrongSession",
    "WrongTier",
]

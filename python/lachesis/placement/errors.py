"""Errors of the placement layer: one tree, under `LachesisError`.

A call that raises one has changed nothing.

Example:
    >>> issubclass(OutOfBlocks, PlacementError) and issubclass(PlacementError, LachesisError)
    True
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NoReturn

from lachesis._engine import EngineError
from lachesis.errors import EXIT_USER, InputError, LachesisError
from lachesis.policy.python_policy import PolicyError, raised_in


class PlacementError(LachesisError):
    """Root of the layer's errors: a call that does not fit what the layer holds."""

    exit_code = EXIT_USER


class UnknownSegment(PlacementError):
    """The segment was never opened, or closed so long ago that it is forgotten."""


class DuplicateSegment(PlacementError):
    """The segment is live already."""


class SegmentClosed(PlacementError):
    """The segment, or the opening of it that was named, has reached its boundary."""


class UnknownSession(PlacementError):
    """The session never had a segment, or ended so long ago that it is forgotten."""


class WrongSession(PlacementError):
    """The segment belongs to another session."""


class UnknownRequest(PlacementError):
    """The request was never started, or ended so long ago that it is forgotten."""


class DuplicateRequest(PlacementError):
    """The request runs already, on other segments."""


class TooManyRequests(PlacementError):
    """65,535 requests run on the segment, the most that are counted."""


class WrongBoundary(PlacementError):
    """The boundary does not close such a segment, or must name one."""


class UnknownBlock(PlacementError):
    """No block has this id, or nothing was ever written to it."""


class DoubleFree(PlacementError):
    """The block is free already, or named twice."""


class BlockHeld(PlacementError):
    """A segment holds the block."""


class WrongTier(PlacementError):
    """The policy never uses the tier that the block lies in."""


class OutOfBlocks(PlacementError):
    """No block is free in any tier that may serve the call."""


class CensusError(PlacementError):
    """The blocks do not add up: a fault of ours, or of the engine that gave them out."""


_BY_KIND: dict[str, type[PlacementError]] = {
    kind.__name__: kind
    for kind in (
        UnknownSegment,
        DuplicateSegment,
        SegmentClosed,
        UnknownSession,
        WrongSession,
        UnknownRequest,
        DuplicateRequest,
        TooManyRequests,
        WrongBoundary,
        UnknownBlock,
        DoubleFree,
        BlockHeld,
        WrongTier,
        OutOfBlocks,
    )
} | {"Census": CensusError}


def reraise(fault: EngineError) -> NoReturn:
    """Raise an error of the engine as the one of this tree.

    Raises:
        PlacementError: of the kind that the engine names.
        InputError: a value breaks a rule.
        PolicyError: the policy itself failed.
    """
    kind, message, _ = fault.args
    if kind == "Policy":
        if isinstance(fault.__cause__, Exception):
            raise raised_in(fault.__cause__) from fault.__cause__
        raise PolicyError(message) from fault
    if kind in _BY_KIND:
        raise _BY_KIND[kind](message) from None
    raise InputError(message) from None


@contextlib.contextmanager
def errors_of_the_core() -> Iterator[None]:
    """Around calls of the engine: its errors come out as ours."""
    try:
        yield
    except EngineError as fault:
        reraise(fault)

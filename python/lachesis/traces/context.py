"""What one agent's context holds from request to request, and when each piece of it dies.

The context is a stack of chunks, each written once: the new part of an input, or an output. A
request keeps a prefix of the stack and writes the rest of its input on top; what is cut off dies,
and the boundary that cut it is noted on the chunk. Only afterwards are chunks of one group with
one death gathered into segments, so a divergence in the middle of what looked like one segment
needs no second writing of what came before it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec

from lachesis.traces.logged import Part, PartKind
from lachesis.traces.schema import Boundary, SegmentClass

#: Key of an input whose text is not known: equal to no part's key.
UNKNOWN_INPUT: tuple[Hashable, ...] = (object(),)
#: Group of a chunk: class, a number that keeps same-class groups apart, and a prompt's key.
Group = tuple[SegmentClass, int, str | None]
OUTPUT_KINDS = frozenset({PartKind.ANSWER, PartKind.CALL, PartKind.REASONING})
# By names of their own: before Python 3.12, asking an enum for a member is slow.
_PROMPT = SegmentClass.PROMPT
_LADEN = SegmentClass.LADEN


class Chunk(msgspec.Struct, gc=False):
    """Tokens that were written together. `keys` are its parts' keys; None if not known (yet).

    `closed_by` and `closed_after` are its death, and `segment` what it is gathered into afterwards.
    """

    tokens: int
    group: Group
    born: int  # handle of the request that wrote it
    is_output: bool
    keys: tuple[Hashable, ...] | None
    closed_by: Boundary | None = None
    closed_after: int = -1
    segment: int = -1


class Step(msgspec.Struct, gc=False):
    """One request's effect: how many chunks it matched, which it wrote, and its output chunk."""

    kept: int
    written: list[Chunk]
    output: Chunk


class AgentContext(msgspec.Struct):
    """The live stack of one agent. `tokens` is its sum; `previous` the last request's number."""

    stack: list[Chunk] = msgspec.field(default_factory=list)
    tokens: int = 0
    previous: int = -1

    def push(self, chunks: Sequence[Chunk]) -> None:
        """Put `chunks` on top, the last one highest."""
        self.stack += chunks
        for chunk in chunks:
            self.tokens += chunk.tokens

    def cut(self, kept: int, boundary: Boundary, closed_after: int) -> list[Chunk]:
        """Kill everything above the lowest `kept` chunks; returns the dead, lowest first."""
        dead = self.stack[kept:]
        if not dead:
            return dead
        for chunk in dead:
            chunk.closed_by = boundary
            chunk.closed_after = closed_after
            self.tokens -= chunk.tokens
        del self.stack[kept:]
        return dead

    @property
    def parts_matched(self) -> int:
        """How many parts of an input the stack stands for."""
        return sum(len(chunk.keys or ()) for chunk in self.stack)

    @property
    def prompt_chunks(self) -> int:
        """How many of the lowest chunks are the prompt (0 or 1)."""
        return int(bool(self.stack) and self.stack[0].group[0] is _PROMPT)

    def kept_by_turn(self, turn: int) -> int:
        """How many of the lowest chunks survive the end of the turn before `turn`."""
        for index, chunk in enumerate(self.stack):
            if chunk.group[0] is _LADEN and chunk.group[1] < turn:
                return index
        return len(self.stack)

    def kept_by_tokens(self, limit: int) -> int:
        """How many of the lowest chunks fit whole into `limit` tokens."""
        if self.tokens <= limit:
            return len(self.stack)
        total = 0
        for index, chunk in enumerate(self.stack):
            total += chunk.tokens
            if total > limit:
                return index
        return len(self.stack)

    def kept_by_birth(self, handle: int) -> int:
        """How many of the lowest chunks stood there when request `handle` had ended.

        The prompt always did: a rewind to before the first request leaves it.
        """
        for index, chunk in enumerate(self.stack):
            if chunk.born > handle:
                return max(index, self.prompt_chunks)
        return len(self.stack)

    def kept_by_parts(self, parts: Sequence[Part]) -> tuple[int, int]:
        """How many of the lowest chunks the leading `parts` match, and how many parts that takes.

        An output whose text the log did not give with it is matched by the answers, calls and
        reasoning that follow at its place.
        """
        position = 0
        count = len(parts)
        for index, chunk in enumerate(self.stack):
            if chunk.keys is None:
                end = position
                while end < count and parts[end].kind in OUTPUT_KINDS:
                    end += 1
                if end == position and chunk.tokens:
                    return index, position
                chunk.keys = tuple(part.key for part in parts[position:end])
                position = end
                continue
            end = position + len(chunk.keys)
            if end > count:
                return index, position
            for key, part in zip(chunk.keys, parts[position:end], strict=True):
                if key != part.key:
                    return index, position
            position = end
        return len(self.stack), position


def scaled(parts: Sequence[int], total: int) -> list[int]:
    """`parts` in proportion, as integers that sum to `total` (largest remainders, first wins).

    Example:
        >>> scaled([1, 1, 1], 10), scaled([0, 0], 3), scaled([2, 3], 5)
        ([4, 3, 3], [3, 0], [2, 3])
    """
    whole = sum(parts)
    if whole == total:
        return list(parts)
    if not parts:
        return []
    if whole == 0:
        return [total, *([0] * (len(parts) - 1))]
    shares = [part * total // whole for part in parts]
    remainders = sorted(
        range(len(parts)), key=lambda index: (-(parts[index] * total % whole), index)
    )
    for index in remainders[: total - sum(shares)]:
        shares[index] += 1
    return shares


def leading_kind(parts: Sequence[Part], kind: PartKind) -> int:
    """How many of the first parts are of `kind`."""
    for index, part in enumerate(parts):
        if part.kind is not kind:
            return index
    return len(parts)

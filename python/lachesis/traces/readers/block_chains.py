"""Contexts of requests whose log gives hashes of fixed-size blocks instead of text.

Equal ids at the same place mean equal tokens up to the end of that block. From them come the parts
that the builder matches by; `session_chains` finds sessions with them where a log names none.

**What matches.** Let P be the whole blocks of an agent's last input, C those of them with which the
next input starts. C < P: the inputs diverge, and C blocks match. C = P: nothing that the log can
show differs, so the last input and its output match if the next input has room for both, else the
input alone if it has room for that. An output has no hashes of its own and is kept whole or not at
all: a divergence inside an output that once matched falls back to where that output starts.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from lachesis.traces.logged import Part, PartKind


class RequestParts(NamedTuple):
    """A request's context for the builder, and how many tokens of it matched."""

    parts: list[Part]
    output_parts: list[Part]
    matched_tokens: int


class _Logged(NamedTuple):
    input_tokens: int
    output_tokens: int
    agreed_tokens: int  # up to where the contexts before and after may be the same


class _Piece(NamedTuple):
    """Tokens `start` up to `end` of a context that request `born` wrote, as input or output."""

    born: int
    is_output: bool
    start: int
    end: int


def blocks_of(ids: Sequence[int]) -> array[int]:
    """Block ids in the form in which they are kept and compared: 64 bits each, signed or not."""
    try:
        return array("Q", ids)
    except OverflowError:
        return array("Q", (block % 2**64 for block in ids))


def whole_blocks(blocks: array[int], input_tokens: int, block_tokens: int) -> array[int]:
    """The blocks that the input fills; what a part-filled one holds later, its id does not say."""
    return blocks[: input_tokens // block_tokens]


def common_blocks(left: array[int], right: array[int]) -> int:
    """With how many equal blocks two chains start.

    Example:
        >>> common_blocks(blocks_of([1, 2, 3]), blocks_of([1, 2, 9, 3]))
        2
    """
    count = min(len(left), len(right))
    if left[:count] == right[:count]:
        return count
    low, high = 0, count  # the first `low` agree, the first `high` do not
    while low + 1 < high:
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low


class BlockContext:
    """The requests of one agent, in order; keeps the last one's blocks and no others.

    Example:
        >>> context = BlockContext(16)
        >>> context.add(40, 5, blocks_of([1, 2]))
        >>> context.add(60, 5, blocks_of([1, 2, 3]))
        >>> [each.matched_tokens for each in context.parts()]
        [0, 45]
    """

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self._held = blocks_of(())
        self._requests: list[_Logged] = []

    def add(
        self, input_tokens: int, output_tokens: int, blocks: array[int], *, reset: bool = False
    ) -> None:
        """Take the agent's next request; `reset`: its context starts from nothing."""
        whole = whole_blocks(blocks, input_tokens, self.block_tokens)
        agreed = 0
        if self._requests and not reset:
            before = self._requests[-1]
            common = common_blocks(self._held, whole)
            agreed = common * self.block_tokens
            if common == len(self._held):
                with_output = before.input_tokens + before.output_tokens
                if input_tokens >= before.input_tokens:
                    agreed = before.input_tokens
                if input_tokens >= with_output:
                    agreed = with_output
        self._held = whole
        self._requests.append(_Logged(input_tokens, output_tokens, agreed))

    def parts(self, prompt_tokens: int = 0) -> list[RequestParts]:
        """Parts of every request.

        `prompt_tokens`: how much of the first input is system prompt and tools. It is cut down to
        what no divergence reaches, since a prompt that changes in its middle does not survive.
        """
        contexts, matched, cuts = self._walk()
        reached = [tokens for tokens in matched[1:] if tokens]
        first = self._requests[0].input_tokens if self._requests else 0
        prompt = min(prompt_tokens, first, *reached)
        if prompt:
            cuts.setdefault(0, set()).add(prompt)
        keys = {born: sorted(places) for born, places in cuts.items()}
        found: list[RequestParts] = []
        for born, request in enumerate(self._requests):
            parts: list[Part] = []
            for piece in contexts[born]:
                parts += _parts_of(piece, keys.get(piece.born, ()), prompt)
            output = Part(("output", born), request.output_tokens, PartKind.ANSWER)
            found.append(RequestParts(parts, [output], matched[born]))
        return found

    def _walk(self) -> tuple[list[list[_Piece]], list[int], dict[int, set[int]]]:
        """Each request's context, what of it matched, and where a piece was ever cut."""
        stack: list[_Piece] = []
        contexts: list[list[_Piece]] = []
        matched: list[int] = []
        cuts: dict[int, set[int]] = {}
        for born, request in enumerate(self._requests):
            agreed = request.agreed_tokens
            while stack and stack[-1].end > agreed:
                piece = stack.pop()
                if piece.start >= agreed:
                    continue
                if piece.is_output:
                    agreed = piece.start
                else:
                    stack.append(piece._replace(end=agreed))
                    cuts.setdefault(piece.born, set()).add(agreed)
            kept = stack[-1].end if stack else 0
            if request.input_tokens > kept:
                stack.append(_Piece(born, False, kept, request.input_tokens))
            contexts.append(list(stack))
            matched.append(kept)
            if request.output_tokens:
                end = request.input_tokens + request.output_tokens
                stack.append(_Piece(born, True, request.input_tokens, end))
        return contexts, matched, cuts


def _parts_of(piece: _Piece, cuts: Iterable[int], prompt: int) -> list[Part]:
    if piece.is_output:
        return [Part(("output", piece.born), piece.end - piece.start, PartKind.ANSWER)]
    edges = [piece.start, *(cut for cut in cuts if piece.start < cut < piece.end), piece.end]
    return [
        Part(
            ("input", piece.born, start),
            end - start,
            PartKind.SYSTEM if piece.born == 0 and end <= prompt else PartKind.USER,
        )
        for start, end in pairwise(edges)
    ]


def block_tokens_of(lengths: Iterable[tuple[int, int]], usual: int) -> int | None:
    """The block size that gives inputs of so many tokens so many blocks; None where none does.

    `usual` if it fits, else the one power of two that does, else the smallest size that does.

    Example:
        >>> block_tokens_of([(6758, 14), (513, 2)], 512), block_tokens_of([(40, 3)], 512)
        (512, 16)
    """
    least, most = 1, 2**31
    for tokens, blocks in lengths:
        if blocks:
            least = max(least, -(-tokens // blocks))
        if blocks > 1:
            most = min(most, (tokens - 1) // (blocks - 1))
    if least > most:
        return None
    if least <= usual <= most:
        return usual
    power = 1 << (least - 1).bit_length()
    return power if power <= most else least

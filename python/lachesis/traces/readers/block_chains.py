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

from lachesis.traces.readers.context_pieces import ContextPieces, common_start


def blocks_of(ids: Sequence[int]) -> array[int]:
    """Block ids in the form in which they are kept and compared: 64 bits each, signed or not."""
    try:
        return array("Q", ids)
    except OverflowError:
        return array("Q", (block % 2**64 for block in ids))


def whole_blocks(blocks: array[int], input_tokens: int, block_tokens: int) -> array[int]:
    """The blocks that the input fills; what a part-filled one holds later, its id does not say."""
    return blocks[: input_tokens // block_tokens]


def agreed_tokens(
    held: array[int],
    before: tuple[int, int],
    whole: array[int],
    input_tokens: int,
    block_tokens: int,
) -> int:
    """How many leading tokens of an input are what the context held (see the module).

    Args:
        held: whole blocks of the agent's last input.
        before: input and output tokens of the agent's last request.
        whole: whole blocks of the next input.
        input_tokens: tokens of the next input.
        block_tokens: tokens of a block.

    Example:
        >>> agreed_tokens(blocks_of([1, 2]), (40, 5), blocks_of([1, 2, 3]), 60, 16)
        45
    """
    common = common_start(held, whole)
    if common < len(held):
        return common * block_tokens
    if input_tokens >= sum(before):
        return sum(before)
    return before[0] if input_tokens >= before[0] else common * block_tokens


class BlockContext(ContextPieces):
    """The requests of one agent, in order; keeps the last one's blocks and no others.

    Example:
        >>> context = BlockContext(16)
        >>> context.add(40, 5, blocks_of([1, 2]))
        >>> context.add(60, 5, blocks_of([1, 2, 3]))
        >>> [each.matched_tokens for each in context.parts()]
        [0, 45]
    """

    def __init__(self, block_tokens: int) -> None:
        super().__init__()
        self.block_tokens = block_tokens
        self._held = blocks_of(())

    def add(
        self, input_tokens: int, output_tokens: int, blocks: array[int], *, reset: bool = False
    ) -> None:
        """Take the agent's next request; `reset`: its context starts from nothing."""
        whole = whole_blocks(blocks, input_tokens, self.block_tokens)
        agreed = 0
        if self._requests and not reset:
            before = self._requests[-1]
            agreed = agreed_tokens(
                self._held, (before.input_tokens, before.output_tokens), whole, input_tokens,
                self.block_tokens,
            )  # fmt: skip
        self._held = whole
        self.add_agreed(input_tokens, output_tokens, agreed)


def block_tokens_of(lengths: Iterable[tuple[int, int]], usual: int) -> int | None:
    """The block size that gives inputs of so many tokens so many blocks; None where none does.

    `usual` if it fits, else the one power of two that does, else the smallest size that does.

    Example:
        >>> block_tokens_of([(6758, 14), (513, 2)], 512), block_tokens_of([(40, 3)], 512)
        (512, 16)
    """
    size = BlockSize(usual)
    for tokens, blocks in lengths:
        size.take(tokens, blocks)
    return size.found()


class BlockSize:
    """Finds the block size as `block_tokens_of` does, input by input."""

    def __init__(self, usual: int) -> None:
        self._usual = usual
        self._least, self._most = 1, 2**31

    def take(self, tokens: int, blocks: int) -> None:
        """Take an input of so many tokens and blocks."""
        if blocks:
            self._least = max(self._least, -(-tokens // blocks))
        if blocks > 1:
            self._most = min(self._most, (tokens - 1) // (blocks - 1))

    def found(self) -> int | None:
        """The size; None where none fits all."""
        if self._least > self._most:
            return None
        if self._least <= self._usual <= self._most:
            return self._usual
        power = 1 << (self._least - 1).bit_length()
        return power if power <= self._most else self._least

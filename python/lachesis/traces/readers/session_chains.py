"""Sessions and shared prompts of a log that names no sessions, from chains of block hashes.

An id stands for its block and all before it, and is the same in the whole log. Both classes here
keep a few bytes a block and a session, and no chain.
"""

from __future__ import annotations

from array import array

import numpy as np

from lachesis.traces.readers.block_chains import whole_blocks
from lachesis.traces.readers.block_numbers import BlockColumn, BlockNumbers


class SessionChains:
    """Finds the session that a request continues.

    It is the one whose last input's whole blocks are the longest proper start of the request's
    own, if the input also has room for that session's last output, and if the last of these blocks
    is the session's own: a block that another session wrote first belongs to a shared prompt or
    document, and proves nothing.

    Example:
        >>> from lachesis.traces.readers.block_chains import blocks_of
        >>> chains = SessionChains(16)
        >>> [chains.session_of(tokens, 4, blocks_of(ids))
        ...  for tokens, ids in ((40, [0, 1]), (40, [0, 2]), (70, [0, 2, 3]), (50, [0, 1, 4]))]
        [0, 1, 1, 0]
    """

    def __init__(self, block_tokens: int, numbers: BlockNumbers | None = None) -> None:
        self.block_tokens = block_tokens
        self.sessions = 0
        self._numbers = BlockNumbers() if numbers is None else numbers
        self._owner = BlockColumn(np.int32, -1)
        # Of the block with which its owner's last input ends: how many blocks that input has, and
        # the tokens of input and output. 0 blocks: no session ends here.
        self._end_blocks = BlockColumn(np.int32, 0)
        self._end_tokens = BlockColumn(np.int64, 0)

    def session_of(self, input_tokens: int, output_tokens: int, blocks: array[int]) -> int:
        """The number of the session that the request continues, or of a new one."""
        whole = whole_blocks(blocks, input_tokens, self.block_tokens)
        if not whole:
            self.sessions += 1
            return self.sessions - 1
        numbers = self._numbers.of(whole)
        owner = self._owner.reach(numbers)
        end_blocks = self._end_blocks.reach(numbers)
        end_tokens = self._end_tokens.reach(numbers)
        count = len(numbers)
        ends = (end_blocks[numbers] == np.arange(1, count + 1)) & (
            end_tokens[numbers] <= input_tokens
        )
        found = np.flatnonzero(ends)
        if len(found):
            last = numbers[found[-1]]
            session = int(owner[last])
            end_blocks[last] = 0
        else:
            session = self.sessions
            self.sessions += 1
        owner[numbers[owner[numbers] < 0]] = session
        if owner[numbers[-1]] == session:
            end_blocks[numbers[-1]] = count
            end_tokens[numbers[-1]] = input_tokens + output_tokens
        return session


class SharedPrompts:
    """What sessions' first inputs share.

    A session's prompt is the longest start of its first input that at least one other session's
    first input has too; its key is the id of its last block.

    Example:
        >>> from lachesis.traces.readers.block_chains import blocks_of
        >>> prompts = SharedPrompts(16)
        >>> for ids in ([1, 2, 3], [1, 2], [7]):
        ...     prompts.add(blocks_of(ids))
        >>> [prompts.of(session) for session in range(3)]
        [(32, 2), (32, 2), (0, None)]
    """

    def __init__(self, block_tokens: int, numbers: BlockNumbers | None = None) -> None:
        self.block_tokens = block_tokens
        self._numbers = BlockNumbers() if numbers is None else numbers
        self._times = BlockColumn(np.uint8, 0)  # in how many first inputs a block is; at most 2
        self._before = BlockColumn(np.int64, -1)  # the block before it
        self._last = array("q")  # of every first input
        self._count = array("i")

    def add(self, whole: array[int]) -> None:
        """Take the whole blocks of the next session's first input."""
        numbers = self._numbers.of(whole)
        times = self._times.reach(numbers)
        before = self._before.reach(numbers)
        if len(numbers):
            before[numbers[1:]] = numbers[:-1]
            times[numbers] = np.minimum(times[numbers] + 1, 2)
        self._last.append(int(numbers[-1]) if len(numbers) else -1)
        self._count.append(len(numbers))

    def of(self, session: int) -> tuple[int, int | None]:
        """The tokens of a session's prompt and its key; sessions are numbered as they came."""
        block, count = self._last[session], self._count[session]
        times, before = self._times.values, self._before.values
        # A log whose ids are no chain could lead in a circle, so the count bounds the way.
        while count and times[block] < 2:
            block = int(before[block])
            count -= 1
        if not count:
            return 0, None
        return count * self.block_tokens, self._numbers.id_of(block)

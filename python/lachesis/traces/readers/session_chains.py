"""Sessions and shared prompts of a log that names no sessions, from chains of block hashes.

An id stands for its block and all before it, and is the same in the whole log. Both classes here
keep a few bytes a block, on disk, and a session, and no chain.
"""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Final

import numpy as np

from lachesis.traces.readers.block_chains import whole_blocks
from lachesis.traces.readers.block_numbers import BlockNumbers, BlockTable

#: Of each block the session that wrote it first, from 1. Where that session's last input ends with
#: it, also how many blocks that input has, and the tokens of input and output; 0 blocks elsewhere.
_CHAIN: Final = np.dtype([("tokens", np.uint32), ("owner", np.int32), ("blocks", np.int32)])
#: Of each block the one before it, from 1, and in how many first inputs it is, at most 2.
_FIRST_INPUTS: Final = np.dtype([("before", np.int64), ("times", np.uint8)])


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

    def __init__(
        self,
        block_tokens: int,
        numbers: BlockNumbers | None = None,
        scratch: Path | None = None,
    ) -> None:
        self.block_tokens = block_tokens
        self.sessions = 0
        self._numbers = BlockNumbers() if numbers is None else numbers
        self._blocks = BlockTable(_CHAIN, scratch)

    def session_of(self, input_tokens: int, output_tokens: int, blocks: array[int]) -> int:
        """The number of the session that the request continues, or of a new one."""
        return self.place(input_tokens, output_tokens, blocks)[0]

    def place(self, input_tokens: int, output_tokens: int, blocks: array[int]) -> tuple[int, int]:
        """The session as `session_of` gives it, and how many tokens its context held; 0 if new."""
        whole = whole_blocks(blocks, input_tokens, self.block_tokens)
        if not whole:
            self.sessions += 1
            return self.sessions - 1, 0
        numbers = self._numbers.of(whole)
        records = self._blocks.reach(numbers)
        own = records[numbers]
        count = len(numbers)
        ends = (own["blocks"] == np.arange(1, count + 1)) & (own["tokens"] <= input_tokens)
        found = np.flatnonzero(ends)
        held = 0
        if len(found):
            last = own[found[-1]]
            session, held = int(last["owner"]) - 1, int(last["tokens"])
            records["blocks"][numbers[found[-1]]] = 0
        else:
            session = self.sessions
            self.sessions += 1
        records["owner"][numbers[own["owner"] == 0]] = session + 1
        end = numbers[-1]
        if records["owner"][end] == session + 1:
            records["blocks"][end] = count
            records["tokens"][end] = input_tokens + output_tokens
        return session, held


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

    def __init__(
        self,
        block_tokens: int,
        numbers: BlockNumbers | None = None,
        scratch: Path | None = None,
    ) -> None:
        self.block_tokens = block_tokens
        self._numbers = BlockNumbers() if numbers is None else numbers
        self._blocks = BlockTable(_FIRST_INPUTS, scratch)
        self._last = array("q")  # of every first input
        self._count = array("i")

    def add(self, whole: array[int]) -> None:
        """Take the whole blocks of the next session's first input."""
        numbers = self._numbers.of(whole)
        if len(numbers):
            records = self._blocks.reach(numbers)
            records["before"][numbers[1:]] = numbers[:-1] + 1
            records["times"][numbers] = np.minimum(records["times"][numbers] + 1, 2)
        self._last.append(int(numbers[-1]) if len(numbers) else -1)
        self._count.append(len(numbers))

    def of(self, session: int) -> tuple[int, int | None]:
        """The tokens of a session's prompt and its key; sessions are numbered as they came."""
        block, count = self._last[session], self._count[session]
        records = self._blocks.latest()
        # A log whose ids are no chain could lead in a circle, so the count bounds the way.
        while count and records["times"][block] < 2:
            block = int(records["before"][block]) - 1
            count -= 1
        if not count:
            return 0, None
        return count * self.block_tokens, self._numbers.id_of(block)

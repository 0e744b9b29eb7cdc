"""Sessions and shared prompts of a log that names no sessions, from chains of block hashes.

An id stands for its block and all before it, and is the same in the whole log.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from lachesis.traces.readers.block_chains import whole_blocks


class SessionChains:
    """Finds the session that a request continues.

    It is the one whose last input's whole blocks are the longest proper start of the request's
    own, if the input also has room for that session's last output, and if the last of these blocks
    is the session's own: a block that another session wrote first belongs to a shared prompt or
    document, and proves nothing. Of sessions that fit equally, the one asked longest ago wins.

    Example:
        >>> from lachesis.traces.readers.block_chains import blocks_of
        >>> chains = SessionChains(16)
        >>> [chains.session_of(tokens, 4, blocks_of(ids))
        ...  for tokens, ids in ((40, [0, 1]), (40, [0, 2]), (70, [0, 2, 3]), (50, [0, 1, 4]))]
        [0, 1, 1, 0]
    """

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.sessions = 0
        self._ends: dict[tuple[int, int], dict[int, int]] = {}
        self._owner: dict[int, int] = {}

    def session_of(self, input_tokens: int, output_tokens: int, blocks: array[int]) -> int:
        """The number of the session that the request continues, or of a new one."""
        whole = whole_blocks(blocks, input_tokens, self.block_tokens)
        session = self._continued(input_tokens, whole)
        if session is None:
            session = self.sessions
            self.sessions += 1
        for block in whole:
            self._owner.setdefault(block, session)
        if whole:
            ends = self._ends.setdefault((len(whole), whole[-1]), {})
            ends[session] = input_tokens + output_tokens
        return session

    def _continued(self, input_tokens: int, whole: array[int]) -> int | None:
        for length in range(len(whole), 0, -1):
            last = whole[length - 1]
            ends = self._ends.get((length, last))
            for session, held_tokens in (ends or {}).items():
                if held_tokens <= input_tokens and self._owner[last] == session:
                    assert ends is not None, "Invariant: the session was found in it"
                    del ends[session]
                    if not ends:
                        del self._ends[length, last]
                    return session
        return None


def shared_prompts(chains: Sequence[array[int]], block_tokens: int) -> list[tuple[int, int | None]]:
    """What each session's first input (its whole blocks) shares with others': tokens, and a key.

    The prompt is the longest start that at least one other session's first input has too; its key
    is the id of its last block.

    Example:
        >>> shared_prompts([array("Q", [1, 2, 3]), array("Q", [1, 2]), array("Q", [7])], 16)
        [(32, 2), (32, 2), (0, None)]
    """
    ids = [np.frombuffer(blocks, np.uint64) for blocks in chains if blocks]
    if not ids:
        return [(0, None)] * len(chains)
    ordered = np.sort(np.concatenate(ids))
    shared = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    found: list[tuple[int, int | None]] = []
    for blocks in chains:
        if not blocks or not len(shared):
            found.append((0, None))
            continue
        chain = np.frombuffer(blocks, np.uint64)
        places = np.minimum(np.searchsorted(shared, chain), len(shared) - 1)
        alone = shared[places] != chain
        length = int(np.argmax(alone)) if alone.any() else len(blocks)
        found.append((length * block_tokens, blocks[length - 1] if length else None))
    return found

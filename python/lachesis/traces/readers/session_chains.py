"""Sessions and shared prompts of a log that names no sessions, from chains of blocks.

A block is named by a number (see `BlockNumbers`) that stands for it and all before it, the same in
the whole log. Both classes here keep a few bytes a block and a session, on disk, and no chain. They
take many requests at once, since columns are looked up for all of them together.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from lachesis.traces.readers.block_table import BlockTable, Numbers


class SessionChains:
    """Finds the session that a request continues.

    It is the one whose last input's whole blocks are the longest proper start of the request's
    own, if the input also has room for that session's last output, and if the last of these blocks
    is the session's own: a block that another session wrote first belongs to a shared prompt or
    document, and proves nothing.

    Example:
        >>> chains, tokens = SessionChains(), np.array([40, 40, 70, 50])
        >>> blocks = np.array([0, 1, 0, 2, 0, 2, 3, 0, 1, 4])
        >>> sessions, held = chains.place(tokens, np.full(4, 4), blocks, np.array([2, 2, 3, 3]))
        >>> sessions.tolist(), held.tolist()
        ([0, 1, 1, 0], [0, 0, 44, 44])
    """

    def __init__(self, scratch: Path | None = None) -> None:
        self.sessions = 0
        # Of each block the session that wrote it first, from 1; while requests are placed, where
        # there is none yet, the first request that has the block, as -1, -2, ….
        self._owner = BlockTable(np.dtype(np.int32), scratch)
        # Where that session's last input ends with it, how many blocks that input has, and the
        # tokens of input and output; 0 blocks elsewhere.
        self._count = BlockTable(np.dtype(np.int32), scratch)
        self._tokens = BlockTable(np.dtype(np.uint32), scratch)
        # While requests are placed, the first of them that ends with it, from 1.
        self._first_end = BlockTable(np.dtype(np.int32), scratch)

    def place(
        self, input_tokens: Numbers, output_tokens: Numbers, blocks: Numbers, counts: Numbers
    ) -> tuple[Numbers, Numbers]:
        """The session of each request, by number, and how many tokens its context held; 0 if new.

        Args:
            input_tokens: of each request, in order.
            output_tokens: likewise, at least 1.
            blocks: the whole blocks of all inputs, one after another.
            counts: how many of these each input has.
        """
        owners, first_end = self._owner.reach(blocks), self._first_end.reach(blocks)
        counts_of, tokens_of = self._count.reach(blocks), self._tokens.reach(blocks)
        request = np.repeat(np.arange(len(counts)), counts)
        ends = np.cumsum(counts)
        place = np.arange(1, len(blocks) + 1) - np.repeat(ends - counts, counts)
        free = np.flatnonzero(owners[blocks] == 0)
        # Of several requests with a block the first one stays, as it is put there last.
        owners[blocks[free][::-1]] = -1 - request[free][::-1]
        with_blocks = np.flatnonzero(counts > 0)
        last = blocks[ends[with_blocks] - 1]
        first_end[last[::-1]] = with_blocks[::-1] + 1
        found = first_end[blocks]
        first_end[last] = 0
        may_match = (counts_of[blocks] == place) | ((found > 0) & (found <= request))
        may_match[ends[with_blocks] - 1] = True  # an input's last block always, see below
        at = np.flatnonzero(may_match)
        mentions = _Mentions(
            np.searchsorted(request[at], np.arange(len(counts) + 1)).tolist(),
            *(
                column.tolist()
                for column in (
                    blocks[at], place[at], owners[blocks[at]], counts_of[blocks[at]],
                    tokens_of[blocks[at]],
                )
            ),
        )  # fmt: skip
        sessions, held, changes = self._walk(
            input_tokens.tolist(), output_tokens.tolist(), mentions
        )
        owners[blocks[free]] = sessions[-1 - owners[blocks[free]]] + 1
        changed = np.fromiter(changes, np.int64, len(changes))
        counts_of[changed] = [count for count, _ in changes.values()]
        tokens_of[changed] = [tokens for _, tokens in changes.values()]
        return sessions, held

    def _walk(
        self, input_tokens: list[int], output_tokens: list[int], mentions: _Mentions
    ) -> tuple[Numbers, Numbers, dict[int, tuple[int, int]]]:
        """Sessions, tokens held, and what changed: blocks and tokens of inputs, by last block.

        One request after another, since each may end where a later one goes on.
        """
        begins, blocks, places, owners, counts, tokens = mentions
        sessions: list[int] = []
        held: list[int] = []
        ended: dict[int, tuple[int, int]] = {}
        for index, inputs in enumerate(input_tokens):
            begin, end = begins[index], begins[index + 1]
            for at in range(end - 1, begin - 1, -1):
                change = ended.get(blocks[at])
                count, before = (counts[at], tokens[at]) if change is None else change
                if count == places[at] and before <= inputs:
                    owner = owners[at]
                    sessions.append(owner - 1 if owner > 0 else sessions[-1 - owner])
                    held.append(before)
                    ended[blocks[at]] = 0, before
                    break
            else:
                sessions.append(self.sessions)
                held.append(0)
                self.sessions += 1
            if end > begin:  # the last block comes last
                owner = owners[end - 1]
                if sessions[index] == (owner - 1 if owner > 0 else sessions[-1 - owner]):
                    ended[blocks[end - 1]] = places[end - 1], inputs + output_tokens[index]
        return np.array(sessions, np.int64), np.array(held, np.int64), ended


class _Mentions(NamedTuple):
    """Where inputs have a block with which another one may end, request by request.

    `begins`: where each request's begin, and the last one's end. Of each mention the block, its
    place in the input, its owner, and the blocks and tokens of the input that ended with it before.
    """

    begins: list[int]
    blocks: list[int]
    places: list[int]
    owners: list[int]
    counts: list[int]
    tokens: list[int]


class SharedPrompts:
    """What sessions' first inputs share.

    A session's prompt is the longest start of its first input that at least one other session's
    first input has too.

    Example:
        >>> prompts = SharedPrompts()
        >>> prompts.add(np.array([1, 2, 3, 1, 2, 7]), np.array([3, 2, 1]))
        >>> counts, last = prompts.of(np.arange(3))
        >>> counts.tolist(), last[:2].tolist()
        ([2, 2, 0], [2, 2])
    """

    def __init__(self, scratch: Path | None = None) -> None:
        self.sessions = 0
        # Of each block the one before it, from 1, and in how many first inputs it is, at most 2.
        self._before = BlockTable(np.dtype(np.int64), scratch)
        self._times = BlockTable(np.dtype(np.uint8), scratch)
        # Of each first input its last block, and how many it has.
        self._last = BlockTable(np.dtype(np.int64), scratch)
        self._count = BlockTable(np.dtype(np.int32), scratch)

    def add(self, blocks: Numbers, counts: Numbers) -> None:
        """Take the whole blocks of the next sessions' first inputs, and how many each has."""
        session = np.repeat(np.arange(len(counts)), counts)
        rows = np.arange(self.sessions, self.sessions + len(counts))
        self.sessions += len(counts)
        self._count.reach(rows)[rows] = counts
        self._last.reach(rows)[rows[counts > 0]] = blocks[np.cumsum(counts)[counts > 0] - 1]

        before, times = self._before.reach(blocks), self._times.reach(blocks)
        known = before[blocks]
        # The first of these sessions that has a block stays, as it is put there last.
        before[blocks[::-1]] = session[::-1]
        again = before[blocks] != session
        before[blocks] = known
        times[blocks] = np.minimum(times[blocks] + 1, 2)
        times[blocks[again]] = 2
        inner = np.flatnonzero(session[1:] == session[:-1])
        before[blocks[inner + 1]] = blocks[inner] + 1

    def of(self, sessions: Numbers) -> tuple[Numbers, Numbers]:
        """How many blocks the prompts of sessions have, and the last of these where there is any.

        Sessions are numbered as they came.
        """
        counts = self._count.reach(sessions)[sessions].astype(np.int64)
        blocks = self._last.reach(sessions)[sessions]
        left = np.flatnonzero(counts)
        # A log whose ids are no chain could lead in a circle, so the count bounds the way.
        while len(left):
            at = blocks[left]
            single = self._times.reach(at)[at] < 2
            left, at = left[single], at[single]
            blocks[left] = self._before.reach(at)[at] - 1
            counts[left] -= 1
            left = left[counts[left] > 0]
        return counts, blocks

"""To which sessions the requests of a Mooncake trace belong, and what of their inputs matched."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lachesis.traces.readers.block_chains import agreed_tokens
from lachesis.traces.readers.block_numbers import BlockNumbers, Ids
from lachesis.traces.readers.block_table import BlockTable, Numbers
from lachesis.traces.readers.mooncake_rows import MooncakeColumns
from lachesis.traces.readers.session_chains import SessionChains, SharedPrompts
from lachesis.traces.record_groups import NameNumbers, RecordGroups


class MooncakeSessions:
    """The sessions of one file, and where each one's context is.

    Attributes:
        count: sessions so far; `recovered` of them from chains of blocks, `alone` of one request
            without any.
    """

    def __init__(self, block_tokens: int, scratch: Path | None) -> None:
        self.block_tokens = block_tokens
        self.count = 0
        self.recovered = 0
        self.alone = 0
        self._numbers = BlockNumbers(scratch)
        self._chains = SessionChains(scratch)
        self._prompts = SharedPrompts(scratch)
        self._of_chain = array("i")
        self._name_numbers = NameNumbers()
        self._of_name = array("i")
        self._names = RecordGroups(scratch)  # by session
        self._last = _LastInputs(scratch)

    def place(self, requests: MooncakeColumns) -> tuple[Numbers, Numbers]:
        """The session of each request, and how much of its input that one's context held."""
        counts = np.minimum(requests.block_counts, requests.input_tokens // self.block_tokens)
        ids = requests.blocks[_leading(requests.block_counts, counts)]
        blocks = self._numbers.of(ids)
        named = np.array([each is not None for each in requests.session_id], np.bool_)
        chained = ~named & (requests.block_counts > 0)
        is_new = ~named & ~chained
        self.alone += int(is_new.sum())
        agreed = np.zeros(len(counts), np.int64)
        chains, agreed[chained] = self._chains.place(
            requests.input_tokens[chained],
            requests.output_tokens[chained],
            blocks[np.repeat(chained, counts)],
            counts[chained],
        )
        is_new[chained] = agreed[chained] == 0
        self.recovered += int(is_new[chained].sum())
        names = self._place_named(requests, named, ids, counts, is_new, agreed)

        sessions = self.count - 1 + np.cumsum(is_new)
        self._of_chain.extend(sessions[chained & is_new].tolist())
        self._of_name.extend(sessions[named & is_new].tolist())
        for row in np.flatnonzero(named & is_new).tolist():
            self._names.append(int(sessions[row]), str(requests.session_id[row]).encode("utf-8"))
        sessions[chained] = np.frombuffer(self._of_chain, np.int32)[chains] if len(chains) else 0
        sessions[named] = [self._of_name[name] for name in names]
        self._prompts.add(blocks[np.repeat(is_new, counts)], counts[is_new])
        self.count += int(is_new.sum())
        return sessions, agreed

    def prompts_of(self, sessions: Numbers) -> tuple[Numbers, Ids]:
        """The tokens of sessions' prompts, and the ids of their last blocks, where they have any.

        Sessions are numbered as they came.
        """
        counts, blocks = self._prompts.of(sessions)
        return counts * self.block_tokens, self._numbers.ids_of(np.where(counts > 0, blocks, 0))

    def is_named(self, sessions: Numbers) -> NDArray[np.bool_]:
        """Which sessions have a name in the log."""
        return np.isin(sessions, np.frombuffer(self._of_name, np.int32) if self._of_name else [])

    def names(self) -> Iterator[tuple[int, str]]:
        """The sessions that have one, in order."""
        for session, name in self._names.records():
            yield session, name.decode("utf-8")

    def _place_named(
        self,
        requests: MooncakeColumns,
        named: NDArray[np.bool_],
        ids: Ids,
        counts: Numbers,
        is_new: NDArray[np.bool_],
        agreed: Numbers,
    ) -> list[int]:
        """The numbers of names; fills in which of the sessions are new, and what agreed."""
        numbers: list[int] = []
        ends = np.cumsum(counts)
        for row in np.flatnonzero(named).tolist():
            known = len(self._name_numbers)
            number = self._name_numbers.of(str(requests.session_id[row]))
            numbers.append(number)
            whole = array("Q", ids[ends[row] - counts[row] : ends[row]].tobytes())
            tokens = int(requests.input_tokens[row]), int(requests.output_tokens[row])
            is_new[row] = number == known
            if not is_new[row]:
                held, before = self._last.of(number)
                agreed[row] = agreed_tokens(held, before, whole, tokens[0], self.block_tokens)
            self._last.put(number, whole, tokens)
        return numbers


class _LastInputs:
    """The last request of each session that has a name: its blocks, on disk, and its tokens."""

    def __init__(self, scratch: Path | None) -> None:
        self._ids = BlockTable(np.dtype(np.uint64), scratch)
        self._end = 0
        self._begin = array("q")
        self._count = array("i")
        self._input_tokens = array("q")
        self._output_tokens = array("q")

    def of(self, session: int) -> tuple[array[int], tuple[int, int]]:
        """Whole blocks of its input, and input and output tokens."""
        begin, count = self._begin[session], self._count[session]
        ids = self._ids.reach_below(0, 1)[begin : begin + count]
        tokens = self._input_tokens[session], self._output_tokens[session]
        return array("Q", ids.tobytes()), tokens

    def put(self, session: int, blocks: array[int], tokens: tuple[int, int]) -> None:
        """Take a request of a session, which is known or the next one."""
        if session == len(self._begin):
            for column in (self._begin, self._count, self._input_tokens, self._output_tokens):
                column.append(0)
        self._begin[session], self._count[session] = self._end, len(blocks)
        self._input_tokens[session], self._output_tokens[session] = tokens
        self._end += len(blocks)
        self._ids.reach_below(self._end, 1)[self._end - len(blocks) : self._end] = blocks


def _leading(counts: Numbers, kept: Numbers) -> NDArray[np.bool_]:
    """Of lists one after another, of so many elements each, which are the first `kept` ones."""
    place = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return place < np.repeat(kept, counts)

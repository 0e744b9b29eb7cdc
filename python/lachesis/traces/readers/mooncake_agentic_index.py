"""Which requests of an agentic Mooncake file belong to one session, from a few bytes a request.

Sessions are trees of agents that may lie anywhere in the file, and a request may name others before
they are read. So the file is read once for who names whom; the requests themselves wait on disk.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from lachesis.errors import InputError
from lachesis.traces.builder import TraceBuilder
from lachesis.traces.readers.block_chains import blocks_of
from lachesis.traces.readers.mooncake_agentic_rows import AgenticRequest, AgenticRows
from lachesis.traces.record_groups import NameNumbers, RecordGroups

_NONE: Final = -1
_FIELDS: Final = ("wait_for", "branches")

#: A request and the ids of its blocks.
RequestAndBlocks = tuple[AgenticRequest, list[int]]
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(RequestAndBlocks)


class RequestIndex:
    """Requests by number: those that were read or named, in the order in which they first were.

    Attributes:
        ids: numbers of request ids.
        parent: for each agent, by number, the request under which it hangs; -1 for a lead.
    """

    def __init__(self, scratch: Path | None) -> None:
        self.ids = NameNumbers()
        self.parent = array("q")
        self._scratch = scratch
        self._row = array("q")  # 0: not read (yet)
        self._agent = array("q")  # -1: without output, or not read
        self._agents = NameNumbers()
        self._first = array("q")  # of each agent
        self._spawned_by = array("q")  # of each agent's first request
        self._waits_of = array("q")  # an agent, and a request that its first one waits for
        self._waits_for = array("q")
        self._branches_of = array("q")  # a request, and one that it started
        self._branches_to = array("q")
        self._ahead = array("q")  # row, field and request for what was named before it was read
        self._requests = RecordGroups(scratch)  # by agent

    def read(self, rows: AgenticRows, builder: TraceBuilder, dropped: list[str]) -> None:
        """Take every request of the file; raises `InputError` for ids that repeat or are unknown.

        Rows without output are excluded, and counted. A cut-off last line is put in `dropped`.
        """
        for request, blocks in rows.read(dropped):
            number = self._number(request.id)
            if self._row[number]:
                raise InputError("stands there twice", path=rows.file.name, row=request.row,
                                 field="request_id", value=request.id)  # fmt: skip
            self._row[number] = request.row
            if not request.output_tokens:
                builder.exclude("request without output")
                continue
            if request.dispatched:
                how = "after another request's start: taken from its end on"
                builder.fill("delay_s", how, request.dispatched)
            self._take(number, request, blocks)
        self._check_names(rows)

    def is_silent(self, name: str) -> bool:
        """Whether a request that was read has no output."""
        return self._agent[self.ids.of(name)] == _NONE

    def families(self) -> Iterator[list[RequestAndBlocks]]:
        """The requests of each session; by agent, and agent by agent in the order of the file."""
        self._find_parents()
        family_of_root: dict[int, int] = {}
        families = RecordGroups(self._scratch)
        for agent, record in self._requests.records():
            family = family_of_root.setdefault(self._root(agent), len(family_of_root))
            families.append(family, record)
        for _, records in families:
            yield [_DECODER.decode(record) for record in records]

    def parent_of(self, agent: str) -> int:
        """The number of the request under which an agent hangs; -1 for a lead."""
        return self.parent[self._agents.of(agent)]

    def _number(self, name: str) -> int:
        number = self.ids.of(name)
        if number == len(self._row):
            self._row.append(0)
            self._agent.append(_NONE)
        return number

    def _take(self, number: int, request: AgenticRequest, blocks: list[int]) -> None:
        agent = self._agents.of(request.agent)
        waits = [self._named(name, request, 0) for name in request.wait_for]
        if agent == len(self._first):
            self._first.append(number)
            self.parent.append(_NONE)
            by = request.spawned_by
            self._spawned_by.append(self._number(by) if by else _NONE)
            for name, wait in zip(request.wait_for, waits, strict=True):
                if name not in request.barriers:
                    self._waits_of.append(agent)
                    self._waits_for.append(wait)
        for name in request.branches:
            self._branches_of.append(number)
            self._branches_to.append(self._named(name, request, 1))
        self._agent[number] = agent
        self._requests.append(agent, _ENCODER.encode((request, blocks_of(blocks).tolist())))

    def _named(self, name: str, request: AgenticRequest, field: int) -> int:
        number = self._number(name)
        if not self._row[number]:
            self._ahead.extend((request.row, field, number))
        return number

    def _check_names(self, rows: AgenticRows) -> None:
        for row, field, number in zip(*(self._ahead[at::3] for at in range(3)), strict=True):
            if self._row[number]:
                continue
            for _, record in self._requests.records():
                request = _DECODER.decode(record)[0]
                if request.row == row:
                    names = getattr(request, _FIELDS[field])
                    name = next(each for each in names if not self._row[self.ids.of(each)])
                    raise InputError("no request has this id", path=rows.file.name, row=row,
                                     field=_FIELDS[field], value=name)  # fmt: skip

    def _find_parents(self) -> None:
        for by, child in zip(self._branches_of, self._branches_to, strict=True):
            agent = self._agent[child]
            if agent != _NONE and self._first[agent] == child:
                self._adopt(agent, by)
        position = 0
        for agent, named in enumerate(self._spawned_by):
            waits: list[int] = []
            while position < len(self._waits_of) and self._waits_of[position] == agent:
                waits.append(self._waits_for[position])
                position += 1
            if named != _NONE and self._agent[named] != _NONE:
                self._adopt(agent, named)
                continue
            for before in waits:
                if self._agent[before] == _NONE:
                    continue
                known = self.parent[agent]
                if known == _NONE or (
                    self._agent[known] == self._agent[before]
                    and self._row[known] < self._row[before]
                ):
                    self._adopt(agent, before)

    def _adopt(self, agent: int, by: int) -> None:
        # A chain of parents that came back to the child would have no lead.
        if self._agent[by] != agent and self._root(self._agent[by]) != agent:
            self.parent[agent] = by

    def _root(self, agent: int) -> int:
        while self.parent[agent] != _NONE:
            agent = self._agent[self.parent[agent]]
        return agent

"""The placement layer the slow way: sets and lists, every rule in one place.

It places by class alone, or everything in one tier; which blocks a segment gets is the caller's
choice. A call that is refused raises the class of error that the layer must raise.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from lachesis import placement as errors

SHORT_LIVED = {"reasoning-laden", "worker", "reviewer"}
SUB_AGENTS = {"worker", "reviewer"}
OWN_BOUNDARY = {
    "reasoning-laden": "turn_end",
    "worker": "subagent_return",
    "reviewer": "subagent_return",
}


@dataclass
class Segment:
    kind: str
    session: str
    generation: int
    blocks: list[int] = field(default_factory=list)
    closing: bool = False

    def closed_by(self) -> set[str]:
        kinds = {OWN_BOUNDARY.get(self.kind, "session_end"), "session_end"}
        return kinds if self.kind == "prompt" else kinds | {"compaction", "reset"}


@dataclass
class Outcome:
    freed: list[int] = field(default_factory=list)
    deferred: list[int] = field(default_factory=list)
    shared: list[int] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    ignored: str | None = None


class Model:
    def __init__(self, hbm_blocks: int, hbf_blocks: int, policy: str) -> None:
        self.hbm_blocks, self.all_blocks = hbm_blocks, hbm_blocks + hbf_blocks
        self.policy = policy
        self.keeps = policy == "hbm-first"
        self.falls_back = policy not in ("hbf-only", "hbm-only")
        self.segments: dict[str, Segment] = {}
        self.requests: dict[str, set[str]] = {}
        self.generations = 0
        self.last_generation: dict[str, int] = {}
        self.ended_sessions: set[str] = set()
        self.ended_requests: set[str] = set()
        self.kept: list[list[int]] = []
        self.written: set[int] = set()

    # What is held.

    def holders(self) -> Counter[int]:
        held = [segment.blocks for segment in self.segments.values()] + self.kept
        return Counter(block for blocks in held for block in blocks)

    def tier(self, block: int) -> str:
        return "hbm" if block < self.hbm_blocks else "hbf"

    def free(self, tier: str) -> list[int]:
        held = self.holders()
        return [b for b in range(self.all_blocks) if self.tier(b) == tier and not held[b]]

    def target(self, kind: str) -> str:
        if self.policy == "hbf-only":
            return "hbf"
        if self.policy == "hbm-first":
            return "hbm"
        return "hbm" if kind in SHORT_LIVED else "hbf"

    def sessions(self) -> set[str]:
        return {segment.session for segment in self.segments.values()}

    def is_running(self, name: str) -> bool:
        return any(name in names for names in self.requests.values())

    def find(self, name: str, generation: int | None = None) -> str:
        """`live`, `closed` or `unknown`."""
        if name in self.segments:
            present = self.segments[name].generation
            if generation is None or generation == present:
                return "live"
            return "closed" if generation < present else "unknown"
        last = self.last_generation.get(name)
        if last is not None and (generation is None or generation <= last):
            return "closed"
        return "unknown"

    def writable(self, name: str, generation: int | None = None) -> Segment:
        found = self.find(name, generation)
        if found == "live":
            return self.segments[name]
        raise errors.SegmentClosed if found == "closed" else errors.UnknownSegment

    # Calls.

    def open(self, name: str, kind: str, session: str, parent: str | None) -> int:
        if parent is not None:
            found = self.find(parent)
            if found == "unknown":
                raise errors.UnknownSegment
            if found == "live" and self.segments[parent].session != session:
                raise errors.WrongSession
        segment = self.segments.get(name)
        if segment is not None:
            if not segment.closing or (segment.session, segment.kind) != (session, kind):
                raise errors.DuplicateSegment
            segment.closing = False
        else:
            segment = self.segments[name] = Segment(kind, session, 0)
        self.generations += 1
        segment.generation = self.generations
        return self.generations

    def plan(self, name: str, count: int) -> list[str]:
        target = self.target(self.writable(name).kind)
        own = len(self.free(target))
        other = "hbf" if target == "hbm" else "hbm"
        spare = len(self.free(other)) if self.falls_back else 0
        if count > own + spare:
            raise errors.OutOfBlocks
        return [target] * min(count, own) + [other] * max(count - own, 0)

    def commit(self, name: str, blocks: list[int], generation: int | None) -> None:
        segment = self.writable(name, generation)
        held, target = self.holders(), self.target(segment.kind)
        for place, block in enumerate(blocks):
            if block >= self.all_blocks:
                raise errors.UnknownBlock
            if block in blocks[:place] or held[block]:
                raise errors.BlockHeld
            if not self.falls_back and self.tier(block) != target:
                raise errors.WrongTier
        segment.blocks += blocks
        self.written |= set(blocks)

    def adopt(self, name: str, blocks: list[int], cached: bool) -> None:
        segment, held = self.writable(name), self.holders()
        for place, block in enumerate(blocks):
            if block >= self.all_blocks:
                raise errors.UnknownBlock
            if block in blocks[:place]:
                raise errors.BlockHeld
            if block not in self.written or not (cached or held[block]):
                raise errors.UnknownBlock
        if set(blocks) & set(segment.blocks):
            raise errors.BlockHeld
        segment.blocks += blocks

    def free_of(self, name: str, blocks: list[int]) -> Outcome:
        segment, held = self.writable(name), self.holders()
        for place, block in enumerate(blocks):
            if block >= self.all_blocks:
                raise errors.UnknownBlock
            if block in blocks[:place] or not held[block]:
                raise errors.DoubleFree
        if not set(blocks) <= set(segment.blocks):
            raise errors.BlockHeld
        segment.blocks = [block for block in segment.blocks if block not in blocks]
        return self._let_go(blocks, Outcome())

    def start(self, request: str, names: list[str]) -> None:
        if request in self.requests:
            if not set(names) <= self.requests[request]:
                raise errors.DuplicateRequest
            return
        for name in names:
            if self.writable(name).closing:
                raise errors.SegmentClosed
        self.requests[request] = set(names)

    def finish(self, request: str) -> Outcome:
        if request not in self.requests:
            if request in self.ended_requests:
                return Outcome(ignored="repeated")
            raise errors.UnknownRequest
        names = self.requests.pop(request)
        self.ended_requests.add(request)
        outcome = Outcome()
        for name in names:
            if self.segments[name].closing and not self.is_running(name):
                self._end(name, outcome)
        return self._settled(outcome)

    def boundary(
        self, kind: str, session: str, name: str | None, generation: int | None
    ) -> Outcome:
        if name is not None:
            found = self.find(name, generation)
            if found == "closed":
                return Outcome(ignored="late")
            if found == "unknown":
                raise errors.UnknownSegment
            segment = self.segments[name]
            if segment.session != session:
                raise errors.WrongSession
            if kind not in segment.closed_by():
                raise errors.WrongBoundary
            if segment.closing:
                return Outcome(ignored="repeated")
            names = [name]
        else:
            if kind == "subagent_return":
                raise errors.WrongBoundary
            if session not in self.sessions():
                if session in self.ended_sessions:
                    return Outcome(ignored="late")
                raise errors.UnknownSession
            names = [
                name
                for name, segment in self.segments.items()
                if segment.session == session
                and not segment.closing
                and kind in segment.closed_by()
                and (kind == "session_end" or segment.kind not in SUB_AGENTS)
            ]
        outcome = Outcome()
        # The layer goes through a session from its youngest segment to its oldest.
        for name in sorted(names, key=lambda n: self.segments[n].generation, reverse=True):
            if self.is_running(name):
                self.segments[name].closing = True
                outcome.deferred += self.segments[name].blocks
            else:
                self._end(name, outcome)
        return self._settled(outcome)

    def _settled(self, outcome: Outcome) -> Outcome:
        """Shared is what somebody still holds when all is done."""
        held = self.holders()
        outcome.shared = [block for block in dict.fromkeys(outcome.shared) if held[block]]
        return outcome

    def kept_blocks(self) -> int:
        return sum(len(blocks) for blocks in self.kept)

    def _end(self, name: str, outcome: Outcome) -> None:
        segment = self.segments.pop(name)
        self.last_generation[name] = segment.generation
        if segment.session not in self.sessions():
            self.ended_sessions.add(segment.session)
        outcome.closed.append(name)
        if self.keeps and segment.blocks:
            self.kept.append(segment.blocks)
        else:
            self._let_go(segment.blocks, outcome)

    def _let_go(self, blocks: list[int], outcome: Outcome) -> Outcome:
        """The blocks are in no list of ours any more, in the order in which they were let go."""
        held = self.holders()
        for block in blocks:
            (outcome.shared if held[block] else outcome.freed).append(block)
        return outcome

"""Thousands of random calls, legal and illegal, against the plain model.

After each: the layer's census holds, it agrees with the model about every block, and a call that
was refused, with the right error, has changed nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lachesis.placement import LachesisError, Placement, Released

from .plain_model import OWN_BOUNDARY, Model, Outcome

HBM_BLOCKS, HBF_BLOCKS = 6, 8
KINDS = (
    "prompt",
    "reasoning-laden",
    "reasoning-stripped",
    "lead",
    "worker",
    "reviewer",
    "summary",
)
BOUNDARIES = (
    "turn_end",
    "subagent_return",
    "session_end",
    "compaction",
    "request_end",
    "reset",
)

NAMES = ("a", "b", "c", "d", "e")
#: Below 3 any name, known or not; from there on a live segment, so that most calls are legal.
choices = st.integers(0, 14)
sessions = st.sampled_from(["s", "t"])
requests = st.sampled_from(["q", "r"])
kinds = st.sampled_from(KINDS)
generations = st.none() | st.integers(1, 12)
#: One id in fifteen is of no block.
some_blocks = st.lists(st.integers(0, HBM_BLOCKS + HBF_BLOCKS), max_size=4)


class RandomCalls(RuleBasedStateMachine):
    @initialize(policy=st.sampled_from(["lachesis-deterministic", "hbf-only", "hbm-first"]))
    def start(self, policy: str) -> None:
        self.model = Model(HBM_BLOCKS, HBF_BLOCKS, policy)
        self.placement = Placement(HBM_BLOCKS, HBF_BLOCKS, policy=policy)

    def named(self, choice: int) -> str:
        live = sorted(self.model.segments)
        return NAMES[choice % len(NAMES)] if choice < 3 or not live else live[choice % len(live)]

    def unused(self, choice: int) -> str:
        unused = [name for name in NAMES if name not in self.model.segments]
        return (
            unused[choice % len(unused)] if unused and choice >= 3 else NAMES[choice % len(NAMES)]
        )

    def snapshot(self) -> Any:
        return self.placement.stats(), {
            name: self.placement.blocks(name) for name in self.model.segments
        }

    def both(self, ours: Any, expected: Any) -> tuple[Any, Any] | None:
        """What both answer; None where both refuse, with the same error."""
        before, refusal, plain = self.snapshot(), None, None
        try:
            plain = expected()
        except LachesisError as raised:
            refusal = type(raised)
        if refusal is not None:
            with pytest.raises(refusal) as refused:
                ours()
            assert type(refused.value) is refusal
            assert "\n" not in str(refused.value)
            assert self.snapshot() == before
            return None
        return ours(), plain

    def compare(self, answers: tuple[Released, Outcome] | None) -> None:
        if answers is None:
            return
        ours, plain = answers
        assert Counter(ours.freed) == Counter(plain.freed)
        assert Counter(ours.still_shared) == Counter(plain.shared)
        assert Counter(ours.deferred) == Counter(plain.deferred)
        assert Counter(ours.closed) == Counter(plain.closed)
        assert ours.ignored == plain.ignored

    @rule(choice=choices, kind=kinds, session=sessions, spawner=st.none() | choices)
    def open(self, choice: int, kind: str, session: str, spawner: int | None) -> None:
        name, parent = self.unused(choice), None if spawner is None else self.named(spawner)
        answers = self.both(
            lambda: self.placement.open(name, kind, session=session, parent=parent),
            lambda: self.model.open(name, kind, session, parent),
        )
        assert answers is None or answers[0] == answers[1]

    @rule(choice=choices, count=st.integers(0, 16))
    def plan(self, choice: int, count: int) -> None:
        name = self.named(choice)
        before = self.snapshot()
        answers = self.both(
            lambda: self.placement.plan(name, count), lambda: self.model.plan(name, count)
        )
        assert answers is None or answers[0] == answers[1]
        assert self.snapshot() == before

    @rule(choice=choices, count=st.integers(1, 5))
    def append(self, choice: int, count: int) -> None:
        """As an engine does: plan, draw from free lists, commit."""
        name = self.named(choice)
        answers = self.both(
            lambda: self.placement.plan(name, count), lambda: self.model.plan(name, count)
        )
        if answers is None:
            return
        lists = {tier: self.model.free(tier) for tier in ("hbm", "hbf")}
        blocks = [lists[tier].pop(0) for tier in answers[0]]
        self.placement.commit(name, blocks)
        self.model.commit(name, blocks, None)

    @rule(choice=choices, blocks=some_blocks, generation=generations)
    def commit(self, choice: int, blocks: list[int], generation: int | None) -> None:
        name = self.named(choice)
        self.both(
            lambda: self.placement.commit(name, blocks, generation=generation),
            lambda: self.model.commit(name, blocks, generation),
        )

    @rule(choice=choices, blocks=some_blocks, cached=st.booleans())
    def adopt_any(self, choice: int, blocks: list[int], cached: bool) -> None:
        self.adopt(self.named(choice), blocks, cached)

    def adopt(self, name: str, blocks: list[int], cached: bool = False) -> None:
        self.both(
            lambda: self.placement.adopt(name, blocks, cached=cached),
            lambda: self.model.adopt(name, blocks, cached),
        )

    @rule(choice=choices, of=choices, first=st.integers(0, 3), count=st.integers(1, 4))
    def adopt_of(self, choice: int, of: int, first: int, count: int) -> None:
        """As a prefix cache does: blocks that another segment holds."""
        self.adopt(self.named(choice), self.held(of)[first : first + count])

    def held(self, choice: int) -> list[int]:
        segment = self.model.segments.get(self.named(choice))
        return segment.blocks if segment else []

    @rule(choice=choices, blocks=some_blocks)
    def free_any(self, choice: int, blocks: list[int]) -> None:
        self.free(self.named(choice), blocks)

    def free(self, name: str, blocks: list[int]) -> None:
        self.compare(
            self.both(
                lambda: self.placement.free(name, blocks),
                lambda: self.model.free_of(name, blocks),
            )
        )

    @rule(choice=choices, first=st.integers(0, 3), count=st.integers(1, 4))
    def free_own(self, choice: int, first: int, count: int) -> None:
        self.free(self.named(choice), self.held(choice)[first : first + count])

    @rule(request=requests, of=st.lists(choices, min_size=1, max_size=2))
    def start_request(self, request: str, of: list[int]) -> None:
        names = [self.named(choice) for choice in of]
        self.both(
            lambda: self.placement.start_request(request, names),
            lambda: self.model.start(request, names),
        )

    @rule(request=requests, gives_up=st.booleans())
    def finish_request(self, request: str, gives_up: bool) -> None:
        end = self.placement.abort if gives_up else self.placement.finish_request
        self.compare(self.both(lambda: end(request), lambda: self.model.finish(request)))

    @rule(
        kind=st.sampled_from(BOUNDARIES),
        session=sessions,
        of=st.none() | choices,
        generation=generations,
    )
    def boundary_of_any(
        self, kind: str, session: str, of: int | None, generation: int | None
    ) -> None:
        name = None if of is None else self.named(of)
        self.boundary(kind, session, name, generation)

    @rule(choice=choices)
    def own_boundary(self, choice: int) -> None:
        name = self.named(choice)
        segment = self.model.segments.get(name)
        if segment is not None:
            kind = OWN_BOUNDARY.get(segment.kind, "session_end")
            self.boundary(kind, segment.session, name, None)

    def boundary(self, kind: str, session: str, name: str | None, generation: int | None) -> None:
        self.compare(
            self.both(
                lambda: self.placement.boundary(
                    kind, session=session, segment=name, generation=generation
                ),
                lambda: self.model.boundary(kind, session, name, generation),
            )
        )

    @rule(count=st.integers(0, 6))
    def reclaim(self, count: int) -> None:
        """Least recent segment first, last block first, until so many are free."""
        released = self.placement.reclaim(count)
        freed: list[int] = []
        let_go: list[int] = []
        while len(freed) < count and self.model.kept:
            block = self.model.kept[0].pop()
            (let_go if self.model.holders()[block] else freed).append(block)
            if not self.model.kept[0]:
                self.model.kept.pop(0)
        shared = {block for block in let_go if self.model.holders()[block]}
        assert (Counter(released.freed), Counter(released.still_shared)) == (
            Counter(freed),
            Counter(shared),
        )

    @invariant()
    def the_census_holds(self) -> None:
        if hasattr(self, "placement"):
            self.placement.check()

    @invariant()
    def every_block_lies_where_the_model_has_it(self) -> None:
        if not hasattr(self, "placement"):
            return
        stats = self.placement.stats()
        for tier in ("hbm", "hbf"):
            assert stats.free_blocks[tier] == len(self.model.free(tier))
        for name, segment in self.model.segments.items():
            assert self.placement.blocks(name) == segment.blocks
        held = self.model.holders()
        assert stats.shared_blocks == sum(count > 1 for count in held.values())
        assert sum(stats.kept_blocks.values()) == self.model.kept_blocks()
        assert stats.live_segments == len(self.model.segments)
        assert stats.sessions == len(self.model.sessions())
        assert stats.running_requests == len(self.model.requests)

    def teardown(self) -> None:
        """Free everything at the end: nothing is left."""
        if not hasattr(self, "placement"):
            return
        for request in list(self.model.requests):
            self.placement.finish_request(request)
            self.model.finish(request)
        for session in self.model.sessions():
            self.placement.boundary("session_end", session=session)
        self.placement.reclaim(HBM_BLOCKS + HBF_BLOCKS)
        stats = self.placement.stats()
        assert stats.free_blocks == stats.total_blocks
        assert (stats.live_segments, stats.sessions, stats.extents) == (0, 0, 0)


TestRandomCalls = RandomCalls.TestCase
TestRandomCalls.settings = settings(
    max_examples=200,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

"""Benchmarks of placement as Python calls it, and of a policy in Python beside one in Rust."""

from __future__ import annotations

import pytest

from lachesis.placement import Placement, PythonPolicy

SHORT_LIVED = frozenset({"worker", "reviewer", "reasoning-laden"})
SEGMENTS = 10_000


class Deterministic(PythonPolicy):
    def segment_opened(self, segment, node):
        return "hbm" if segment.kind in SHORT_LIVED else "hbf"


@pytest.mark.parametrize("written_in", ["rust", "python"])
def test_segments_opened_and_closed(benchmark, written_in):
    """10,000 segments: what a decision costs is the difference, over 20,000 decisions."""
    policy = "lachesis-deterministic" if written_in == "rust" else Deterministic()

    def setup():
        return (Placement(10, 10, policy=policy),), {}

    def open_and_close(placement):
        for segment in range(SEGMENTS):
            placement.open(segment, "worker", session=0)
        placement.boundary("session_end", session=0)

    benchmark.pedantic(open_and_close, setup=setup, rounds=20)


def test_appends(benchmark):
    """1,000 appends of a block, planned and committed, as an engine in Python makes them."""
    blocks = [[block] for block in range(1_000)]

    def setup():
        placement = Placement(1_000, 10, policy="lachesis-deterministic")
        placement.open("worker", "worker", session=0)
        return (placement,), {}

    def append(placement):
        for block in blocks:
            placement.plan("worker", 1)
            placement.commit("worker", block)

    benchmark.pedantic(append, setup=setup, rounds=50)

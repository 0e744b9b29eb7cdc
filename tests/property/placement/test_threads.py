"""Random calls, legal and illegal, from several threads at once: nothing is lost between them."""

from __future__ import annotations

import random
import threading

from hypothesis import given, settings
from hypothesis import strategies as st

from lachesis.placement import Placement, PlacementError

HBM_BLOCKS, HBF_BLOCKS = 40, 60
CALLS = 400


class FreeLists:
    """Not guarded: the layer lets one call at a time draw from an engine."""

    def __init__(self) -> None:
        self.ids = {
            "hbm": set(range(HBM_BLOCKS)),
            "hbf": set(range(HBM_BLOCKS, HBM_BLOCKS + HBF_BLOCKS)),
        }

    def alloc(self, tier):
        return self.ids[tier].pop()

    def free(self, blocks):
        for block in blocks:
            ids = self.ids["hbm" if block < HBM_BLOCKS else "hbf"]
            assert block not in ids, f"block {block} came back twice"
            ids.add(block)

    def free_blocks(self, tier):
        return len(self.ids[tier])


def call_at_random(placement: Placement, chance: random.Random) -> None:
    """One call; the threads share all names, so that they get into each other's way."""
    segment, other = chance.choice("abcdef"), chance.choice("abcdef")
    session = chance.choice("st")
    request = chance.choice("qr")
    kind = chance.choice(["worker", "reviewer", "lead", "prompt", "reasoning-laden"])
    boundaries = ["turn_end", "subagent_return", "session_end", "compaction"]
    chance.choice(
        [
            lambda: placement.open(segment, kind, session=session),
            lambda: placement.spawn(segment, {}, session=session, parent=other),
            lambda: placement.extend(segment, chance.randint(0, 12)),
            lambda: placement.extend(segment, chance.randint(0, 3)),
            lambda: placement.commit(segment, [HBM_BLOCKS + HBF_BLOCKS]),
            lambda: placement.adopt(segment, placement.blocks(other)[:3]),
            lambda: placement.free(segment, placement.blocks(other)[:2]),
            lambda: placement.evict(segment),
            lambda: placement.start_request(request, [segment, other]),
            lambda: placement.finish_request(request),
            lambda: placement.abort(request),
            lambda: placement.boundary(chance.choice(boundaries), session=session),
            lambda: placement.boundary("subagent_return", session=session, segment=segment),
            lambda: placement.reclaim(3),
            lambda: placement.reap(),
            lambda: placement.check(),
            lambda: placement.stats(),
        ]
    )()


@given(
    seed=st.integers(0, 2**32),
    policy=st.sampled_from(["lachesis", "lachesis-deterministic", "hbm-first"]),
)
@settings(max_examples=15, deadline=None)
def test_threads_that_get_into_each_others_way_lose_nothing(seed, policy):
    engine = FreeLists()
    placement = Placement(HBM_BLOCKS, HBF_BLOCKS, policy=policy, engine=engine)
    faults: list[BaseException] = []
    accepted = [0] * 4

    def work(thread: int) -> None:
        chance = random.Random(seed * 4 + thread)
        for _ in range(CALLS):
            try:
                call_at_random(placement, chance)
                accepted[thread] += 1
            except PlacementError:
                pass
            except BaseException as fault:
                faults.append(fault)
                raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert min(accepted) > CALLS // 10, "most calls would test nothing if most were refused"

    for request in "qr":
        if placement.stats().running_requests:
            placement.finish_request(request)
    for session in "st":
        placement.boundary("session_end", session=session)
    placement.reclaim(HBM_BLOCKS + HBF_BLOCKS)
    placement.check()
    stats = placement.stats()
    assert stats.free_blocks == stats.total_blocks
    assert (engine.free_blocks("hbm"), engine.free_blocks("hbf")) == (HBM_BLOCKS, HBF_BLOCKS)

"""One placement, two threads: each replays sessions of its own, and no block is lost between them.

Run it: ``python examples/two_threads.py``. Here the engine asks: it plans, draws from its own lists
under its own lock, and commits what it drew.
"""

from __future__ import annotations

import random
import threading

from in_memory_engine import FreeLists

from lachesis.placement import OutOfBlocks, Placement

HBM_BLOCKS, HBF_BLOCKS = 2_000, 6_000
SESSIONS = 200


class SharedLists(FreeLists):
    """The free lists again, under the engine's lock: a plan may be outrun by the other thread."""

    def __init__(self, hbm_blocks: int, hbf_blocks: int) -> None:
        super().__init__(hbm_blocks, hbf_blocks)
        self.lock = threading.Lock()

    def draw(self, tiers: list[str]) -> list[int]:
        """A block for each tier named, or of the other where another thread was faster."""
        with self.lock:
            if len(tiers) > len(self.lists["hbm"]) + len(self.lists["hbf"]):
                raise OutOfBlocks(f"out of blocks: {len(tiers)} asked for")
            return [
                self.alloc(tier if self.lists[tier] else ("hbf" if tier == "hbm" else "hbm"))
                for tier in tiers
            ]

    def give_back(self, blocks: list[int]) -> None:
        with self.lock:
            self.free(blocks)


def serve(name: str, placement: Placement, engine: SharedLists, seed: int) -> None:
    """Replay sessions one after the other: a lead, some workers, their returns, the end."""
    chance = random.Random(seed)
    for number in range(SESSIONS):
        session = f"{name}/{number}"
        lead = f"{session}/lead"
        placement.open(lead, "lead", session=session)
        for task in range(chance.randint(1, 5)):
            worker = f"{session}/worker-{task}"
            placement.spawn(worker, {"tools": ["shell"]}, session=session, parent=lead)
            for segment, blocks in ((worker, chance.randint(1, 60)), (lead, chance.randint(1, 9))):
                request = f"{segment}/{blocks}"
                placement.start_request(request, [segment])
                placement.commit(segment, engine.draw(placement.plan(segment, blocks)))
                engine.give_back(placement.finish_request(request).freed)
            released = placement.boundary("subagent_return", session=session, segment=worker)
            engine.give_back(released.freed)
        engine.give_back(placement.boundary("session_end", session=session).freed)


def main() -> None:
    engine = SharedLists(HBM_BLOCKS, HBF_BLOCKS)
    placement = Placement(HBM_BLOCKS, HBF_BLOCKS, policy="lachesis-deterministic")
    failed: list[BaseException] = []

    def run(name: str, seed: int) -> None:
        try:
            serve(name, placement, engine, seed)
        except BaseException as fault:
            failed.append(fault)
            raise

    threads = [threading.Thread(target=run, args=work) for work in (("left", 1), ("right", 2))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]

    placement.check()
    stats = placement.stats()
    written = {
        tier: sum(by_tier[tier] for by_tier in stats.written_blocks.values())
        for tier in ("hbm", "hbf")
    }
    print(f"{stats.closed} segments of {2 * SESSIONS} sessions closed by two threads")
    print(f"{written['hbm']} blocks written to HBM, {written['hbf']} to HBF, none of them lost:")
    for tier in ("hbm", "hbf"):
        print(
            f"  {tier.upper()}: {stats.free_blocks[tier]} of {stats.total_blocks[tier]} free, "
            f"the engine's list has {engine.free_blocks(tier)}"
        )


if __name__ == "__main__":
    main()

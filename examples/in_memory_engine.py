"""An engine in memory, driven by a scripted harness: what lies where after each event.

Run it: ``python examples/in_memory_engine.py``. A block is a row of the printed map: the first
letters of the segments that hold it, or a dot.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from lachesis.placement import Placement, Released, SpawnRecord, Tier

HBM_BLOCKS, HBF_BLOCKS = 12, 24


class FreeLists:
    """All that Lachesis asks of an engine: one free list a tier."""

    def __init__(self, hbm_blocks: int, hbf_blocks: int) -> None:
        self.hbm_blocks = hbm_blocks
        self.lists: dict[Tier, deque[int]] = {
            "hbm": deque(range(hbm_blocks)),
            "hbf": deque(range(hbm_blocks, hbm_blocks + hbf_blocks)),
        }

    def alloc(self, tier: Tier) -> int:
        return self.lists[tier].popleft()

    def free(self, blocks: Sequence[int]) -> None:
        for block in sorted(blocks, reverse=True):
            self.lists["hbm" if block < self.hbm_blocks else "hbf"].appendleft(block)

    def free_blocks(self, tier: Tier) -> int:
        return len(self.lists[tier])


class ByInstruction:
    """Stands in for a trained predictor: long instructions make long-lived workers."""

    def score(self, record: SpawnRecord) -> float:
        return float(len(record.instruction or ""))


def show(placement: Placement, names: Sequence[str], event: str) -> None:
    """Print both tiers, a letter a block, and have every block counted."""
    holders: dict[int, str] = {}
    for name in names:
        for block in placement.blocks(name):
            holders[block] = holders.get(block, "") + name[0]
    row = [holders.get(block, ".") for block in range(HBM_BLOCKS + HBF_BLOCKS)]
    hbm, hbf = " ".join(row[:HBM_BLOCKS]), " ".join(row[HBM_BLOCKS:])
    print(f"{event:44} HBM {hbm:26} HBF {hbf}")
    placement.check()


def told(released: Released) -> str:
    """What came back, in words."""
    parts = {
        "freed": released.freed,
        "deferred": released.deferred,
        "still shared": released.still_shared,
    }
    return (
        ", ".join(f"{len(blocks)} {name}" for name, blocks in parts.items() if blocks) or "nothing"
    )


def main() -> None:
    engine = FreeLists(HBM_BLOCKS, HBF_BLOCKS)
    placement = Placement(HBM_BLOCKS, HBF_BLOCKS, predictor=ByInstruction(), engine=engine)
    live: list[str] = []

    def request(number: int, blocks: dict[str, int]) -> None:
        """One request: it runs on some segments and writes so many blocks to each."""
        placement.start_request(number, list(blocks))
        for segment, count in blocks.items():
            placement.extend(segment, count)
        placement.finish_request(number)
        written = ", ".join(f"{count} to {name}" for name, count in blocks.items() if count)
        show(placement, live, f"request {number} writes {written}")

    for segment, kind in (("Prompt", "prompt"), ("Lead", "lead")):
        placement.open(segment, kind, session="s")
        live.append(segment)
    request(1, {"Prompt": 4, "Lead": 2})

    for worker, task in (("a-worker", "List the files."), ("b-worker", "Mend the build. " * 9)):
        score = placement.spawn(worker, {"instruction": task}, session="s", parent="Lead")
        live.append(worker)
        show(placement, live, f"spawn {worker}: score {score.value:.0f}, to {score.tier}")
    placement.adopt("a-worker", placement.blocks("Prompt"))  # found in the prefix cache
    show(placement, live, "a-worker shares the prompt")
    request(2, {"a-worker": 5})
    request(3, {"b-worker": 8})

    placement.start_request(4, ["b-worker"])
    released = placement.boundary("subagent_return", session="s", segment="b-worker")
    show(placement, live, f"b-worker returns in request 4: {told(released)}")
    live.remove("b-worker")
    show(placement, live, f"request 4 ends: {told(placement.finish_request(4))}")
    live.remove("a-worker")
    released = placement.boundary("subagent_return", session="s", segment="a-worker")
    show(placement, live, f"a-worker returns: {told(released)}")

    placement.spawn("Reviewer", {"role": "reviewer"}, session="s", parent="Lead")
    live.append("Reviewer")
    request(5, {"Reviewer": 3, "Lead": 0})
    released = placement.boundary("session_end", session="s")
    show(placement, [], f"the session ends: {told(released)}")
    late = placement.boundary("subagent_return", session="s", segment="Reviewer")
    show(placement, [], f"the reviewer's return comes late: {late.ignored}")


if __name__ == "__main__":
    main()

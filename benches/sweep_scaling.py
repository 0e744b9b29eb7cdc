"""How much faster a sweep is on two threads than on one: ``python benches/sweep_scaling.py``.

Alternates the two, and compares the fastest wall times and the medians of all else. Short runs are
the hard case, since all that Python does between replays counts. On a machine that does other
things too the wall times say little. The kernel's own account of each thread then says more: what
it ran, what it waited for a core, and what it was blocked, which here is waiting for the other
thread to let go of the GIL. With two free cores the speed-up is
2 x CPU time on one thread / (CPU time on two + blocked).
"""

import os
import threading
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from lachesis.simulation import LoadedTrace
from lachesis.sweeps import Cell, Specification, expand, read_source, run_cell

ROUNDS = 5
GRID = {
    "trace": "tau3-airline",
    "turnovers": 2,
    "memory": ["1/7", "4/4"],
    "load": [8, 100],
    "seed": {"from": 1, "to": 30},
}


class Spent(NamedTuple):
    """Seconds: wall time of the slowest thread; CPU and blocked time of all."""

    wall_s: float
    run_s: float
    blocked_s: float


def account() -> tuple[float, float]:
    """Seconds that this thread ran, and that it waited for a core (Linux's schedstat)."""
    file = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    run, waited, _ = file.read_text().split()
    return int(run) / 1e9, int(waited) / 1e9


def spend(cells: list[Cell], loaded: LoadedTrace, threads: int) -> Spent:
    """Run all cells, dealt out to so many threads."""
    found: list[Spent] = []
    start = threading.Barrier(threads)

    def work(own: list[Cell]) -> None:
        start.wait()
        began, (run, waited) = time.perf_counter(), account()
        for cell in own:
            run_cell(cell, loaded)
        wall_s, (run_end, waited_end) = time.perf_counter() - began, account()
        run_s = run_end - run
        found.append(Spent(wall_s, run_s, wall_s - run_s - (waited_end - waited)))

    pool = [threading.Thread(target=work, args=(cells[n::threads],)) for n in range(threads)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    return Spent(
        max(each.wall_s for each in found),
        sum(each.run_s for each in found),
        sum(each.blocked_s for each in found),
    )


def main() -> None:
    """Print what one and two threads take."""
    cells = expand(Specification.parse({"grid": GRID}))
    loaded = read_source(cells[0].source)
    spend(cells[:4], loaded, 1)  # makes what is made once
    taken: dict[int, list[Spent]] = {1: [], 2: []}
    for _ in range(ROUNDS):
        for threads, spent in taken.items():
            spent.append(spend(cells, loaded, threads))
    best = {
        threads: Spent(
            min(each.wall_s for each in spent),
            median(each.run_s for each in spent),
            median(each.blocked_s for each in spent),
        )
        for threads, spent in taken.items()
    }
    cores = len(os.sched_getaffinity(0))
    print(f"{2 * len(cells)} runs on {cores} cores, load average {os.getloadavg()[0]:.1f}")
    for threads, spent in best.items():
        print(
            f"{threads} thread(s): wall {spent.wall_s:.2f} s, CPU {spent.run_s:.2f} s, blocked "
            f"{spent.blocked_s:.2f} s"
        )
    print(f"speed-up by wall time {best[1].wall_s / best[2].wall_s:.2f}")
    free = 2 * best[1].run_s / (best[2].run_s + best[2].blocked_s)
    print(f"speed-up with two free cores, by CPU and blocked time {free:.2f}")


if __name__ == "__main__":
    main()

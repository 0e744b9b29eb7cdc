"""How much faster a sweep is on two threads than on one: ``python benches/sweep_scaling.py``.

Alternates the two, so that whatever else the machine does meets both, and compares the fastest of
each. Short runs are the hard case: all that Python does between replays counts.
"""

import os
import tempfile
import time

from lachesis.sweeps import Specification, on_threads, sweep

ROUNDS = 5
GRID = {
    "trace": "tau3-airline",
    "turnovers": 2,
    "memory": ["1/7", "4/4"],
    "load": [8, 100],
    "seed": {"from": 1, "to": 25},
}


def seconds(threads: int) -> float:
    """Wall time of one sweep into a fresh directory, reading the trace included."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        sweep(Specification.parse({"grid": GRID}), folder, on_threads(threads))
        return time.perf_counter() - started


def main() -> None:
    """Print the fastest of both and their ratio."""
    runs = Specification.parse({"grid": GRID}).runs
    seconds(1)  # reads and compiles what is read and compiled once
    found = {threads: [] for threads in (1, 2)}
    for _ in range(ROUNDS):
        for threads, times in found.items():
            times.append(seconds(threads))
    one, two = min(found[1]), min(found[2])
    print(
        f"{runs} runs, {len(os.sched_getaffinity(0))} cores, load average {os.getloadavg()[0]:.1f}"
    )
    print(f"one thread {one:.2f} s, two threads {two:.2f} s: {one / two:.2f} times as fast")


if __name__ == "__main__":
    main()

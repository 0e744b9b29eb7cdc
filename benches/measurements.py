"""What `report.py` measures: replays, imports and instructions, each in a process of its own.

A replay is timed in seconds of CPU of its one thread, the fastest of several rounds, because other
work on the machine disturbs that least; where two cores are compared it is wall time.
"""

from __future__ import annotations

import json
import multiprocessing
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 9


@dataclass(frozen=True)
class Work:
    """One replay.

    Attributes:
        trace: a file, or the name of a corpus.
        policy: placement policy.
        load: as for ``lachesis run --load``; a recorded one is replayed once, whole.
        gpus: of the node; the peers that we compare with simulate one.
        memory: split of the slots.
        turnovers: ended sessions in loads, where the load is closed.
        rounds: of which the fastest counts.
    """

    trace: str
    policy: str
    load: str = "recorded"
    gpus: int = 8
    memory: str = "2/6"
    turnovers: float = 10.0
    rounds: int = ROUNDS


@dataclass(frozen=True)
class Measured:
    """What a replay cost, and what it simulated.

    Attributes:
        cpu_s: seconds of one core, the fastest round.
        read_s: seconds to read the trace into the engine's columns.
        peak_mb: most memory that the process held.
        counts: requests, steps, output tokens and more of the run.
    """

    cpu_s: float
    read_s: float
    peak_mb: float
    counts: dict[str, Any] = field(repr=False)

    def per_s(self, what: str) -> float:
        """A count a second of one core."""
        return float(self.counts[what]) / self.cpu_s


def alone(work: Callable[..., Any], *arguments: object) -> Any:
    """The result of a function called in a fresh process, whose memory is its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(work, *arguments).result()


def prepare(work: Work) -> tuple[Callable[[], dict[str, Any]], float]:
    """A function that replays the work once, and the seconds that reading took."""
    from lachesis.policy import choose_policy
    from lachesis.presets import Settings, apply_overrides
    from lachesis.simulation import Load, Plan, Stopping, replay, to_workload
    from lachesis.traces import open_trace

    load = Load.parse(work.load)
    started = time.perf_counter()
    workload = to_workload(open_trace(work.trace), recorded=load.kind == "recorded")
    read_s = time.perf_counter() - started
    settings = apply_overrides(Settings.choose(memory=work.memory), [f"node.gpus={work.gpus}"])
    stopping = Stopping(turnovers=work.turnovers, warm_up_turnovers=0.0, fixed=True)
    plan = Plan(settings, stopping=stopping)
    policy, cost = choose_policy(work.policy), plan.cost()

    def once() -> dict[str, Any]:
        outcome = replay(workload, plan, policy, load, cost=cost)
        whole: dict[str, Any] = outcome.measured["whole"]
        return whole

    return once, read_s


def measure(work: Work) -> Measured:
    """Replay some rounds in this process."""
    once, read_s = prepare(work)
    counts = once()
    fastest_s = float("inf")
    for _ in range(work.rounds):
        started = time.thread_time()
        once()
        fastest_s = min(fastest_s, time.thread_time() - started)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Measured(fastest_s, read_s, peak_mb, counts)


def cores_gain(work: Work, cores: int, replays: int = 8) -> tuple[float, float]:
    """Wall seconds of `replays` replays on one thread, and on `cores`."""
    once, _ = prepare(work)
    once()
    fastest = []
    for threads in (1, cores):
        taken = []
        for _ in range(3):
            started = time.perf_counter()
            with ThreadPoolExecutor(threads) as pool:
                for done in [pool.submit(once) for _ in range(replays)]:
                    done.result()
            taken.append(time.perf_counter() - started)
        fastest.append(min(taken))
    return fastest[0], fastest[1]


def import_s(words: str, rounds: int = 5) -> float:
    """Seconds of a fresh Python that does this, less those of one that does nothing."""

    def fastest(code: str) -> float:
        taken = []
        for _ in range(rounds):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(taken)

    return fastest(words) - fastest("pass")


def instructions(requests: int, input_tokens: int, output_tokens: int) -> float | None:
    """Instructions that the core takes for one request of W1's kind; None without Valgrind.

    Raises:
        RuntimeError: the example is not built, or Valgrind does not say a count.
    """
    if shutil.which("valgrind") is None:
        return None
    program = ROOT / "target" / "release" / "examples" / "plain_replay"
    if not program.exists():
        raise RuntimeError("run: cargo build --release -p lachesis-core --example plain_replay")

    def counted(repeats: int) -> int:
        words = [str(program), *map(str, (requests, input_tokens, output_tokens, repeats))]
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *words]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
        found = re.search(r"Collected : (\d+)", said)
        if found is None:
            raise RuntimeError(f"valgrind said no count: {said[-200:]}")
        return int(found.group(1))

    return (counted(1) - counted(0)) / requests


def criterion_rates() -> dict[str, float]:
    """Blocks a second by benchmark, from the last ``cargo bench -p lachesis-core --bench kv``."""
    rates = {}
    for path in sorted((ROOT / "target" / "criterion").glob("*/*/new/estimates.json")):
        described = json.loads(path.with_name("benchmark.json").read_text())
        each = described.get("throughput") or {}
        if "Elements" in each and described["group_id"] in ("extents", "block ids"):
            nanoseconds = json.loads(path.read_text())["median"]["point_estimate"]
            name = f"{described['group_id']}: {described['function_id']}"
            rates[name] = each["Elements"] / nanoseconds * 1e9
    return rates

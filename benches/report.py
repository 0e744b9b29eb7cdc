"""Measures, and prints the tables of docs/benchmarks.md as Markdown.

    cargo bench -p lachesis-core --bench kv
    cargo build --release -p lachesis-core --example plain_replay
    python benches/report.py [PART]... [--conversation FILE] [--folder DIR]

PART is any of plain, corpora, cores, allocator, growth, start; all if none is named. FILE is
Mooncake's conversation_trace.jsonl (W2). The allocator's rates are those of the last `cargo bench`,
and instructions are counted where Valgrind is installed.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from measurements import (
    Measured,
    Work,
    alone,
    cores_gain,
    criterion_rates,
    import_s,
    instructions,
    measure,
)
from plain_workloads import write_workloads

#: Requests a second of other simulators on the same workloads, one process on a 2-core machine.
PEERS = {
    "W1": (("DynoSim", 9_900), ("vidur", 862), ("Frontier", 70)),
    "W3": (("DynoSim", 6_000), ("DynoSim, two lower tiers", 930)),
    "W3L": (("DynoSim", 2_700),),
    "W2": (("DynoSim, 8 workers", 2_350),),
}


#: W1 in one tier, as the peers have it; the others in both.
POLICIES = {"W1": "hbm-only", "W2": "hbm-first", "W3": "hbm-first", "W3L": "hbm-first"}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; all columns but the first are numbers."""
    print("| " + " | ".join(head) + " |")
    print("|---" + "|--:" * (len(head) - 1) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def heading(text: str) -> None:
    """Print a heading."""
    print(f"### {text}\n", flush=True)


def machine() -> str:
    """The machine's kind and the date."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"model name\s*:\s*(.+)", info.read_text())
        cpu = found.group(1).strip() if found else cpu
    cores = len(os.sched_getaffinity(0))
    python = ".".join(map(str, sys.version_info[:3]))
    day = time.strftime("%Y-%m-%d")
    return f"{cpu}, {cores} cores, {platform.system()}, Python {python}, {day}"


def plain(folder: Path, conversation: Path | None) -> None:
    """W1, W2, W3 and W3L on one GPU and one core."""
    heading("Plain request lists, one core")
    files = write_workloads(folder)
    if conversation is not None:
        files["W2"] = conversation
    rows = []
    for name, path in files.items():
        found: Measured = alone(measure, Work(str(path), POLICIES[name], gpus=1))
        beside = [
            f"{peer} {rate:,} (× {found.per_s('requests') / rate:,.0f})"
            for peer, rate in PEERS[name]
        ]
        rows.append(
            (
                f"{name}: {found.counts['requests']:,} requests, {POLICIES[name]}",
                f"{found.per_s('requests'):,.0f}",
                f"{found.per_s('output_tokens') / 1e6:,.0f} M",
                f"{found.per_s('steps'):,.0f}",
                f"{found.cpu_s * 1e3:.1f} ms",
                f"{found.read_s:.1f} s",
                f"{found.peak_mb:,.0f} MB",
                "; ".join(beside),
            )
        )
    head = ("workload", "requests/s", "decode tokens/s", "steps/s", "replay", "reading", "memory")
    table((*head, "peers, requests/s"), rows)


def corpora() -> None:
    """The built-in corpus `multi-agent` at fixed loads."""
    heading("`multi-agent`, Llama 4 Maverick, 2/6, one core")
    rows = []
    for policy in ("hbm-first", "lachesis-deterministic", "hbf-only"):
        for load in ("100", "400", "1600"):
            turnovers = 4_000.0 / float(load)
            work = Work("multi-agent", policy, load, turnovers=turnovers, rounds=3)
            found: Measured = alone(measure, work)
            rows.append(
                (
                    f"{policy}, {load} sessions",
                    f"{found.counts['requests']:,}",
                    f"{found.per_s('requests'):,.0f}",
                    f"{found.per_s('steps'):,.0f}",
                    f"{found.per_s('output_tokens') / 1e6:,.0f} M",
                    f"{found.peak_mb:,.0f} MB",
                )
            )
    head = ("policy and load", "requests", "requests/s", "steps/s", "decode tokens/s", "memory")
    table(head, rows)


def cores() -> None:
    """The same replays on one core and on all."""
    count = len(os.sched_getaffinity(0))
    heading(f"One core and {count}")
    work = Work("multi-agent", "lachesis-deterministic", "400")
    one_s, all_s = alone(cores_gain, work, count)
    row = ("8 replays of `multi-agent`", f"{one_s:.2f} s", f"{all_s:.2f} s", f"{one_s / all_s:.2f}")
    table(("work", "one thread", f"{count} threads", "times as fast"), [row])


def allocator() -> None:
    """Blocks a second, as `cargo bench` measured them last."""
    heading("Allocator")
    rates = criterion_rates()
    if not rates:
        print("Not measured: run `cargo bench -p lachesis-core --bench kv` first.\n")
        return
    table(
        ("operation", "blocks/s"), [(name, f"{rate / 1e6:,.0f} M") for name, rate in rates.items()]
    )


def growth() -> None:
    """Instructions a request as requests and their tokens grow."""
    heading("Instructions a request (W1's kind, one GPU)")
    shapes = [
        *((requests, 2_048, 256) for requests in (2_000, 8_000, 32_000)),
        *((8_000, tokens, 256) for tokens in (512, 8_192, 32_768)),
        *((8_000, 2_048, tokens) for tokens in (64, 1_024, 4_096)),
    ]
    rows = []
    for requests, input_tokens, output_tokens in shapes:
        count = instructions(requests, input_tokens, output_tokens)
        if count is None:
            print("Not counted: Valgrind is not installed.\n")
            return
        rows.append(
            (f"{requests:,} requests", f"{input_tokens:,}", f"{output_tokens:,}", f"{count:,.0f}")
        )
    table(("trace", "input tokens", "output tokens", "instructions a request"), rows)


def start() -> None:
    """What it takes to start."""
    heading("Start")
    asked = {
        "`import lachesis`": "import lachesis",
        "`lachesis --help`": "from lachesis.cli import main; import sys; sys.argv = ['lachesis', "
        "'--help']\ntry:\n    main()\nexcept SystemExit:\n    pass",
        "`import lachesis.simulation`": "import lachesis.simulation",
        "`import lachesis.placement`": "import lachesis.placement",
    }
    rows = [(name, f"{import_s(code) * 1e3:,.0f} ms") for name, code in asked.items()]
    table(("what", "CPU time"), rows)


def main() -> None:
    """Measure the parts that the command line asks for."""
    parser = argparse.ArgumentParser(description="Measure, and print tables as Markdown.")
    parts = ("plain", "corpora", "cores", "allocator", "growth", "start")
    parser.add_argument("part", nargs="*", choices=[*parts, []], help="of the report; all if none")
    parser.add_argument("--conversation", type=Path, help="Mooncake's conversation trace, for W2")
    parser.add_argument("--folder", type=Path, help="where the workloads are written")
    asked = parser.parse_args()
    print(f"{machine()}.\n")
    with tempfile.TemporaryDirectory() as scratch:
        for part in asked.part or parts:
            if part == "plain":
                plain(asked.folder or Path(scratch), asked.conversation)
            else:
                {"corpora": corpora, "cores": cores, "allocator": allocator, "growth": growth,
                 "start": start}[part]()  # fmt: skip


if __name__ == "__main__":
    main()

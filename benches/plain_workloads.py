"""Plain request lists, the same work for every simulator: W1, W3 and W3L.

    python benches/plain_workloads.py FOLDER [--scale X] [--seed N]

writes into FOLDER

    w1.frontier.csv            10,000 requests of 2,048 tokens in and 256 out, Poisson arrivals of
                               4 a second (columns of vidur and Frontier)
    w3.agentic-mooncake.jsonl  200 sessions of 10 turns: a context of 4,096 tokens that grows by
                               1,024 a turn, 256 of them the last turn's output; 256 out a turn; 2 s
                               of tools between turns; all sessions start at once
    w3l.agentic-mooncake.jsonl the same with 1,000 sessions of 20 turns

Equal arguments give equal bytes. `lachesis run FILE --load recorded` replays one; so do the
simulators whose formats these are. W2, Mooncake's conversation trace, is published at
github.com/kvcache-ai/Mooncake (FAST25-release/traces/conversation_trace.jsonl); `lachesis run`
reads it as it is.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

W1_INPUT, W1_OUTPUT, W1_PER_S = 2_048, 256, 4.0
FIRST_CONTEXT, GROWTH, OUTPUT, TOOL_WAIT_MS = 4_096, 1_024, 256, 2_000
BLOCK_TOKENS = 16
W1_REQUESTS = 10_000
W3_SHAPE, W3L_SHAPE = (200, 10), (1_000, 20)


def w1_lines(requests: int, seed: int, per_s: float = W1_PER_S) -> Iterator[str]:
    """W1 as a CSV of vidur and Frontier."""
    yield "arrived_at,num_prefill_tokens,num_decode_tokens\n"
    gaps_s = np.random.default_rng(seed).exponential(1.0 / per_s, requests)
    for arrived_s in np.cumsum(gaps_s).tolist():
        yield f"{arrived_s:.9f},{W1_INPUT},{W1_OUTPUT}\n"


def w3_lines(sessions: int, turns: int, context: int = FIRST_CONTEXT) -> Iterator[str]:
    """W3 as agentic Mooncake; every session's blocks are its own."""
    blocks = (context + GROWTH * (turns - 1)) // BLOCK_TOKENS
    for session in range(sessions):
        first = session * blocks
        for turn in range(turns):
            tokens = context + GROWTH * turn
            row: dict[str, object] = {
                "session_id": f"session-{session}",
                "request_id": f"session-{session}:{turn}",
                "input_length": tokens,
                "output_length": OUTPUT,
                "hash_ids": list(range(first, first + tokens // BLOCK_TOKENS)),
            }
            if turn:
                before = f"session-{session}:{turn - 1}"
                row |= {"wait_for": [before], "tool_wait_ms": TOOL_WAIT_MS}
            else:
                row["timestamp"] = 0
            yield json.dumps(row, separators=(",", ":")) + "\n"


def write_workloads(folder: Path, *, scale: float = 1.0, seed: int = 1) -> dict[str, Path]:
    """Write all of them, `scale` times as many requests or sessions; returns the files by name."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "W1": folder / "w1.frontier.csv",
        "W3": folder / "w3.agentic-mooncake.jsonl",
        "W3L": folder / "w3l.agentic-mooncake.jsonl",
    }

    def times(count: int) -> int:
        return max(1, round(count * scale))

    lines = {
        "W1": w1_lines(times(W1_REQUESTS), seed),
        "W3": w3_lines(times(W3_SHAPE[0]), W3_SHAPE[1]),
        "W3L": w3_lines(times(W3L_SHAPE[0]), W3L_SHAPE[1]),
    }
    for name, path in files.items():
        with path.open("w", encoding="utf-8") as file:
            file.writelines(lines[name])
    return files


def main() -> None:
    """Write the workloads that the command line asks for."""
    parser = argparse.ArgumentParser(description="Write the plain workloads W1, W3 and W3L.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=float, default=1.0, help="times as many requests")
    parser.add_argument("--seed", type=int, default=1, help="of W1's arrivals")
    asked = parser.parse_args()
    for path in write_workloads(asked.folder, scale=asked.scale, seed=asked.seed).values():
        print(path)


if __name__ == "__main__":
    main()

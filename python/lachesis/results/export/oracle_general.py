"""libCacheSim's oracleGeneral: the stream of accesses to KV blocks, each with its next access.

24 bytes a record, little-endian, packed: time (u32, seconds), object (u64), size (u32, bytes), next
access (i64). The next access is the number of the record that accesses the object next, counted
from 1, and -1 where none does, as in libCacheSim's own converter.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lachesis.characterise.reference_clock import join_rows
from lachesis.errors import InputError
from lachesis.results.export.arrivals import RequestTimes
from lachesis.results.export.contexts import Runs, runs_of, shared_segments
from lachesis.results.export.requests import in_order
from lachesis.traces.trace import Trace

RECORD = np.dtype(
    [("time", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next_access", "<i8")], align=False
)
_NEVER = -1
_U32_MAX = 2**32 - 1

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class BlockStream:
    """How much was written: records and different blocks."""

    accesses: int
    blocks: int


def write_oracle_general(
    trace: Trace, times: RequestTimes, path: Path, *, block_tokens: int, block_bytes: int
) -> BlockStream:
    """Write the accesses of all requests in the order of their starts.

    A request accesses every block of its input once, in context order, then the blocks that its
    output fills anew. Blocks belong to segments and stay the same from request to request; prompts
    of one `prefix_key` are one. Requests are written from the last to the first, so that memory
    grows with the number of different blocks (8 bytes each), not with the accesses.

    Args:
        trace: what is exported.
        times: when requests start.
        path: a file that can be written at any place.
        block_tokens: tokens in a block.
        block_bytes: bytes of a block, the size of every object.

    Raises:
        InputError: a block or a time is beyond 32 bits.
    """
    if block_bytes > _U32_MAX:
        raise InputError("a block has more bytes than 32 bits hold: use smaller blocks",
                         field="--block-tokens", value=block_tokens)  # fmt: skip
    if times.start_s.max() > _U32_MAX:
        raise InputError("a time is beyond 32 bits of seconds", path=trace.source)
    accesses = _Accesses(trace, block_tokens)
    order = in_order(trace, times.start_s).tolist()
    counts = [len(accesses.of_request(request)) for request in order]
    ends = np.cumsum(counts, dtype=np.int64).tolist()
    next_access = np.full(accesses.blocks, _NEVER, dtype=np.int64)
    with path.open("wb") as file:
        file.truncate(ends[-1] * RECORD.itemsize)
        for request, count, end in zip(
            reversed(order), reversed(counts), reversed(ends), strict=True
        ):
            objects = accesses.of_request(request)
            records = np.empty(count, dtype=RECORD)
            records["time"] = int(times.start_s[request])
            records["object"] = objects
            records["size"] = block_bytes
            records["next_access"] = next_access[objects]
            next_access[objects] = np.arange(end - count, end) + 1
            file.seek((end - count) * RECORD.itemsize)
            file.write(records.tobytes())
    return BlockStream(ends[-1], int((next_access != _NEVER).sum()))


class _Accesses:
    """Blocks of requests, numbered through all segments."""

    def __init__(self, trace: Trace, block_tokens: int) -> None:
        rows = join_rows(trace)
        self.block_tokens = block_tokens
        self.runs: Runs = runs_of(trace, rows)
        same = shared_segments(trace)
        self.segment = same[self.runs.segment]
        self.output_segment = same[rows.segment_of_request]
        self.output_tokens = trace.requests["output_tokens"].to_numpy().astype(np.int64)
        tokens = np.zeros(int(same.max()) + 1, dtype=np.int64)
        np.maximum.at(tokens, self.segment, self.runs.start + self.runs.tokens)
        output_end = self.runs.output_start + self.output_tokens
        np.maximum.at(tokens, self.output_segment, output_end)
        held = -(-tokens // block_tokens)
        self.base = np.cumsum(held) - held
        self.blocks = int(held.sum())

    def of_request(self, request: int) -> Ints:
        """Each block once, where it is met first."""
        runs = self.runs
        low, high = int(runs.offsets[request]), int(runs.offsets[request + 1])
        pieces = [
            self._blocks(int(self.segment[run]), int(runs.start[run]), int(runs.tokens[run]))
            for run in range(low, high)
        ]
        output = int(self.output_tokens[request])
        start = int(runs.output_start[request])
        pieces.append(self._blocks(int(self.output_segment[request]), start, output))
        met = np.concatenate(pieces)
        _, first = np.unique(met, return_index=True)
        once: Ints = met[np.sort(first)]
        return once

    def _blocks(self, segment: int, start: int, tokens: int) -> Ints:
        if not tokens:
            return np.empty(0, dtype=np.int64)
        first, end = start // self.block_tokens, -(-(start + tokens) // self.block_tokens)
        return np.arange(first, end, dtype=np.int64) + int(self.base[segment])

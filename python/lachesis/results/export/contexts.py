"""Contexts of requests as hashes of fixed-size blocks, the way in which other simulators match.

A block's number stands for everything up to its end: two requests share it if and only if their
contexts are equal up to there. What is equal follows from the trace: tokens are the same if they
are the same tokens of one segment, and prompts of one `prefix_key` are one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from lachesis.characterise.reference_clock import TraceRows, join_rows
from lachesis.traces.trace import Trace

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Runs:
    """A trace's spans as runs of tokens of segments, in context order.

    Attributes:
        offsets: where each request's runs begin, an entry more than requests.
        segment: row of the segment.
        start, tokens: which of its tokens.
        written: whether the request writes them.
        output_start: from which token of its segment on each request's output lies.
    """

    offsets: Ints
    segment: Ints
    start: Ints
    tokens: Ints
    written: NDArray[np.bool_]
    output_start: Ints


def runs_of(trace: Trace, rows: TraceRows) -> Runs:
    """Where in its segment every span lies.

    A written span goes on where the segment's earlier writes and outputs ended; a matched one
    starts at the segment's beginning, or where the request's last span of that segment ended.
    """
    position = _ints(trace.spans["position"])
    order = np.lexsort((position, rows.request_of_span))
    request = rows.request_of_span[order]
    segment = rows.segment_of_span[order]
    tokens = _ints(trace.spans["tokens"])[order]
    written = trace.spans["written"].to_numpy()[order]
    position = position[order]
    count = trace.requests.num_rows

    # Writes and outputs in the order in which they come to their segment.
    outputs = _ints(trace.requests["output_tokens"])
    of_segment = np.concatenate((segment[written], rows.segment_of_request))
    of_request = np.concatenate((request[written], np.arange(count)))
    at = np.concatenate((position[written], np.full(count, np.iinfo(np.int64).max)))
    size = np.concatenate((tokens[written], outputs))
    start = np.zeros(len(tokens), dtype=np.int64)
    lies_at = _running((at, of_request, of_segment), size)
    start[written] = lies_at[: len(lies_at) - count]
    matched = ~written
    keys = (position[matched], segment[matched], request[matched])
    start[matched] = _running(keys, tokens[matched], groups=2)
    return Runs(
        offsets=np.searchsorted(request, np.arange(count + 1)).astype(np.int64),
        segment=segment,
        start=start,
        tokens=tokens,
        written=written,
        output_start=lies_at[len(lies_at) - count :],
    )


def _running(keys: tuple[Ints, ...], size: Ints, *, groups: int = 1) -> Ints:
    """The sum of `size` before each row within rows of equal last `groups` keys, in key order."""
    order = np.lexsort(keys)
    ordered = size[order]
    before = np.cumsum(ordered) - ordered
    fresh = np.zeros(len(order), dtype=bool)
    fresh[:1] = True
    for key in keys[-groups:]:
        fresh[1:] |= np.diff(key[order]) != 0
    group = np.cumsum(fresh) - 1
    found = np.empty(len(order), dtype=np.int64)
    found[order] = before - before[fresh][group] if len(order) else before
    return found


@dataclass
class _Node:
    """A run in the tree of contexts: what lies before it, and the numbers of blocks ending in it.

    `shared` numbers the runs of prompts that several sessions share, from 1; 0 for all others.
    """

    shared: int = 0
    blocks: list[int] = field(default_factory=list)
    part_filled: dict[int, int] = field(default_factory=dict)
    after: dict[tuple[int, int, int, int], _Node] = field(default_factory=dict)


class BlockNumbers:
    """Numbers the blocks of contexts, from 0 in the order of first use.

    Example:
        >>> from lachesis.traces import TraceBuilder
        >>> builder = TraceBuilder(source="example")
        >>> session = builder.session("a", workload="demo", harness="none")
        >>> _ = session.request(input_tokens=40, output_tokens=5)
        >>> _ = session.request(input_tokens=60, output_tokens=5)
        >>> numbers = BlockNumbers(builder.build(), block_tokens=16)
        >>> numbers.of_request(0), numbers.of_request(1)
        ([0, 1, 2], [0, 1, 3, 4])
    """

    def __init__(self, trace: Trace, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.rows = join_rows(trace)
        self.runs = runs_of(trace, self.rows)
        self._same = shared_segments(trace)
        self._rows_of_segments = trace.segments.num_rows
        self._roots: dict[int, _Node] = {}
        self._shared = _Node()
        self._shared_runs = 0
        self._used = 0

    def of_request(self, request: int) -> list[int]:
        """Numbers of a request's blocks in order; the last may be part-filled."""
        runs, size = self.runs, self.block_tokens
        root = self._roots.setdefault(int(self.rows.session_of_request[request]), _Node())
        node = root
        numbers: list[int] = []
        position = 0
        for segment, start, tokens in self._joined(request):
            node = self._enter(root, node, (position, segment, start))
            first, end = position // size, (position + tokens) // size
            while len(node.blocks) < end - first:
                node.blocks.append(self._next())
            numbers += node.blocks[: end - first]
            position += tokens
        if position % size and runs.offsets[request] < runs.offsets[request + 1]:
            if position not in node.part_filled:
                node.part_filled[position] = self._next()
            numbers.append(node.part_filled[position])
        return numbers

    def forget(self, session: int) -> None:
        """Drop what is known of a session that has no more requests."""
        self._roots.pop(session, None)

    def _enter(self, root: _Node, before: _Node, run: tuple[int, int, int]) -> _Node:
        """The node of a run that comes after `before`, which is `root` at the start."""
        position, segment, _ = run
        key = (*run, before.shared)
        if segment >= self._rows_of_segments and (position == 0 or before.shared):
            home = self._shared
            if key not in home.after:
                self._shared_runs += 1
                home.after[key] = _Node(shared=self._shared_runs)
            return home.after[key]
        # What follows a shared prompt is the session's own, and is forgotten with it.
        home = root if before.shared else before
        return home.after.setdefault(key, _Node())

    def _joined(self, request: int) -> list[tuple[int, int, int]]:
        """A request's runs (segment, start, tokens), those that go on joined, prompts as one."""
        runs = self.runs
        low, high = int(runs.offsets[request]), int(runs.offsets[request + 1])
        joined: list[tuple[int, int, int]] = []
        for segment, start, tokens in zip(
            self._same[runs.segment[low:high]].tolist(),
            runs.start[low:high].tolist(),
            runs.tokens[low:high].tolist(),
            strict=True,
        ):
            if joined and joined[-1][0] == segment and sum(joined[-1][1:]) == start:
                joined[-1] = (segment, joined[-1][1], joined[-1][2] + tokens)
            elif tokens:
                joined.append((segment, start, tokens))
        return joined

    def _next(self) -> int:
        self._used += 1
        return self._used - 1


def shared_segments(trace: Trace) -> Ints:
    """A number for each segment row: its own, or past all rows one for its `prefix_key`.

    Example:
        >>> from lachesis.traces.generator import generate
        >>> trace = generate("tau3-airline")
        >>> bool((shared_segments(trace) >= trace.segments.num_rows).any())
        True
    """
    keys = trace.segments["prefix_key"].combine_chunks().dictionary_encode()
    codes = pc.fill_null(keys.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    rows = np.arange(trace.segments.num_rows, dtype=np.int64)
    return np.where(codes >= 0, len(rows) + codes, rows)


def _ints(column: object) -> Ints:
    values: Ints = column.to_numpy().astype(np.int64)  # type: ignore[attr-defined]
    return values

"""One row a segment: what each wrote, how long it lived, and how often it was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lachesis.characterise.reference_clock import (
    first_writers,
    join_rows,
    read_write_ratio,
    schedule,
    waiting_share,
    written_tokens,
)
from lachesis.presets import LatencyPreset
from lachesis.traces.schema import SegmentClass
from lachesis.traces.trace import Trace, session_digests

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Words = NDArray[np.object_]


@dataclass(frozen=True)
class SegmentColumns:
    """Columns over the segments of a trace, in the order of its `segments` table.

    Attributes:
        workload: name of the segment's workload.
        kind: its class, as `SegmentClass` spells it.
        closed_by: the boundary that ends it.
        session: a number that follows the session's content, not its name or place.
        turn: the turn whose tokens it holds: for a reasoning-stripped segment the turn that
            carries them forward, otherwise that of its first writer.
        tokens: written into it.
        t_norm_s: normalised lifetime (eq. 1) in seconds.
        rho: reads per token written (eq. 3); NaN where nothing was written.
        prefix_key: names a prompt that sessions share; None elsewhere.
        waiting: of each session, the share of its lead's life in which no lead request is active;
            NaN where there is no lead segment. Indexed by `session`.
    """

    workload: Words
    kind: Words
    closed_by: Words
    session: Ints
    turn: Ints
    tokens: Ints
    t_norm_s: Floats
    rho: Floats
    prefix_key: Words
    waiting: Floats

    def __len__(self) -> int:
        return len(self.tokens)

    def where(self, rows: Bools) -> SegmentColumns:
        """The segments that `rows` picks; session numbers stay."""
        return SegmentColumns(
            self.workload[rows], self.kind[rows], self.closed_by[rows], self.session[rows],
            self.turn[rows], self.tokens[rows], self.t_norm_s[rows], self.rho[rows],
            self.prefix_key[rows], self.waiting,
        )  # fmt: skip

    @classmethod
    def concatenated(cls, parts: Sequence[SegmentColumns]) -> SegmentColumns:
        """The segments of several traces, as of one; sessions are numbered on."""
        columns: dict[str, Any] = {
            field.name: np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(cls)
        }
        before = np.cumsum([0, *(len(part.waiting) for part in parts)])
        columns["session"] = np.concatenate(
            [part.session + start for part, start in zip(parts, before, strict=False)]
        )
        return cls(**columns)

    def of_class(self, kind: SegmentClass) -> SegmentColumns:
        """The segments of one class."""
        return self.where(self.kind == str(kind))

    def of_workload(self, workload: str) -> SegmentColumns:
        """The segments of one workload."""
        return self.where(self.workload == workload)

    def classes(self) -> list[SegmentClass]:
        """The classes that occur, in the order of `SegmentClass`."""
        present = set(self.kind.tolist())
        return [kind for kind in SegmentClass if kind in present]

    def materialised_tokens(self) -> int:
        """Tokens written, with prompts of one `prefix_key` counted once."""
        shared: dict[str, int] = {}
        own = 0
        for key, tokens in zip(self.prefix_key.tolist(), self.tokens.tolist(), strict=True):
            if key is None:
                own += tokens
            else:
                shared[key] = max(shared.get(key, 0), tokens)
        return own + sum(shared.values())

    def tokens_per_turn(self) -> Ints:
        """Tokens of each (session, turn) that has any of these segments."""
        if not len(self):
            return np.zeros(0, dtype=np.int64)
        pairs = np.stack((self.session, self.turn), axis=1)
        codes = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
        sums: Ints = np.zeros(int(codes.max()) + 1, dtype=np.int64)
        np.add.at(sums, codes, self.tokens)
        return sums


def segment_columns(trace: Trace, latency: LatencyPreset, seed: int) -> SegmentColumns:
    """Measure every segment of `trace` on the reference clock.

    Args:
        trace: any trace.
        latency: reference times, tool latencies and user delays of the clock.
        seed: of the delays that the trace leaves open.

    Example:
        >>> from lachesis.presets import load_latency
        >>> from lachesis.traces import TraceBuilder
        >>> builder = TraceBuilder(source="one")
        >>> session = builder.session("a", workload="w", harness="h", stripping="off")
        >>> _ = session.request(input_tokens=6, output_tokens=4)
        >>> columns = segment_columns(builder.build(), load_latency(), seed=0)
        >>> [float(value[0]) for value in (columns.tokens, columns.t_norm_s, columns.rho)]
        [10.0, 0.8, 3.0]
    """
    rows = join_rows(trace)
    clock = schedule(trace, latency, seed)
    tokens = written_tokens(trace)
    kind: Words = trace.segments["class"].to_numpy()
    turn = trace.requests["turn"].to_numpy().astype(np.int64)[first_writers(trace, rows)]
    turn -= kind == str(SegmentClass.STRIPPED)
    digests = session_digests(trace)
    names: list[str] = trace.sessions["session"].to_pylist()
    by_content = sorted(range(len(names)), key=lambda index: digests[names[index]])
    number = np.empty(len(names), dtype=np.int64)
    number[by_content] = np.arange(len(names))
    workload: Words = trace.sessions["workload"].to_numpy()
    ratio = read_write_ratio(trace)
    return SegmentColumns(
        workload=workload[rows.session_of_segment],
        kind=kind,
        closed_by=trace.segments["closed_by"].to_numpy(),
        session=number[rows.session_of_segment],
        turn=turn,
        tokens=tokens,
        t_norm_s=clock.t_norm_s,
        rho=np.where(tokens > 0, ratio, np.nan),
        prefix_key=trace.segments["prefix_key"].to_numpy(),
        waiting=waiting_share(trace, clock)[by_content],
    )

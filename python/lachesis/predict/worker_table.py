"""The workers of a trace: spawn record, lifetime, and which session each belongs to.

Rows stand in an order that follows the content of the sessions, not their names or their order in
the file, so that whatever is fitted to them does not depend on those either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lachesis._engine import LIFETIME_FLOOR_S
from lachesis.characterise.reference_clock import schedule
from lachesis.predict.spawn_records import SpawnRecords
from lachesis.presets import LatencyPreset, load_latency
from lachesis.traces.schema import SegmentClass
from lachesis.traces.trace import Trace, session_digests

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.object_]

#: Characters of a session's digest by which a trained predictor remembers it.
DIGEST_CHARACTERS = 16


@dataclass(frozen=True)
class WorkerTable:
    """One row a worker segment; an agent that was reset has several, with one spawn record.

    Attributes:
        records: spawn record of each row's agent.
        lifetime_s: normalised lifetime of each (paper, eq. 1).
        segment_row: its row in the trace's `segments` table.
        workload: name of its workload.
        session: number of its session, from 0; sessions of equal content share one.
        session_digests: by that number, the head of the session's SHA-256 digest in hex.
    """

    records: SpawnRecords
    lifetime_s: Floats
    segment_row: Ints
    workload: Words
    session: Ints
    session_digests: list[str]

    def __len__(self) -> int:
        return len(self.lifetime_s)

    @property
    def floored(self) -> int:
        """Rows whose lifetime lies below the floor under which lifetimes are not told apart."""
        return int((self.lifetime_s < LIFETIME_FLOOR_S).sum())


def worker_table(
    trace: Trace, *, latency: LatencyPreset | None = None, seed: int = 0
) -> WorkerTable:
    """The workers of `trace`, their lifetimes on the reference clock.

    Args:
        trace: any trace; without workers the table is empty.
        latency: of the clock; the paper's by default.
        seed: of the delays that the trace leaves open.

    Example:
        >>> from lachesis.traces import open_trace
        >>> len(worker_table(open_trace("webarena"))) > 100
        True
    """
    segments = trace.segments
    clock = schedule(trace, latency or load_latency(), seed)
    kind: Words = segments["class"].to_numpy()
    rows = np.flatnonzero(kind == str(SegmentClass.WORKER))
    digests = session_digests(trace)
    content = sorted({digests[name] for name in segments["session"].take(rows).to_pylist()})
    number = {digest: index for index, digest in enumerate(content)}
    names = trace.sessions["session"].to_pylist()
    workload_of = dict(zip(names, trace.sessions["workload"].to_pylist(), strict=True))
    keys = list(
        zip(
            segments["session"].take(rows).to_pylist(),
            segments["agent"].take(rows).to_pylist(),
            strict=True,
        )
    )
    spawned = trace.spawns.select(["session", "agent"]).to_pylist()
    spawn_row = {(row["session"], row["agent"]): index for index, row in enumerate(spawned)}
    session: Ints = np.array([number[digests[name]] for name, _ in keys], dtype=np.int64)
    agent: Ints = np.array([agent for _, agent in keys], dtype=np.int64)
    segment: Ints = segments["segment"].to_numpy()[rows].astype(np.int64)
    # Sessions of equal content tie here; their rows are equal too, so either order will do.
    order = np.lexsort((segment, agent, session))
    spawns = trace.spawns.take(
        pa.array([spawn_row[keys[place]] for place in order.tolist()], pa.int64())
    )
    return WorkerTable(
        records=SpawnRecords.from_table(spawns),
        lifetime_s=clock.t_norm_s[rows][order],
        segment_row=rows[order],
        workload=np.array([workload_of[keys[place][0]] for place in order.tolist()], dtype=object),
        session=session[order],
        session_digests=[digest.hex()[:DIGEST_CHARACTERS] for digest in content],
    )

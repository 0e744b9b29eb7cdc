"""What comparisons draw on: measurements of the built-in corpora, each made once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256

import msgspec

from lachesis.characterise.bootstrap import REPLICATES
from lachesis.characterise.segments import SegmentColumns, segment_columns
from lachesis.characterise.workload import WorkloadStats, workload_stats
from lachesis.presets import LatencyPreset
from lachesis.traces import open_trace

#: Seed with which the corpora's own page measures them.
DEFAULT_SEED = 0


class Evidence:
    """Measurements that are made when a comparison first asks for them.

    Args:
        latency: of the reference clock.
        seed: of its draws and of the intervals.
        say: is told what is being measured.
    """

    def __init__(
        self,
        latency: LatencyPreset,
        seed: int = DEFAULT_SEED,
        say: Callable[[str], None] = lambda stage: None,
    ) -> None:
        self.latency = latency
        self.seed = seed
        self._say = say
        self._stats: dict[str, WorkloadStats] = {}
        self._columns: dict[str, SegmentColumns] = {}
        self._trace_sha256: dict[str, str] = {}

    def stats(self, workload: str) -> WorkloadStats:
        """The characterisation of a built-in corpus.

        Example:
            >>> from lachesis.presets import load_latency
            >>> Evidence(load_latency()).stats("bfclv4-base").turns
            734
        """
        if workload not in self._stats:
            self._say(f"measuring {workload}")
            trace = open_trace(workload)
            columns = segment_columns(trace, self.latency, self.seed)
            (self._stats[workload],) = workload_stats(trace, columns, self.seed)
            self._columns[workload] = columns
            self._trace_sha256[workload] = trace.sha256
        return self._stats[workload]

    def columns(self, workload: str) -> SegmentColumns:
        """The segments of a built-in corpus."""
        self.stats(workload)
        return self._columns[workload]

    def measured(self) -> list[str]:
        """Names of the corpora that were asked for, sorted."""
        return sorted(self._stats)

    def trace_sha256(self, workloads: Sequence[str]) -> str:
        """The hash of a corpus; of several, one over theirs."""
        for workload in workloads:
            self.stats(workload)
        digests = sorted(self._trace_sha256[workload] for workload in workloads)
        if len(digests) == 1:
            return digests[0]
        return sha256("".join(digests).encode()).hexdigest()

    def config_sha256(self) -> str:
        """A digest of what decides the measurements, the corpora apart; sources do not enter."""
        values = msgspec.to_builtins(self.latency)
        decided = {
            "latency": {key: values[key] for key in values if key not in ("sources", "title")},
            "seed": self.seed,
            "replicates": REPLICATES,
        }
        canonical = json.dumps(decided, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return sha256(canonical.encode()).hexdigest()

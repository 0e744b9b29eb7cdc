"""What comparisons draw on: measurements of the built-in corpora, each made once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from lachesis.characterise.bootstrap import REPLICATES
from lachesis.characterise.segments import SegmentColumns, segment_columns
from lachesis.characterise.workload import WorkloadStats, workload_stats
from lachesis.predict import Evaluation, Kind, evaluate_scores
from lachesis.presets import LatencyPreset
from lachesis.reproduce.corpora import Corpora
from lachesis.reproduce.published_evaluation import evaluation as published_evaluation
from lachesis.reproduce.runs import Runs

#: Replicates of an interval under ``--quick``.
_QUICK_REPLICATES = 100
#: A replicate of tau costs as much as so many of a separability.
_REPLICATES_A_TAU = 5
#: Seed with which the corpora's own page measures them.
DEFAULT_SEED = 0


class RankedWorkers(NamedTuple):
    """How well workers are ranked, their true lifetimes in seconds, and their scores."""

    evaluation: Evaluation
    lifetime_s: NDArray[np.float64]
    scores: NDArray[np.float64]


class Evidence:
    """Measurements that are made when a comparison first asks for them.

    Args:
        latency: of the reference clock.
        seed: of its draws and of the intervals.
        say: is told what is being measured.
        quick: whether intervals are made of fewer draws.
    """

    def __init__(
        self,
        latency: LatencyPreset,
        seed: int = DEFAULT_SEED,
        say: Callable[[str], None] = lambda stage: None,
        *,
        quick: bool = False,
    ) -> None:
        self.latency = latency
        self.seed = seed
        self.quick = quick
        self.runs = Runs([])
        self.corpora = Corpora()
        self._say = say
        self._stats: dict[str, WorkloadStats] = {}
        self._columns: dict[str, SegmentColumns] = {}
        self._trace_sha256: dict[str, str] = {}
        self._ranked: RankedWorkers | None = None
        self._replicates = _QUICK_REPLICATES if quick else REPLICATES

    def stats(self, workload: str) -> WorkloadStats:
        """The characterisation of a built-in corpus.

        Example:
            >>> from lachesis.presets import load_latency
            >>> Evidence(load_latency()).stats("bfclv4-base").turns
            734
        """
        if workload not in self._stats:
            self._say(f"measuring {workload}")
            trace = self.corpora.loaded(workload).trace
            columns = segment_columns(trace, self.latency, self.seed)
            (self._stats[workload],) = workload_stats(
                trace, columns, self.seed, replicates=self._replicates
            )
            self._columns[workload] = columns
            self._trace_sha256[workload] = trace.sha256
        return self._stats[workload]

    def columns(self, workload: str) -> SegmentColumns:
        """The segments of a built-in corpus."""
        self.stats(workload)
        return self._columns[workload]

    def predictor(self) -> RankedWorkers:
        """The workers of the multi-agent corpora, ranked at their spawn, out of fold.

        Example:
            >>> from lachesis.presets import load_latency
            >>> found = Evidence(load_latency(), quick=True).predictor()
            >>> found.evaluation.order.sessions
            623
        """
        if self._ranked is None:
            self._say("ranking workers")
            corpus = published_evaluation().predictor.corpus
            loaded = self.corpora.loaded(corpus)
            self._trace_sha256[corpus] = loaded.trace.sha256
            # At the default seed these are the very scores that the replays rank by.
            table = loaded.workers(self.latency, self.seed)
            scores = loaded.predicted_lifetimes(self.latency, self.seed)
            found = evaluate_scores(
                table, scores, str(Kind.RIDGE), by_workload=False, seed=self.seed,
                replicates=self._replicates // _REPLICATES_A_TAU,
            )  # fmt: skip
            self._ranked = RankedWorkers(found, table.lifetime_s, scores)
        return self._ranked

    def measured(self) -> list[str]:
        """Names of the corpora that were asked for, sorted."""
        return sorted(self._stats)

    def trace_sha256(self, workloads: Sequence[str]) -> str:
        """The hash of a corpus; of several, one over theirs."""
        for workload in workloads:
            if workload not in self._trace_sha256:
                self._trace_sha256[workload] = self.corpora.loaded(workload).trace.sha256
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
            "replicates": self._replicates,
        }
        canonical = json.dumps(decided, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return sha256(canonical.encode()).hexdigest()

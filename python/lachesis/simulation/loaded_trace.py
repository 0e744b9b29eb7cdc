"""A trace as many replays share it: its workload, and what policies need to know of it beforehand.

Everything is made when it is first asked for, once, and may be asked for from several threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from lachesis import _engine
from lachesis.policy import Policy
from lachesis.presets import LatencyPreset
from lachesis.simulation.plan import Load
from lachesis.simulation.spawn_scores import spawn_scores
from lachesis.simulation.workload import in_workload_order, to_workload, workload_columns
from lachesis.traces.schema import SegmentClass
from lachesis.traces.trace import Trace

if TYPE_CHECKING:
    from lachesis.policy.ratio import ClassReads
    from lachesis.predict import WorkerTable

Made = TypeVar("Made")


class LoadedTrace:
    """A trace with its workloads and scores, shared between comparisons and between threads.

    Example:
        >>> from lachesis.traces import open_trace
        >>> loaded = LoadedTrace(open_trace("tau3-airline"))
        >>> loaded.workload(Load.parse("8")) is loaded.workload(Load.parse("100"))
        True
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.session_names: tuple[str, ...] = tuple(trace.sessions["session"].to_pylist())
        self._made: dict[Hashable, object] = {}
        # Held while something is made: who needs the same waits for it instead of making it again,
        # and who needs something else does not wait.
        self._making: dict[Hashable, threading.Lock] = {}
        self._looking = threading.Lock()

    def workload(self, load: Load) -> _engine.Workload:
        """The engine's workload; only a recorded load needs the starts of the sessions.

        Raises:
            InputError: the trace breaks a rule that only the replay needs.
        """
        recorded = load.kind == "recorded"
        return self._once(
            ("workload", recorded, load.longest_gap_s if recorded else None),
            lambda: to_workload(self.trace, recorded=recorded, longest_gap_s=load.longest_gap_s),
        )

    def scores_for(self, policy: Policy, latency: LatencyPreset) -> NDArray[np.float64] | None:
        """The scores that a policy ranks workers by, one a segment of the workload; None without.

        Raises:
            PolicyError: a policy in Python raised an error.
        """
        if policy.python is None:
            return None if policy.ranking is None else self._ranked(policy.ranking.by, latency)
        scores = self._once(
            ("spawned", policy.name, policy.python, latency),
            lambda: in_workload_order(self.trace, spawn_scores(policy, self.trace, latency)),
        )
        if not policy.python.needs_scores:
            return scores
        return np.where(np.isnan(scores), self._ranked("predicted", latency), scores)

    def workers(self, latency: LatencyPreset, seed: int = 0) -> WorkerTable:
        """The trace's workers on the reference clock; see `lachesis.predict.worker_table`."""

        def read() -> WorkerTable:
            # Only ranking needs the reference clock.
            from lachesis.predict import worker_table

            return worker_table(self.trace, latency=latency, seed=seed)

        return self._once(("workers", latency, seed), read)

    def predicted_lifetimes(self, latency: LatencyPreset, seed: int = 0) -> NDArray[np.float64]:
        """A score a row of `workers`, each from a model that never saw its session.

        Where there are workers of one session alone nothing can teach a model: all rank equal.
        """

        def score() -> NDArray[np.float64]:
            from lachesis.predict import Kind
            from lachesis.predict.out_of_fold import worker_scores

            table = self.workers(latency, seed)
            kind = Kind.RIDGE if self._sessions_with_workers() > 1 else Kind.ONLINE
            return worker_scores(table, kind, source=self.trace.source)

        return self._once(("predicted", latency, seed), score)

    def class_reads(self, latency: LatencyPreset, block_tokens: int) -> ClassReads:
        """What `read-write-ratio` needs to know of the trace beforehand."""

        def measure() -> ClassReads:
            # Only this policy needs the classification of reads.
            from lachesis.policy.ratio import class_reads

            return class_reads(self.trace, latency, block_tokens=block_tokens)

        return self._once(("reads", latency, block_tokens), measure)

    def recorded_rate_per_s(self, longest_gap_s: float) -> float:
        """Sessions a second over the time that the recorded starts span, long gaps cut."""

        def measure() -> float:
            columns = workload_columns(self.trace, recorded=True, longest_gap_s=longest_gap_s)
            span_s = float(columns["session_start_s"].max())
            return len(self.trace) / span_s if span_s > 0.0 else 0.0

        return self._once(("rate", longest_gap_s), measure)

    def _ranked(self, by: str, latency: LatencyPreset) -> NDArray[np.float64]:
        """Lifetimes by which workers are ranked: ``true`` ones, or ``predicted``."""

        def score() -> NDArray[np.float64]:
            table = self.workers(latency)
            rows = np.full(self.trace.segments.num_rows, np.nan)
            if len(table):
                true = by == "true"
                rows[table.segment_row] = (
                    table.lifetime_s if true else self.predicted_lifetimes(latency)
                )
            return in_workload_order(self.trace, rows)

        return self._once(("ranked", by, latency), score)

    def _sessions_with_workers(self) -> int:
        segments = self.trace.segments
        workers = segments.filter(pc.equal(segments["class"], SegmentClass.WORKER))
        return len(pc.unique(workers["session"]))

    def _once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        with self._looking:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            if key not in self._made:
                self._made[key] = make()
            return cast(Made, self._made[key])

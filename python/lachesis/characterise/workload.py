"""What the contexts of each workload look like: sizes, lifetimes, reuse, and how classes differ.

The figures are those of the paper's section 3 and Table 3, defined one by one in
``docs/characterisation.md``. They hold for any trace; those that compare two classes exist only
where both do.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lachesis.characterise.bootstrap import REPLICATES, separability_interval
from lachesis.characterise.reference_clock import join_rows
from lachesis.characterise.segments import SegmentColumns, segment_columns
from lachesis.characterise.statistics import (
    Distribution,
    kendall_tau,
    median,
    overlap,
    separability,
    spread,
)
from lachesis.presets import LatencyPreset
from lachesis.traces.schema import SegmentClass, Status, UsageSource
from lachesis.traces.trace import Trace

Ints = NDArray[np.int64]

#: Classes that are compared: the first is expected to outlive the second.
PAIRS: tuple[tuple[SegmentClass, SegmentClass], ...] = (
    (SegmentClass.STRIPPED, SegmentClass.LADEN),
    (SegmentClass.LEAD, SegmentClass.WORKER),
    (SegmentClass.LEAD, SegmentClass.REVIEWER),
)
#: Classes of which a turn writes its own: Figure 4(b) of the paper.
TURN_CLASSES = (SegmentClass.LADEN, SegmentClass.STRIPPED)


@dataclass(frozen=True)
class ClassStats:
    """The segments of one class.

    Attributes:
        segments: how many.
        tokens_written: into all of them, prompts of one `prefix_key` once.
        t_norm_s: normalised lifetime in seconds, every segment counted once.
        rho_rw: reads per token written; segments into which nothing was written are left out.
        tokens_per_segment: tokens written into each.
    """

    segments: int
    tokens_written: int
    t_norm_s: Distribution
    rho_rw: Distribution
    tokens_per_segment: Distribution


@dataclass(frozen=True)
class ClosedStats:
    """What one kind of boundary ends."""

    segments: int
    tokens_written: int


@dataclass(frozen=True)
class Separability:
    """P(X > Y) + P(X = Y) / 2, with its 95 % interval over sessions (None from one session)."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class WorkerSpread:
    """The 90th over the 10th percentile of workers; None where the 10th is 0."""

    t_norm_s: float | None
    tokens_written: float | None


@dataclass(frozen=True)
class WorkloadStats:
    """Everything that is said of one workload. What its classes do not allow is None or empty.

    Attributes:
        workload: its name.
        sessions, turns, agents, requests: how many; leads count as agents.
        requests_by_status: requests that ended `ok`, `aborted` or in an `error`.
        tokens_processed: input and output of all requests that ended `ok`.
        tokens_written: materialised by all requests, prompts of one `prefix_key` once.
        output_tokens, reasoning_tokens: of all requests.
        classes: by class.
        closed_by: by kind of boundary.
        tokens_per_turn: by class: what each turn that writes into it writes (Figure 4(b)).
        quality: requests by where their counts come from; rows dropped in reading the whole input.
        laden_share: mean laden tokens a turn over the sum of both classes' means.
        lifetime_ratio: by pair, the ratio of median lifetimes.
        separability: by pair.
        rho_overlap: of the read-to-write ratios of lead and worker.
        lead_waiting_share: median over sessions with sub-agents.
        worker_spread, worker_tau: of the workers' lifetimes and writes.
    """

    workload: str
    sessions: int
    turns: int
    agents: int
    requests: int
    requests_by_status: dict[str, int]
    tokens_processed: int
    tokens_written: int
    output_tokens: int
    reasoning_tokens: int
    classes: dict[str, ClassStats]
    closed_by: dict[str, ClosedStats]
    tokens_per_turn: dict[str, Distribution]
    quality: dict[str, int]
    laden_share: float | None
    lifetime_ratio: dict[str, float | None]
    separability: dict[str, Separability]
    rho_overlap: float | None
    lead_waiting_share: float | None
    worker_spread: WorkerSpread | None
    worker_tau: float | None

    def to_json(self) -> dict[str, Any]:
        """As ``trace stats --json`` gives it; keys that need absent classes are left out."""
        found = asdict(self)
        found["separability"] = {
            pair: [each.value, each.low, each.high] for pair, each in self.separability.items()
        }
        optional = (
            "tokens_per_turn", "laden_share", "lifetime_ratio", "separability", "rho_overlap",
            "lead_waiting_share", "worker_spread", "worker_tau",
        )  # fmt: skip
        return {
            key: value
            for key, value in found.items()
            if key not in optional or (value is not None and value != {})
        }


def pair_name(pair: tuple[SegmentClass, SegmentClass]) -> str:
    """How a pair of classes is written, the one that is expected to live longer first.

    Example:
        >>> [pair_name(pair) for pair in PAIRS]
        ['reasoning-stripped/reasoning-laden', 'lead/worker', 'lead/reviewer']
    """
    return "/".join(pair)


def stats(trace: Trace, latency: LatencyPreset, seed: int) -> list[WorkloadStats]:
    """Characterise every workload of `trace`, in the order of their names.

    Args:
        trace: any trace.
        latency: reference times, tool latencies and user delays of the clock.
        seed: of the delays that the trace leaves open, and of the sessions drawn for intervals.

    Example:
        >>> from lachesis.presets import load_latency
        >>> from lachesis.traces import open_trace
        >>> airline, = stats(open_trace("tau3-airline"), load_latency(), seed=0)
        >>> airline.sessions, airline.requests, airline.tokens_written
        (58, 709, 591248)
        >>> round(airline.laden_share, 3)
        0.776
    """
    return workload_stats(trace, segment_columns(trace, latency, seed), seed)


def workload_stats(
    trace: Trace, columns: SegmentColumns, seed: int, *, replicates: int = REPLICATES
) -> list[WorkloadStats]:
    """`stats` from columns that are measured already; `seed` and `replicates` are for intervals."""
    counts = _Counts(trace)
    return [
        _one_workload(name, code, counts, columns.of_workload(name), seed, replicates)
        for code, name in enumerate(counts.names)
    ]


class _Counts:
    """Rows of sessions, requests and spans, by the workload that they belong to."""

    def __init__(self, trace: Trace) -> None:
        rows = join_rows(trace)
        workload = trace.sessions["workload"].to_numpy()
        self.names: list[str] = sorted(set(workload.tolist()))
        code = np.searchsorted(np.array(self.names, dtype=object), workload)
        self.sessions = self._sums(code, None)
        requests = trace.requests
        of_request = code[rows.session_of_request]
        self.requests = self._sums(of_request, None)
        status = requests["status"].to_numpy()
        self.status = {
            str(word): self._sums(of_request[status == str(word)], None) for word in Status
        }
        source = requests["usage_source"].to_numpy()
        self.usage_source = {
            str(word): self._sums(of_request[source == str(word)], None) for word in UsageSource
        }
        output = requests["output_tokens"].to_numpy()
        self.output = self._sums(of_request, output)
        self.reasoning = self._sums(of_request, requests["reasoning_tokens"].to_numpy())
        ok = status == str(Status.OK)
        ok_span = ok[rows.request_of_span]
        self.processed = self._sums(of_request[ok], output[ok]) + self._sums(
            of_request[rows.request_of_span[ok_span]], trace.spans["tokens"].to_numpy()[ok_span]
        )
        self.turns = self._distinct(code, rows.session_of_request, requests["turn"].to_numpy())
        self.agents = self._distinct(code, rows.session_of_request, requests["agent"].to_numpy())
        self.dropped = sum(trace.quality.dropped.values())

    def _sums(self, codes: Ints, tokens: Ints | None) -> Ints:
        sums = np.zeros(len(self.names), dtype=np.int64)
        np.add.at(sums, codes, 1 if tokens is None else tokens)
        return sums

    def _distinct(self, code: Ints, session: Ints, ordinal: Ints) -> Ints:
        pairs = np.unique(np.stack((session, ordinal.astype(np.int64)), axis=1), axis=0)
        return self._sums(code[pairs[:, 0]], None)


def _one_workload(
    name: str, code: int, counts: _Counts, columns: SegmentColumns, seed: int, replicates: int
) -> WorkloadStats:
    of_class = {kind: columns.of_class(kind) for kind in columns.classes()}
    pairs = [pair for pair in PAIRS if pair[0] in of_class and pair[1] in of_class]
    per_turn = {
        str(kind): Distribution.of(of_class[kind].tokens_per_turn())
        for kind in TURN_CLASSES
        if kind in of_class
    }
    worker = of_class.get(SegmentClass.WORKER)
    lead = of_class.get(SegmentClass.LEAD)
    return WorkloadStats(
        workload=name,
        sessions=int(counts.sessions[code]),
        turns=int(counts.turns[code]),
        agents=int(counts.agents[code]),
        requests=int(counts.requests[code]),
        requests_by_status={word: int(count[code]) for word, count in counts.status.items()},
        tokens_processed=int(counts.processed[code]),
        tokens_written=columns.materialised_tokens(),
        output_tokens=int(counts.output[code]),
        reasoning_tokens=int(counts.reasoning[code]),
        classes={str(kind): _class_stats(rows) for kind, rows in of_class.items()},
        closed_by=_closed_by(columns),
        tokens_per_turn=per_turn,
        quality={word: int(count[code]) for word, count in counts.usage_source.items()}
        | {"dropped": counts.dropped},
        laden_share=_laden_share(per_turn),
        lifetime_ratio={
            pair_name(pair): _median_ratio(of_class[pair[0]], of_class[pair[1]]) for pair in pairs
        },
        separability={
            pair_name(pair): _separability(of_class[pair[0]], of_class[pair[1]], seed, replicates)
            for pair in pairs
        },
        rho_overlap=_rho_overlap(lead, worker),
        lead_waiting_share=_lead_waiting_share(columns),
        worker_spread=None
        if worker is None
        else WorkerSpread(spread(worker.t_norm_s), spread(worker.tokens)),
        worker_tau=None if worker is None else kendall_tau(worker.t_norm_s, worker.tokens),
    )


def _class_stats(rows: SegmentColumns) -> ClassStats:
    return ClassStats(
        segments=len(rows),
        tokens_written=rows.materialised_tokens(),
        t_norm_s=Distribution.of(rows.t_norm_s),
        rho_rw=Distribution.of(rows.rho[~np.isnan(rows.rho)]),
        tokens_per_segment=Distribution.of(rows.tokens),
    )


def _closed_by(columns: SegmentColumns) -> dict[str, ClosedStats]:
    found = {}
    for kind in sorted(set(columns.closed_by.tolist())):
        rows = columns.where(columns.closed_by == kind)
        found[kind] = ClosedStats(len(rows), rows.materialised_tokens())
    return found


def _laden_share(per_turn: dict[str, Distribution]) -> float | None:
    means = [per_turn[str(kind)].mean for kind in TURN_CLASSES if str(kind) in per_turn]
    if len(means) < len(TURN_CLASSES) or means[0] is None or means[1] is None:
        return None
    both = math.fsum((means[0], means[1]))
    return means[0] / both if both > 0 else None


def _median_ratio(longer: SegmentColumns, shorter: SegmentColumns) -> float | None:
    below = median(shorter.t_norm_s)
    return median(longer.t_norm_s) / below if below > 0 else None


def _separability(
    longer: SegmentColumns, shorter: SegmentColumns, seed: int, replicates: int
) -> Separability:
    value = separability(longer.t_norm_s, shorter.t_norm_s)
    interval = separability_interval(
        longer.t_norm_s, longer.session, shorter.t_norm_s, shorter.session,
        seed=seed, replicates=replicates,
    )  # fmt: skip
    low, high = interval or (None, None)
    return Separability(value, low, high)


def _rho_overlap(lead: SegmentColumns | None, worker: SegmentColumns | None) -> float | None:
    if lead is None or worker is None:
        return None
    of_lead, of_worker = (rows.rho[~np.isnan(rows.rho)] for rows in (lead, worker))
    return overlap(of_lead, of_worker) if len(of_lead) and len(of_worker) else None


def _lead_waiting_share(columns: SegmentColumns) -> float | None:
    subagents = np.isin(columns.kind, (str(SegmentClass.WORKER), str(SegmentClass.REVIEWER)))
    shares = columns.waiting[np.unique(columns.session[subagents])]
    shares = shares[~np.isnan(shares)]
    return median(shares) if len(shares) else None

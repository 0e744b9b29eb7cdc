"""How well scores order workers: Kendall's tau, quartiles, and what the lowest scores select.

The figures are those of section 3.5 and Figure 7 of the paper, defined in ``docs/predictor.md``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lachesis.characterise.statistics import (
    kendall_tau,
    median,
    percentiles,
    separability,
)
from lachesis.errors import InputError
from lachesis.predict.out_of_fold import worker_scores
from lachesis.predict.predictor import ALPHA, Kind, TrainedPredictor
from lachesis.predict.selection import FRACTIONS, Selection, select, select_at_random
from lachesis.predict.worker_table import WorkerTable, worker_table
from lachesis.presets import LatencyPreset
from lachesis.traces.trace import Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = NDArray[np.int64]

QUARTILES = 4
# Each costs one tau over all workers; 200 settle the ends of the interval to a hundredth.
REPLICATES = 200
SESSIONS_MIN = 5


@dataclass(frozen=True)
class Order:
    """How well some workers are ordered.

    Attributes:
        workers: how many.
        sessions: in how many different sessions.
        kendall_tau: tau-b of scores and lifetimes; None where either side is all alike.
        kendall_tau_ci95: 95 % interval by session bootstrap; None from fewer than five sessions,
            whose few combinations say little.
    """

    workers: int
    sessions: int
    kendall_tau: float | None
    kendall_tau_ci95: tuple[float, float] | None


@dataclass(frozen=True)
class Quartile:
    """Lifetimes of a quarter of the workers by score, the first with the lowest; in seconds."""

    workers: int
    p10: float
    p25: float
    p50: float
    p75: float
    p90: float


@dataclass(frozen=True)
class Evaluation:
    """Everything that is said of a predictor's scores.

    Attributes:
        kind: of the predictor.
        order: over all workers.
        by_workload: within each workload, sorted by name.
        top_k: by fraction of the workers: what the lowest scores select, and what chance would.
        quartiles: by score; None with fewer than four workers.
        quartile_separability: for each pair of neighbours, how sure a worker of the later one
            outlives one of the earlier: P(X > Y) + P(X = Y) / 2.
        quartile_ratio: median lifetime of the last over that of the first.
        workers_left_out: workers of sessions that the predictor was trained on.
    """

    kind: str
    order: Order
    by_workload: dict[str, Order]
    top_k: dict[float, tuple[Selection, Selection]]
    quartiles: list[Quartile] | None
    quartile_separability: list[float] | None
    quartile_ratio: float | None
    workers_left_out: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain values, under the keys of ``lachesis predictor evaluate --json``."""
        return {
            "kind": self.kind,
            **_plain(self.order),
            "workers_left_out": self.workers_left_out,
            "by_workload": {name: _plain(order) for name, order in self.by_workload.items()},
            "top_k": {
                f"{fraction:g}": {**asdict(chosen), "random": _shares(by_chance)}
                for fraction, (chosen, by_chance) in self.top_k.items()
            },
            "quartiles": None if self.quartiles is None else [asdict(q) for q in self.quartiles],
            "quartile_separability": self.quartile_separability,
            "quartile_ratio": self.quartile_ratio,
        }


def evaluate(
    trace: Trace,
    predictor: Kind | TrainedPredictor = Kind.RIDGE,
    *,
    alpha: float = ALPHA,
    latency: LatencyPreset | None = None,
    seed: int = 0,
    replicates: int = REPLICATES,
) -> Evaluation:
    """Score every worker by a model that never saw its session, and say how well.

    A kind is evaluated out of fold. A trained predictor is evaluated on the sessions it was not
    trained on; the workers of the others are left out and counted.

    Args:
        trace: with workers.
        predictor: a kind, or a trained predictor.
        alpha: the penalty of a kind.
        latency: of the reference clock; the paper's by default.
        seed: of the delays that the trace leaves open, and of the bootstrap.
        replicates: of the bootstrap.

    Raises:
        InputError: no worker to evaluate on; whatever `out_of_fold.segment_scores` raises.

    Example:
        >>> from lachesis.traces import open_trace
        >>> found = evaluate(open_trace("terminal-bench"), Kind.LENGTH)
        >>> found.order.sessions
        75
    """
    table = worker_table(trace, latency=latency, seed=seed)
    if not len(table):
        raise InputError("holds no worker to evaluate on", path=trace.source)
    if isinstance(predictor, Kind):
        scores = worker_scores(table, predictor, alpha=alpha, source=trace.source)
        return evaluate_scores(table, scores, str(predictor), seed=seed, replicates=replicates)
    seen = set(predictor.trained_on.sessions)
    digests = np.array([digest in seen for digest in table.session_digests])
    rows = np.flatnonzero(~digests[table.session])
    if not len(rows):
        raise InputError(
            "the predictor was trained on every session with workers; evaluate it on others, or "
            "its kind out of fold",
            path=trace.source,
        )
    scores = predictor.score(table.records)
    return evaluate_scores(
        table, scores, str(predictor.kind), rows=rows, seed=seed, replicates=replicates
    )


def evaluate_scores(
    table: WorkerTable,
    scores: Floats,
    kind: str,
    *,
    rows: Rows | None = None,
    by_workload: bool = True,
    seed: int = 0,
    replicates: int = REPLICATES,
) -> Evaluation:
    """Say how well scores order the workers of a table.

    Args:
        table: the workers.
        scores: one a row, the lower the shorter.
        kind: what made them, as it is reported.
        rows: the rows to look at; all by default, at least one.
        by_workload: whether each workload is looked at on its own too.
        seed: of the bootstrap.
        replicates: of the bootstrap.
    """
    rows = np.arange(len(table)) if rows is None else rows
    lifetime_s, scores = table.lifetime_s[rows], scores[rows]
    session, workload = table.session[rows], table.workload[rows].astype(str)
    apart = {}
    for name in np.unique(workload).tolist() if by_workload else ():
        own = workload == name
        apart[name] = _order(lifetime_s[own], scores[own], session[own], seed, replicates)
    quarters = _quarters(lifetime_s, scores)
    return Evaluation(
        kind=kind,
        order=_order(lifetime_s, scores, session, seed, replicates),
        by_workload=apart,
        top_k={
            fraction: (select(lifetime_s, scores, fraction), select_at_random(len(rows), fraction))
            for fraction in FRACTIONS
        },
        quartiles=None if quarters is None else [_quartile(each) for each in quarters],
        quartile_separability=None
        if quarters is None
        else [separability(later, earlier) for earlier, later in pairwise(quarters)],
        quartile_ratio=None if quarters is None else _ratio(quarters[-1], quarters[0]),
        workers_left_out=len(table) - len(rows),
    )


def _order(lifetime_s: Floats, scores: Floats, session: Ints, seed: int, replicates: int) -> Order:
    tau = kendall_tau(lifetime_s, scores)
    return Order(
        workers=len(scores),
        sessions=len(np.unique(session)),
        kendall_tau=tau,
        kendall_tau_ci95=None
        if tau is None
        else _interval(lifetime_s, scores, session, seed, replicates),
    )


def _interval(
    lifetime_s: Floats, scores: Floats, session: Ints, seed: int, replicates: int
) -> tuple[float, float] | None:
    """Percentiles 2.5 and 97.5 of tau over sessions drawn with replacement."""
    names, codes = np.unique(session, return_inverse=True)
    if len(names) < SESSIONS_MIN:
        return None
    order = np.argsort(codes, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(replicates):
        drawn = np.concatenate([members[one] for one in rng.integers(len(names), size=len(names))])
        tau = kendall_tau(lifetime_s[drawn], scores[drawn])
        if tau is not None:
            found.append(tau)
    if not found:
        return None
    low, high = percentiles(np.array(found), 2.5, 97.5)
    return low, high


def _quarters(lifetime_s: Floats, scores: Floats) -> list[Floats] | None:
    """Lifetimes by quarters of the scores; equal scores keep the table's order."""
    if len(scores) < QUARTILES:
        return None
    return np.array_split(lifetime_s[np.argsort(scores, kind="stable")], QUARTILES)


def _quartile(lifetime_s: Floats) -> Quartile:
    return Quartile(len(lifetime_s), *percentiles(lifetime_s, 10, 25, 50, 75, 90))


def _ratio(last: Floats, first: Floats) -> float | None:
    low = median(first)
    return median(last) / low if low > 0 else None


def _plain(order: Order) -> dict[str, Any]:
    interval = order.kendall_tau_ci95
    return {**asdict(order), "kendall_tau_ci95": None if interval is None else list(interval)}


def _shares(selection: Selection) -> dict[str, float]:
    shares = asdict(selection)
    del shares["k"]
    return shares

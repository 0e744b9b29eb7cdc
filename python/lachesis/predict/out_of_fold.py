"""Scores from models that never saw the session they score.

- `ridge`, `counts`: five folds (fewer where there are fewer sessions), all workers of a session in
  one; each fold is scored by a model of the others. Sessions of equal content count as one.
- `online`: session by session in an order that follows their content; a session is scored by what
  the sessions before it taught, then learned from. The first is scored by nothing: all alike.
- `instruction-length`: needs no training.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lachesis import _engine
from lachesis.errors import InputError
from lachesis.predict.folds import fold_of_groups, ridge_without_each_fold
from lachesis.predict.predictor import ALPHA, FeatureSettings, Kind, TrainedPredictor
from lachesis.predict.training import check_alpha, log_lifetime, untrained
from lachesis.predict.worker_table import WorkerTable, worker_table
from lachesis.presets import LatencyPreset
from lachesis.traces.trace import Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SegmentKey: TypeAlias = tuple[str, int]

FOLDS = 5


def out_of_fold_scores(
    trace: Trace, kind: Kind | TrainedPredictor = Kind.RIDGE, *, alpha: float = ALPHA,
    latency: LatencyPreset | None = None, seed: int = 0,
) -> dict[SegmentKey, float]:  # fmt: skip
    """A score for each worker segment, by (session, segment); see `segment_scores`.

    Example:
        >>> from lachesis.traces import open_trace
        >>> scores = out_of_fold_scores(open_trace("webarena"), Kind.LENGTH)
        >>> min(scores)[0].startswith("webarena")
        True
    """
    scores = segment_scores(trace, kind, alpha=alpha, latency=latency, seed=seed)
    names = trace.segments["session"].to_pylist()
    numbers = trace.segments["segment"].to_pylist()
    return {
        (names[row], numbers[row]): float(scores[row])
        for row in np.flatnonzero(~np.isnan(scores)).tolist()
    }


def segment_scores(
    trace: Trace, kind: Kind | TrainedPredictor = Kind.RIDGE, *, alpha: float = ALPHA,
    latency: LatencyPreset | None = None, seed: int = 0,
) -> Floats:  # fmt: skip
    """One score a row of the trace's `segments` table; NaN where it is no worker's.

    Every score comes from a model that never saw its session: out of fold for a kind, and for a
    trained predictor by refusing sessions it was trained on.

    Args:
        trace: any trace; without workers all is NaN.
        kind: which predictor, or one that is trained.
        alpha: the penalty of a kind.
        latency: of the reference clock; the paper's by default.
        seed: of the delays that the trace leaves open.

    Raises:
        InputError: workers of one session only, which no other can teach; a predictor that saw
            some session of the trace.
    """
    table = worker_table(trace, latency=latency, seed=seed)
    scores = np.full(trace.segments.num_rows, np.nan)
    if isinstance(kind, TrainedPredictor):
        refuse_seen(kind, table, trace.source)
        scores[table.segment_row] = kind.score(table.records)
    elif len(table):
        scores[table.segment_row] = worker_scores(table, kind, alpha=alpha, source=trace.source)
    return scores


def true_lifetimes(trace: Trace, *, latency: LatencyPreset | None = None, seed: int = 0) -> Floats:
    """Lifetime in seconds of each worker segment, by row of `segments`; NaN for the others.

    Example:
        >>> from lachesis.traces import open_trace
        >>> lifetimes = true_lifetimes(open_trace("webarena"))
        >>> bool(np.nanmin(lifetimes) > 0), bool(np.isnan(lifetimes).any())
        (True, True)
    """
    table = worker_table(trace, latency=latency, seed=seed)
    lifetimes = np.full(trace.segments.num_rows, np.nan)
    lifetimes[table.segment_row] = table.lifetime_s
    return lifetimes


def worker_scores(
    table: WorkerTable, kind: Kind, *, alpha: float = ALPHA, source: str | None = None
) -> Floats:
    """One score a row of a table that has any, each from a model that never saw its session."""
    check_alpha(alpha)
    if kind is Kind.LENGTH:
        return untrained(kind).score(table.records)
    spec = FeatureSettings.of(kind).spec()
    extracted = table.records.extract(spec)
    if kind is Kind.ONLINE:
        return _by_session(table, extracted, untrained(kind, alpha).engine)
    scores = np.full(len(table), np.nan)
    folds = fold_of_rows(table, source)
    fits = ridge_without_each_fold(
        extracted, log_lifetime(table.lifetime_s), folds, alpha, spec.width
    )
    for fold, (intercept, weights) in enumerate(fits):
        asked = np.flatnonzero(folds == fold)
        engine = _engine.Predictor.linear(spec, intercept, weights)
        scores[asked] = engine.score(extracted.take(asked.tolist()))
    return scores


def fold_of_rows(table: WorkerTable, source: str | None = None) -> Ints:
    """Which fold each row is scored in: five of like size, every session whole in one.

    Raises:
        InputError: workers of fewer than two different sessions.
    """
    sessions = len(table.session_digests)
    if sessions < 2:
        raise InputError(
            f"has workers in {sessions} session: a score from other sessions needs at least 2",
            path=source,
        )
    return fold_of_groups(table.session, min(FOLDS, sessions))


def refuse_seen(predictor: TrainedPredictor, table: WorkerTable, source: str) -> None:
    """Refuse to score sessions that a predictor was trained on.

    Raises:
        InputError: there are some.
    """
    seen = set(predictor.trained_on.sessions) & set(table.session_digests)
    if seen:
        raise InputError(
            f"the predictor was trained on {len(seen)} of its {len(table.session_digests)} "
            "sessions with workers; score those out of fold, by kind",
            path=source,
        )


def _by_session(
    table: WorkerTable, extracted: _engine.SpawnFeatures, online: _engine.Predictor
) -> Floats:
    scores = np.empty(len(table))
    starts = np.flatnonzero(np.diff(table.session, prepend=-1))
    for rows in np.split(np.arange(len(table)), starts[1:]):
        features = extracted.take(rows.tolist())
        scores[rows] = online.score(features)
        online.learn(features, table.lifetime_s[rows])
    return scores

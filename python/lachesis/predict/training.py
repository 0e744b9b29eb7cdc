"""Training: ridge regression on log lifetime, one model for every workload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lachesis import __version__, _engine
from lachesis.errors import InputError
from lachesis.predict.one_thread import one_thread
from lachesis.predict.predictor import (
    ALPHA,
    FeatureSettings,
    Kind,
    TrainedOn,
    TrainedPredictor,
)
from lachesis.predict.worker_table import WorkerTable, worker_table
from lachesis.presets import LatencyPreset
from lachesis.traces.trace import Trace

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Kinds that scikit-learn fits.
FITTED = (Kind.RIDGE, Kind.COUNTS)
# The solver is iterative, so that memory grows with the words that occur and not with workers
# times buckets; at this tolerance predictions agree with the exact solution to 1e-8 or better.
_TOLERANCE = 1e-12


def train(
    trace: Trace,
    kind: Kind = Kind.RIDGE,
    *,
    alpha: float = ALPHA,
    latency: LatencyPreset | None = None,
    seed: int = 0,
) -> TrainedPredictor:
    """Fit a predictor to all workers of `trace`; equal traces give equal predictors.

    Args:
        trace: with at least one worker, unless the kind needs no training.
        kind: which predictor.
        alpha: the penalty, above 0.
        latency: of the reference clock; the paper's by default.
        seed: of the delays that the trace leaves open.

    Raises:
        InputError: no worker, an impossible `alpha`, or scikit-learn is needed and missing.

    Example:
        >>> from lachesis.traces import open_trace
        >>> train(open_trace("webarena"), Kind.LENGTH)
        TrainedPredictor('instruction-length', 0 workers)
    """
    check_alpha(alpha)
    if kind is Kind.LENGTH:
        return untrained(kind, alpha)
    table = worker_table(trace, latency=latency, seed=seed)
    if not len(table):
        raise InputError("holds no worker to train on", path=trace.source)
    features = FeatureSettings.of(kind)
    rows = np.arange(len(table))
    engine = fit(kind, features, table.records.extract(features.spec()), rows, table, alpha)
    names, counts = np.unique(table.workload.astype(str), return_counts=True)
    trained_on = TrainedOn(
        workers=len(table),
        workloads=dict(zip(names.tolist(), counts.tolist(), strict=True)),
        sessions=tuple(table.session_digests),
        trace_sha256=trace.sha256,
        lifetimes_floored=table.floored,
        seed=seed,
        software=_software(kind),
    )
    return TrainedPredictor(kind, features, engine, alpha=alpha, trained_on=trained_on)


def untrained(kind: Kind, alpha: float = ALPHA) -> TrainedPredictor:
    """A predictor that has seen no worker; of the kinds that can be without training.

    Raises:
        InputError: the kind is nothing before it is trained.
    """
    check_alpha(alpha)
    features = FeatureSettings.of(kind)
    if kind is Kind.ONLINE:
        return TrainedPredictor(
            kind, features, _engine.Predictor.online(features.spec(), alpha), alpha=alpha
        )
    if kind is not Kind.LENGTH:
        raise InputError("must be trained before it scores", field="kind", value=str(kind))
    # The first feature is the instruction's length; where it is unknown the feature is 0, the
    # length of a middling instruction.
    weights = np.zeros(features.spec().width)
    weights[0] = 1.0
    engine = _engine.Predictor.linear(features.spec(), 0.0, weights)
    return TrainedPredictor(kind, features, engine, alpha=alpha)


def fit(
    kind: Kind,
    features: FeatureSettings,
    extracted: _engine.SpawnFeatures,
    rows: Ints,
    table: WorkerTable,
    alpha: float,
) -> _engine.Predictor:
    """Weights from some rows of a table, whose features are `extracted`."""
    spec = features.spec()
    lifetime_s = table.lifetime_s[rows]
    if kind is Kind.ONLINE:
        online = _engine.Predictor.online(spec, alpha)
        online.learn(extracted.take(rows.tolist()), lifetime_s)
        return online
    model = ridge(feature_matrix(extracted, spec.width)[rows], log_lifetime(lifetime_s), alpha)
    weights = np.ascontiguousarray(model.coef_, dtype=np.float64)
    return _engine.Predictor.linear(spec, float(model.intercept_), weights)


def ridge(matrix: csr_array, target: Floats, alpha: float) -> Any:  # noqa: ANN401
    """A fitted `sklearn.linear_model.Ridge`: |y - Xw - b|² + alpha |w|², b not penalised."""
    require_scikit_learn()
    from sklearn.linear_model import Ridge

    with one_thread():
        return Ridge(alpha=alpha, solver="sparse_cg", tol=_TOLERANCE).fit(matrix, target)


def feature_matrix(extracted: _engine.SpawnFeatures, width: int) -> csr_array:
    """Features as the sparse matrix that scikit-learn takes."""
    require_scikit_learn()
    from scipy.sparse import csr_array

    offsets, indices, values = extracted.csr()
    return csr_array(
        (values, indices.astype(np.int32), offsets.astype(np.int32)), shape=(len(extracted), width)
    )


def log_lifetime(lifetime_s: Floats) -> Floats:
    """What is fitted: the natural logarithm of a lifetime in seconds, floored.

    Example:
        >>> log_lifetime(np.array([0.0, 1.0])).round(3).tolist()
        [-1.609, 0.0]
    """
    logarithm: Floats = np.log(np.maximum(lifetime_s, _engine.LIFETIME_FLOOR_S))
    return logarithm


def require_scikit_learn() -> None:
    """Say what to install where scikit-learn is missing.

    Raises:
        InputError: it is.
    """
    try:
        import sklearn  # noqa: F401
    except ImportError as fault:
        raise InputError(
            "training needs scikit-learn, which is not installed: pip install scikit-learn"
        ) from fault


def check_alpha(alpha: float) -> None:
    """Refuse a penalty that is not above 0.

    Raises:
        InputError: it is not, or not finite.
    """
    if not (np.isfinite(alpha) and alpha > 0):
        raise InputError("must be a finite number above 0", field="alpha", value=alpha)


def _software(kind: Kind) -> str:
    ours = f"lachesis {__version__}"
    if kind not in FITTED:
        return ours
    from importlib.metadata import version

    return f"{ours}, scikit-learn {version('scikit-learn')}"

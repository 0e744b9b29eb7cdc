"""How much of a worker's lifetime a linear model reads out of its spawn record.

Needs scikit-learn, which the package itself does not: this module only checks the planted signal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold

from lachesis.characterise.reference_clock import schedule
from lachesis.presets import load_latency
from lachesis.traces.generator.measurement import CLOCK_SEED
from lachesis.traces.schema import SegmentClass
from lachesis.traces.trace import Trace

Floats = NDArray[np.float64]

_FOLDS = 5
_HASHED_WORDS = 2**12
_PENALTY = 10.0


def check(trace: Trace) -> dict[str, float]:
    """Kendall's tau out of fold, and what the tenth predicted shortest holds."""
    lifetime_s, predicted = predict(trace)
    count = max(1, round(0.1 * len(lifetime_s)))
    chosen = np.argsort(predicted, kind="stable")[:count]
    order = np.argsort(lifetime_s, kind="stable")
    shortest, longest = set(order[:count].tolist()), set(order[-count:].tolist())
    return {
        "kendall_tau": float(stats.kendalltau(lifetime_s, predicted).statistic),
        "shortest_tenth_found": sum(i in shortest for i in chosen.tolist()) / count,
        "longest_tenth_taken": sum(i in longest for i in chosen.tolist()) / count,
    }


def predict(trace: Trace) -> tuple[Floats, Floats]:
    """Each worker's lifetime and its out-of-fold prediction of the log, in the order of spawns."""
    clock = schedule(trace, load_latency(), CLOCK_SEED)
    segments = trace.segments
    lives = {
        key: life
        for *key_parts, kind, life in zip(
            segments["session"].to_pylist(),
            segments["agent"].to_pylist(),
            segments["class"].to_pylist(),
            clock.t_norm_s.tolist(),
            strict=True,
        )
        if kind == SegmentClass.WORKER
        for key in [tuple(key_parts)]
    }
    records = [row for row in trace.spawns.to_pylist() if row["role"] == "worker"]
    target = np.log([lives[row["session"], row["agent"]] for row in records])
    words = HashingVectorizer(n_features=_HASHED_WORDS, norm="l2", alternate_sign=False)
    texts = [f"{row['instruction']} {row['context']}" for row in records]
    tools = sorted({tool for row in records for tool in row["tools"]})
    numbers = np.array(
        [
            [
                np.log(row["instruction_tokens"]),
                np.log(row["context_tokens"]),
                row["position"],
                *(float(tool in row["tools"]) for tool in tools),
            ]
            for row in records
        ]
    )
    numbers = (numbers - numbers.mean(axis=0)) / np.maximum(numbers.std(axis=0), 1e-9)
    features = sparse.hstack(
        [10.0 * words.transform(texts), sparse.csr_matrix(numbers)], format="csr"
    )
    sessions = np.array([row["session"] for row in records])
    predicted = np.empty(len(records))
    for train, held_out in GroupKFold(_FOLDS).split(features, target, sessions):
        model = Ridge(alpha=_PENALTY).fit(features[train], target[train])
        predicted[held_out] = model.predict(features[held_out])
    return np.exp(target), predicted

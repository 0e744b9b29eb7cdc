"""How much of a worker's lifetime a linear model reads out of its spawn record.

Ridge regression on log lifetime, read for its order only (paper, section 3.5). It checks the
planted signal while the corpora are made; it is no predictor to serve with.
"""

from __future__ import annotations

import re
import zlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lachesis.calibrate.measurement import CLOCK_SEED
from lachesis.characterise.reference_clock import schedule
from lachesis.characterise.statistics import kendall_tau
from lachesis.presets import load_latency
from lachesis.traces.schema import Role, SegmentClass
from lachesis.traces.trace import Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FOLDS: Final = 5
_HASHED_WORDS: Final = 2**12
# Weight of the words against the standardised numbers, and the ridge's penalty.
_WORDS_WEIGHT: Final = 10.0
_PENALTY: Final = 10.0
_WORD: Final = re.compile(r"[a-z]{2,}")


def check(trace: Trace) -> dict[str, float]:
    """Kendall's tau out of fold, and what the tenth predicted shortest holds."""
    lifetime_s, predicted = predict(trace)
    count = max(1, round(0.1 * len(lifetime_s)))
    chosen = np.argsort(predicted, kind="stable")[:count]
    order = np.argsort(lifetime_s, kind="stable")
    tau = kendall_tau(lifetime_s, predicted)
    assert tau is not None, "Invariant: neither lifetimes nor predictions are all alike"
    return {
        "kendall_tau": tau,
        "shortest_tenth_found": float(np.isin(chosen, order[:count]).mean()),
        "longest_tenth_taken": float(np.isin(chosen, order[-count:]).mean()),
    }


def predict(trace: Trace) -> tuple[Floats, Floats]:
    """Each worker's lifetime and its out-of-fold prediction of the log, in the order of spawns."""
    records = [row for row in trace.spawns.to_pylist() if row["role"] == Role.WORKER]
    lifetime_s = _lifetimes_s(trace, records)
    features = np.hstack((_words(records), _numbers(records)))
    target = np.log(lifetime_s)
    sessions = np.unique([row["session"] for row in records], return_inverse=True)[1]
    predicted = np.empty(len(records))
    for fold in range(_FOLDS):
        held_out = sessions % _FOLDS == fold
        predicted[held_out] = _ridge(features[~held_out], target[~held_out], features[held_out])
    return lifetime_s, predicted


def _ridge(features: Floats, target: Floats, wanted: Floats) -> Floats:
    """Predictions by weights that minimise |y - Xw|^2 + penalty |w|^2, all centred.

    In the dual form: w = X' (X X' + penalty I)^-1 y.
    """
    center, level = features.mean(axis=0), float(target.mean())
    known = features - center
    gram = known @ known.T
    gram[np.diag_indices_from(gram)] += _PENALTY
    weights = known.T @ np.linalg.solve(gram, target - level)
    predicted: Floats = level + (wanted - center) @ weights
    return predicted


def _lifetimes_s(trace: Trace, records: list[dict[str, object]]) -> Floats:
    clock = schedule(trace, load_latency(), CLOCK_SEED)
    columns = (trace.segments[name].to_pylist() for name in ("session", "agent", "class"))
    lives = {
        (session, agent): life
        for session, agent, kind, life in zip(*columns, clock.t_norm_s.tolist(), strict=True)
        if kind == SegmentClass.WORKER
    }
    return np.array([lives[row["session"], row["agent"]] for row in records])


def _words(records: list[dict[str, object]]) -> Floats:
    """Hashed counts of each record's words, scaled to the same length for every record."""
    counts = np.zeros((len(records), _HASHED_WORDS))
    for row, record in enumerate(records):
        for word in _WORD.findall(f"{record['instruction']} {record['context']}".lower()):
            counts[row, zlib.crc32(word.encode()) % _HASHED_WORDS] += 1.0
    scaled: Floats = _WORDS_WEIGHT * counts / np.linalg.norm(counts, axis=1, keepdims=True)
    return scaled


def _numbers(records: list[dict[str, object]]) -> Floats:
    """Log lengths, position in the session and an indicator a tool, standardised."""
    tool_lists = [set(map(str, _list(record["tools"]))) for record in records]
    tools = sorted(set().union(*tool_lists))
    numbers = np.array(
        [
            [
                np.log(float(str(record["instruction_tokens"]))),
                np.log(float(str(record["context_tokens"]))),
                float(str(record["position"])),
                *(float(tool in given) for tool in tools),
            ]
            for record, given in zip(records, tool_lists, strict=True)
        ]
    )
    standardised: Floats = (numbers - numbers.mean(axis=0)) / np.maximum(numbers.std(axis=0), 1e-9)
    return standardised


def _list(value: object) -> list[object]:
    assert isinstance(value, list), "Invariant: a list column of a validated trace"
    return value

"""Regressions that leave a fold out, against scikit-learn's, fold by fold."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from delegations import telling
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold

from lachesis.predict import Kind, evaluate, folds, worker_table
from lachesis.predict.folds import fold_of_groups, ridge_without_each_fold
from lachesis.predict.out_of_fold import segment_scores
from lachesis.predict.predictor import FeatureSettings
from lachesis.predict.training import feature_matrix
from lachesis.traces import open_trace
from lachesis.traces.generator import generate


@pytest.mark.parametrize("seed", range(5))
def test_groups_are_dealt_as_scikit_learn_deals_them(seed):
    group = np.random.default_rng(seed).integers(0, 40, size=500)
    group = np.unique(group, return_inverse=True)[1]
    expected = np.full(len(group), -1)
    for fold, (_, left_out) in enumerate(GroupKFold(5).split(group, groups=group)):
        expected[left_out] = fold
    assert np.array_equal(fold_of_groups(group, 5), expected)


@pytest.mark.parametrize("kind", [Kind.RIDGE, Kind.COUNTS])
@pytest.mark.parametrize(
    ("limit", "value"), [("_BLOCK_ROWS", 7), ("_BLOCK_ROWS", 4_096), ("_MOST_COLUMNS", 10)]
)
def test_weights_are_those_of_scikit_learn(kind, limit, value, monkeypatch):
    monkeypatch.setattr(folds, limit, value)
    table = worker_table(generate("terminal-bench", 3, 0.4))
    spec = FeatureSettings.of(kind).spec()
    extracted = table.records.extract(spec)
    target = np.log(table.lifetime_s)
    fold = fold_of_groups(table.session, 4)
    matrix = feature_matrix(extracted, spec.width).toarray()
    fits = ridge_without_each_fold(extracted, target, fold, 2.5, spec.width)
    assert len(fits) == 4
    for number, (intercept, weights) in enumerate(fits):
        taught = fold != number
        exact = Ridge(alpha=2.5, solver="cholesky").fit(matrix[taught], target[taught])
        assert weights == pytest.approx(exact.coef_, abs=1e-9)
        assert intercept == pytest.approx(exact.intercept_, abs=1e-9)


def test_scores_are_the_same_whatever_is_scored_beside_them():
    traces = [open_trace(name) for name in ("multi-agent", "multi-agent-no-reviewer")]
    alone = [segment_scores(trace) for trace in traces]
    for _ in range(3):
        with ThreadPoolExecutor(len(traces)) as pool:
            beside = list(pool.map(segment_scores, traces))
        for one, other in zip(alone, beside, strict=True):
            assert one.tobytes() == other.tobytes()


def test_scores_out_of_fold_need_no_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert evaluate(telling(), Kind.RIDGE).order.workers == 36

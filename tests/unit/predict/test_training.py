"""Training: agreement with scikit-learn, determinism, and what is refused."""

import sys

import numpy as np
import pytest
from delegations import LONG, SHORT, delegating, telling

from lachesis.errors import InputError
from lachesis.predict import Kind, SpawnRecords, evaluate, save, train, worker_table
from lachesis.predict.training import feature_matrix, fit, log_lifetime, ridge, untrained
from lachesis.traces.generator import generate

TRAINED = (Kind.RIDGE, Kind.COUNTS, Kind.ONLINE)


@pytest.fixture(scope="module")
def corpus():
    return generate("terminal-bench", 3, 0.4)


@pytest.mark.parametrize("kind", [Kind.RIDGE, Kind.COUNTS])
def test_scores_equal_the_predictions_of_scikit_learn(corpus, kind):
    from sklearn.linear_model import Ridge

    predictor = train(corpus, kind)
    table = worker_table(corpus)
    matrix = feature_matrix(table.records.extract(predictor.spec), predictor.spec.width)
    target = np.log(table.lifetime_s)
    scores = predictor.score(table.records)
    same = ridge(matrix, target, predictor.alpha).predict(matrix)
    assert np.abs(scores - same).max() < 1e-9
    # And the iterative solution is the one that elimination finds.
    exact = Ridge(alpha=predictor.alpha, solver="cholesky").fit(matrix.toarray(), target)
    assert np.abs(scores - exact.predict(matrix.toarray())).max() < 1e-9
    assert scores.std() > 0.1


def test_the_online_kind_is_recursive_least_squares_on_the_diagonal(corpus):
    table = worker_table(corpus)
    features = train(corpus, Kind.ONLINE).features
    matrix = feature_matrix(table.records.extract(features.spec()), features.spec().width)
    inputs = np.hstack((matrix.toarray(), np.ones((len(table), 1))))
    weights = np.zeros(inputs.shape[1])
    doubt = np.append(np.full(inputs.shape[1] - 1, 1 / 10.0), 100.0)
    for row, target in zip(inputs, np.log(table.lifetime_s), strict=True):
        gain = doubt * row / (1.0 + (doubt * row * row).sum())
        weights = weights + gain * (target - weights @ row)
        doubt = doubt - gain * row * doubt
    scores = train(corpus, Kind.ONLINE).score(table.records)
    assert np.abs(scores - inputs @ weights).max() < 1e-9


@pytest.mark.parametrize("kind", list(Kind))
def test_equal_traces_give_equal_files_whatever_the_names_and_order(tmp_path, kind):
    sessions = [[(SHORT, 10 + index), (LONG, 400 + 31 * index)] for index in range(6)]
    save(train(delegating(sessions), kind), tmp_path / "one")
    turned = delegating(sessions[::-1], names=list("uvwxyz"))
    save(train(turned, kind), tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("kind", [Kind.RIDGE, Kind.ONLINE])
def test_words_tell_short_workers_from_long_ones(kind):
    predictor = train(telling(), kind)
    records = SpawnRecords(
        ["Rebuild it from scratch", "Look it up at a glance"], [None] * 2, [10] * 2, [None] * 2,
        [["shell"]] * 2, [0, 0],
    )  # fmt: skip
    long, short = predictor.score(records)
    assert long > short + 0.5


def test_what_it_was_trained_on_is_noted():
    trained_on = train(telling(5), Kind.RIDGE, seed=4).trained_on
    assert trained_on.workers == 15
    assert trained_on.workloads == {"w": 15}
    assert len(set(trained_on.sessions)) == 5
    assert trained_on.seed == 4
    assert "scikit-learn" in trained_on.software
    assert trained_on.lifetimes_floored == 0


def test_a_lifetime_of_nothing_is_floored_and_counted():
    assert log_lifetime(np.array([0.0])) == pytest.approx(np.log(0.2))
    table = worker_table(telling(2))
    table.lifetime_s[0] = 0.0
    assert table.floored == 1
    extracted = table.records.extract(untrained(Kind.ONLINE).spec)
    features = untrained(Kind.ONLINE).features
    fitted = fit(Kind.RIDGE, features, extracted, np.arange(len(table)), table, 10.0)
    assert np.isfinite(fitted.score(extracted)).all()


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("kind", list(Kind))
def test_an_impossible_penalty_is_refused(alpha, kind):
    with pytest.raises(InputError, match=r"alpha = .*above 0"):
        train(telling(2), kind, alpha=alpha)
    with pytest.raises(InputError, match=r"alpha = .*above 0"):
        evaluate(telling(2), kind, alpha=alpha)


def test_a_trace_without_workers_trains_nothing():
    trace = generate("tau3-airline", 1, 0.1)
    with pytest.raises(InputError, match="holds no worker to train on"):
        train(trace)
    with pytest.raises(InputError, match="holds no worker to evaluate on"):
        evaluate(trace)


def test_without_scikit_learn_only_training_fails_and_says_what_to_install(monkeypatch):
    trained = train(telling())
    records = worker_table(telling()).records
    before = trained.score(records)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(InputError, match="pip install scikit-learn") as raised:
        train(telling())
    assert "\n" not in str(raised.value)
    assert (trained.score(records) == before).all()
    assert evaluate(telling(), Kind.ONLINE).order.workers == 36
    assert evaluate(telling(), Kind.LENGTH).order.workers == 36


def test_only_the_online_kind_learns():
    records = worker_table(telling()).records
    lifetimes = np.full(len(records), 7.0)
    for kind in Kind:
        predictor = train(telling(), kind)
        before = predictor.score(records)
        predictor.learn(records, lifetimes)
        assert (predictor.score(records) == before).all() == (kind is not Kind.ONLINE)


def test_an_impossible_lifetime_is_refused_and_changes_nothing():
    records = worker_table(telling()).records
    predictor = train(telling(), Kind.ONLINE)
    before = predictor.score(records)
    lifetimes = np.full(len(records), 7.0)
    for wrong in (-1.0, float("nan"), float("inf")):
        lifetimes[-1] = wrong
        with pytest.raises(InputError, match=r"lifetime_s = .*at least 0"):
            predictor.learn(records, lifetimes)
    assert (predictor.score(records) == before).all()


def test_kinds_that_need_training_do_not_score_before_it():
    for kind in (Kind.RIDGE, Kind.COUNTS):
        with pytest.raises(InputError, match="must be trained before it scores"):
            untrained(kind)
    with pytest.raises(InputError, match="kind = forest, must be one of ridge, counts"):
        Kind.parse("forest")

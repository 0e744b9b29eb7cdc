"""No worker is scored by a model that saw its session."""

import numpy as np
import pytest
from delegations import LONG, SHORT, delegating, telling

from lachesis.errors import InputError
from lachesis.predict import (
    Kind,
    out_of_fold_scores,
    segment_scores,
    train,
    true_lifetimes,
    worker_table,
)
from lachesis.predict.out_of_fold import FOLDS, fold_of_rows, worker_scores
from lachesis.traces.generator import generate


def scores_by_session(trace, kind):
    found = {}
    for (session, segment), score in out_of_fold_scores(trace, kind).items():
        found.setdefault(session, []).append((segment, score))
    return found


def test_folds_keep_sessions_whole_and_are_of_like_size():
    table = worker_table(generate("webarena", 2, 0.5))
    folds = fold_of_rows(table)
    assert set(folds.tolist()) == set(range(FOLDS))
    for session in np.unique(table.session):
        assert len(set(folds[table.session == session].tolist())) == 1
    sizes = np.bincount(folds)
    assert sizes.max() - sizes.min() <= np.bincount(table.session).max()


@pytest.mark.parametrize("kind", [Kind.RIDGE, Kind.COUNTS])
def test_lifetimes_of_a_fold_move_the_scores_of_the_others_only(kind):
    table = worker_table(telling(11))
    folds = fold_of_rows(table)
    before = worker_scores(table, kind)
    table.lifetime_s[folds == 2] *= 10.0
    moved = worker_scores(table, kind) != before
    assert (moved == (folds != 2)).all()


def test_the_online_kind_scores_a_session_by_the_sessions_before_it():
    table = worker_table(telling(11))
    before = worker_scores(table, Kind.ONLINE)
    assert (before[table.session == 0] == 0.0).all(), "nothing was seen before the first"
    table.lifetime_s[table.session == 5] *= 10.0
    moved = worker_scores(table, Kind.ONLINE) != before
    assert (moved == (table.session > 5)).all()


@pytest.mark.parametrize("kind", list(Kind))
def test_scores_follow_content_not_names_or_order(kind):
    sessions = [[(SHORT, 10 + index), (LONG, 900 + 31 * index)] for index in range(9)]
    plain = scores_by_session(delegating(sessions), kind)
    names = [f"z{index}" for index in range(9)]
    turned = scores_by_session(delegating(sessions[::-1], names=names), kind)
    for index in range(9):
        assert plain[f"s{index}"] == turned[f"z{8 - index}"]


@pytest.mark.parametrize("kind", list(Kind))
def test_twins_of_one_session_teach_each_other_nothing(kind):
    once = [[(SHORT, 10 + index), (LONG, 900 + 31 * index)] for index in range(4)]
    trace = delegating([*once, once[0]])
    table = worker_table(trace)
    assert len(table.session_digests) == 4
    scores = scores_by_session(trace, kind)
    assert scores["s0"] == scores["s4"]


def test_scores_stand_at_the_workers_segments():
    trace = telling(6)
    scores, lifetimes = segment_scores(trace, Kind.RIDGE), true_lifetimes(trace)
    workers = np.array(trace.segments["class"].to_pylist()) == "worker"
    assert workers.sum() == 18
    for values in (scores, lifetimes):
        assert values.dtype == np.float64
        assert (np.isnan(values) == ~workers).all()
    # 0.2 s an output token, and nothing else happens in these workers.
    assert np.nanmin(lifetimes) == pytest.approx(2.0)
    keys = set(out_of_fold_scores(trace, Kind.RIDGE))
    rows = zip(
        trace.segments["session"].to_pylist(), trace.segments["segment"].to_pylist(), strict=True
    )
    assert keys == {key for key, is_worker in zip(rows, workers, strict=True) if is_worker}


def test_a_worker_that_is_reset_has_one_record_and_a_score_a_segment():
    from lachesis.traces import TraceBuilder

    builder = TraceBuilder(source="reset")
    for name, output in (("a", 10), ("b", 20)):
        session = builder.session(name, workload="w", harness="h", stripping="off")
        by = session.request(input_tokens=50, output_tokens=5)
        session.spawn("w", spawned_by=by, instruction=SHORT)
        session.request(agent="w", input_tokens=300, output_tokens=output)
        session.request(agent="w", input_tokens=40, output_tokens=output)
        to = session.request(input_tokens=90, output_tokens=5)
        session.returns("w", to=to)
    trace = builder.build()
    table = worker_table(trace)
    segments = [kind for kind in trace.segments["class"].to_pylist() if kind == "worker"]
    assert len(table) == len(segments) > trace.spawns.num_rows
    scores = segment_scores(trace, Kind.RIDGE)
    own = table.segment_row[table.session == 0]
    assert len(set(scores[own].tolist())) == 1


def test_no_workers_no_scores():
    trace = generate("tau3-airline", 1, 0.1)
    for kind in Kind:
        assert np.isnan(segment_scores(trace, kind)).all()
    assert np.isnan(true_lifetimes(trace)).all()


def test_one_session_cannot_be_scored_by_others():
    trace = delegating([[(SHORT, 10), (LONG, 500)]])
    with pytest.raises(InputError, match=r"workers in 1 session: .* at least 2"):
        segment_scores(trace, Kind.RIDGE)
    assert np.nanmax(segment_scores(trace, Kind.ONLINE)) == 0.0


def test_a_trained_predictor_scores_only_what_it_never_saw():
    taught, asked = telling(6), delegating([[(SHORT, 77), (LONG, 777)], [(SHORT, 88)]])
    predictor = train(taught)
    scores = segment_scores(asked, predictor)
    assert np.nanmin(scores) < np.nanmax(scores)
    with pytest.raises(InputError, match="trained on 6 of its 6 sessions"):
        segment_scores(taught, predictor)

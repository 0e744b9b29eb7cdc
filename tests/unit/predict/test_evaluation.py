"""Evaluation: the figures of section 3.5, on the built-in corpora and by hand."""

import jsonschema
import numpy as np
import pytest
from delegations import LONG, SHORT, delegating, telling

from lachesis.errors import InputError
from lachesis.predict import Kind, evaluate, evaluate_scores, train, worker_table
from lachesis.presets import load_latency
from lachesis.results.predictor_document import evaluation_document, evaluation_schema
from lachesis.traces import concat, open_trace


@pytest.fixture(scope="module")
def multi_agent():
    return evaluate(open_trace("multi-agent"))


def test_the_corpus_is_ordered_as_published(multi_agent):
    """Lachesis (arXiv:2610.08378), section 3.5: tau 0.53; our tolerance is 0.05."""
    assert multi_agent.order.kendall_tau == pytest.approx(0.53, abs=0.05)
    low, high = multi_agent.order.kendall_tau_ci95
    assert low < multi_agent.order.kendall_tau < high < low + 0.15
    assert len(multi_agent.by_workload) == 5
    assert all(order.kendall_tau > 0 for order in multi_agent.by_workload.values())


def test_the_tenth_predicted_shortest_is_as_published(multi_agent):
    """62.8 % of the shortest tenth, none of the longest (section 3.5)."""
    chosen, by_chance = multi_agent.top_k[0.1]
    assert chosen.shortest_k == pytest.approx(0.628, abs=0.05)
    assert chosen.avoids_longest_k == 1.0
    assert by_chance.shortest_k == pytest.approx(0.1, abs=0.001)


def test_quartiles_separate(multi_agent):
    middles = [quartile.p50 for quartile in multi_agent.quartiles]
    assert middles == sorted(middles)
    assert min(multi_agent.quartile_separability) > 0.6
    assert multi_agent.quartile_ratio > 3.5


def test_ridge_is_better_than_counts_and_counts_than_length():
    trace = open_trace("multi-agent")
    taus = {kind: evaluate(trace, kind).order.kendall_tau for kind in Kind}
    assert taus[Kind.RIDGE] > taus[Kind.ONLINE] > taus[Kind.COUNTS] > taus[Kind.LENGTH]


def test_a_clear_signal_is_found():
    found = evaluate(telling())
    assert found.order.workers == 36
    assert found.top_k[0.6][0].avoids_longest_k > 0.5
    assert found.quartiles[0].p90 < found.quartiles[3].p10


def test_figures_by_hand():
    table = worker_table(delegating([[(SHORT, 10), (LONG, 500)], [(SHORT, 20), (LONG, 400)]]))
    order = np.argsort(table.lifetime_s)
    scores = np.empty(4)
    scores[order] = [0.0, 2.0, 1.0, 3.0]  # one of six pairs is the wrong way round
    found = evaluate_scores(table, scores, "by hand")
    assert found.order.kendall_tau == pytest.approx(4 / 6)
    assert found.order.kendall_tau_ci95 is None, "two sessions carry no interval"
    assert [quartile.p50 for quartile in found.quartiles] == pytest.approx([2.0, 80.0, 4.0, 100.0])
    assert found.quartile_separability == [1.0, 0.0, 1.0]
    assert found.quartile_ratio == pytest.approx(50.0)


def test_scores_all_alike_have_no_order():
    table = worker_table(telling(6))
    found = evaluate_scores(table, np.zeros(len(table)), "none")
    assert found.order.kendall_tau is None
    assert found.order.kendall_tau_ci95 is None
    assert found.to_json()["kendall_tau"] is None


def test_fewer_than_four_workers_have_no_quartiles():
    found = evaluate(delegating([[(SHORT, 10)], [(LONG, 500)]]))
    assert (found.quartiles, found.quartile_separability, found.quartile_ratio) == (None,) * 3
    assert found.top_k[0.1][0].k == 1


def test_sessions_that_a_predictor_saw_are_left_out_and_counted():
    taught, fresh = telling(6), delegating([[(SHORT, 77), (LONG, 777)], [(SHORT, 88)]])
    predictor = train(taught)
    found = evaluate(concat([taught, fresh]), predictor)
    assert (found.order.workers, found.workers_left_out) == (3, 18)
    assert found.order.kendall_tau > 0
    with pytest.raises(InputError, match="trained on every session with workers"):
        evaluate(taught, predictor)


@pytest.mark.parametrize("kind", list(Kind))
def test_documents_keep_their_schema(kind):
    few = delegating([[(SHORT, 10)], [(LONG, 500)]])
    for trace in (telling(6), few):
        document = evaluation_document(
            trace, evaluate(trace, kind), latency=load_latency(), seed=0, command=["lachesis"]
        )
        jsonschema.validate(document, evaluation_schema())
        for broken in ({"kendall_tau": 2.0}, {"surprise": 1}, {"top_k": {}}):
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(document | broken, evaluation_schema())


def test_the_schema_explains_itself():
    jsonschema.Draft202012Validator.check_schema(evaluation_schema())

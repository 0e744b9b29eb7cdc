"""Any record can be scored, any predictor can be kept, any damage is refused."""

import json
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lachesis import _engine
from lachesis.errors import InputError
from lachesis.predict import FeatureSettings, Kind, SpawnRecords, TrainedPredictor, load, save
from lachesis.predict.training import untrained

SMALL = FeatureSettings(word_buckets=16, tool_buckets=4)
finite = st.floats(-1e6, 1e6)
texts = st.none() | st.text(max_size=60)
lengths = st.none() | st.integers(0, 2**40)
record = st.tuples(
    texts, texts, lengths, lengths, st.lists(st.text(max_size=8), max_size=5), st.integers(0, 999)
)
weights = st.lists(finite, min_size=SMALL.spec().width, max_size=SMALL.spec().width)
lifetimes = st.floats(0.0, 1e9)


def records_of(rows) -> SpawnRecords:
    return SpawnRecords(*(list(column) for column in zip(*rows, strict=True)))


@given(st.lists(record, min_size=1, max_size=6), weights, finite)
def test_the_score_is_the_dense_dot_product(rows, drawn, intercept):
    spec = SMALL.spec()
    features = records_of(rows).extract(spec)
    offsets, indices, values = features.csr()
    dense = np.zeros((len(rows), spec.width))
    for row in range(len(rows)):
        own = slice(offsets[row], offsets[row + 1])
        assert (np.diff(indices[own].astype(int)) > 0).all()
        dense[row, indices[own]] = values[own]
    predictor = _engine.Predictor.linear(spec, intercept, np.array(drawn))
    expected = intercept + dense @ np.array(drawn)
    bound = 1e-12 * (abs(intercept) + (np.abs(dense) @ np.abs(drawn)).max() + 1.0)
    assert np.abs(predictor.score(features) - expected).max() <= bound


@given(st.lists(record, min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_a_score_depends_on_its_own_record_alone(rows, random):
    predictor = _engine.Predictor.linear(SMALL.spec(), 0.5, np.linspace(-1, 1, SMALL.spec().width))
    together = predictor.score(records_of(rows).extract(SMALL.spec()))
    order = list(range(len(rows)))
    random.shuffle(order)
    turned = predictor.score(records_of([rows[place] for place in order]).extract(SMALL.spec()))
    assert (turned == together[order]).all()


@settings(max_examples=50)
@given(st.lists(st.tuples(record, lifetimes), max_size=12), st.floats(1e-3, 1e3))
def test_learning_keeps_every_number_finite_and_doubt_shrinking(rows, alpha):
    predictor = untrained(Kind.ONLINE, alpha)
    assert (doubt := predictor.engine.online_state()) is not None
    for row, lifetime_s in rows:
        predictor.learn(records_of([row]), np.array([lifetime_s]))
        state = predictor.engine.online_state()
        assert np.isfinite(state[1]).all()
        assert (state[2] >= 0).all()
        assert (state[2] <= doubt[2]).all()
        assert 0 <= state[0][1] <= doubt[0][1]
        doubt = state
    assert doubt[3] == len(rows)


@settings(max_examples=50)
@given(weights, finite, st.floats(1e-3, 1e3), st.lists(record, min_size=1, max_size=4))
def test_a_predictor_comes_back_from_its_file(tmp_path_factory, drawn, intercept, alpha, rows):
    path = tmp_path_factory.mktemp("predictor") / "predictor.json"
    engine = _engine.Predictor.linear(SMALL.spec(), intercept, np.array(drawn))
    before = TrainedPredictor(Kind.RIDGE, SMALL, engine, alpha=alpha)
    save(before, path)
    after = load(path)
    assert (after.score(records_of(rows)) == before.score(records_of(rows))).all()
    assert after.engine.linear_state()[0] == intercept


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@settings(max_examples=200)
@given(st.data())
def test_any_value_in_any_field_loads_or_is_refused_in_one_line(tmp_path_factory, data):
    from lachesis.predict.file_format import _content, _digest

    content = _content(untrained(data.draw(st.sampled_from([Kind.LENGTH, Kind.ONLINE]))))
    name = data.draw(st.sampled_from(sorted(content)))
    content[name] = data.draw(json_values)
    if data.draw(st.booleans()):
        content["sha256"] = _digest(content)
    path = tmp_path_factory.mktemp("predictor") / "predictor.json"
    path.write_text(json.dumps(content))
    said = refusal(path)
    if said is not None:
        assert "\n" not in said
        assert said.startswith(str(path))
        return
    scores = load(path).score(records_of([("a", None, None, None, [], 0)]))
    assert math.isfinite(scores[0]) or abs(content["intercept"]) > 1e300


def refusal(path) -> str | None:
    try:
        load(path)
    except InputError as fault:
        return str(fault)
    return None

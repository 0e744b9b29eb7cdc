"""Features as Python sees them: where each stands, and that both sides hash alike."""

import math

import numpy as np
import pytest

from lachesis import _engine
from lachesis.errors import InputError
from lachesis.predict import FeatureSettings, Kind, SpawnRecords


def fnv1a(text: str) -> int:
    """The published algorithm, byte by byte."""
    hashed = 0xCBF29CE484222325
    for byte in text.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 % 2**64
    return hashed


def features_of(record: dict[str, object], settings: FeatureSettings) -> dict[int, float]:
    columns = {
        "instruction": None, "context": None, "instruction_tokens": None, "context_tokens": None,
        "tools": [], "position": 0,
    } | record  # fmt: skip
    records = SpawnRecords(**{name: [value] for name, value in columns.items()})
    _, indices, values = records.extract(settings.spec()).csr()
    return dict(zip(indices.tolist(), values.tolist(), strict=True))


def test_every_feature_stands_where_the_documentation_says():
    settings = FeatureSettings()
    found = features_of(
        {
            "instruction": "Größe prüfen, dann Größe melden",
            "context": "GRÖSSE",
            "instruction_tokens": 99,
            "context_tokens": 7,
            "tools": ["search", "shell", "search"],
            "position": 4,
        },
        settings,
    )
    first_word = 5 + settings.tool_buckets
    expected = {
        0: math.log(100) - 6,
        1: math.log(8) - 6,
        4: math.log(5) - 1,
        5 + fnv1a("tsearch") % 256: 1.0,
        5 + fnv1a("tshell") % 256: 1.0,
        first_word + fnv1a("igröße") % 4096: math.sqrt(2 / 5),
        first_word + fnv1a("iprüfen") % 4096: math.sqrt(1 / 5),
        first_word + fnv1a("idann") % 4096: math.sqrt(1 / 5),
        first_word + fnv1a("imelden") % 4096: math.sqrt(1 / 5),
        first_word + fnv1a("cgrösse") % 4096: 1.0,
    }
    assert found == pytest.approx(expected, abs=1e-12)


def test_an_unknown_length_is_marked_and_a_text_without_a_count_is_estimated():
    assert features_of({}, FeatureSettings()) == pytest.approx({2: 1.0, 3: 1.0, 4: -1.0})
    found = features_of({"instruction": "12345 789"}, FeatureSettings(words=False))
    assert found[0] == pytest.approx(math.log(1 + 3) - 6)
    assert 2 not in found


def test_counts_read_no_words():
    assert not FeatureSettings.of(Kind.COUNTS).words
    texts = {"instruction": "secret words", "instruction_tokens": 2}
    private = {"instruction": None, "instruction_tokens": 2}
    settings = FeatureSettings.of(Kind.COUNTS)
    assert features_of(texts, settings) == features_of(private, settings)


@pytest.mark.parametrize("buckets", [0, 3, 2**21, -8])
def test_buckets_that_are_no_power_of_two_are_refused(buckets):
    with pytest.raises(InputError, match=r"features.word_buckets = .*power of two"):
        FeatureSettings(word_buckets=buckets).spec()


def test_columns_of_different_lengths_are_refused():
    records = SpawnRecords(["a"], [], [None], [None], [[]], [0])
    with pytest.raises(ValueError, match="one length"):
        records.extract(FeatureSettings().spec())


def test_features_of_another_specification_are_refused():
    narrow, wide = FeatureSettings(words=False).spec(), FeatureSettings().spec()
    predictor = _engine.Predictor.linear(wide, 0.0, np.zeros(wide.width))
    features = SpawnRecords(["a"], [None], [None], [None], [[]], [0]).extract(narrow)
    with pytest.raises(ValueError, match="another specification"):
        predictor.score(features)
    with pytest.raises(ValueError, match="another specification"):
        predictor.learn(features, np.ones(1))

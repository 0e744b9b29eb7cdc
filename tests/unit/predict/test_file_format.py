"""The file of a trained predictor: what is kept, and that damage is refused in one line."""

import json

import numpy as np
import pytest
from delegations import telling

from lachesis.errors import InputError
from lachesis.predict import Kind, load, save, train, worker_table
from lachesis.predict.file_format import _digest

RECORDS = worker_table(telling()).records


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "predictor.json"
    save(train(telling()), path)
    return path


def rewritten(path, change):
    """The file with a change to its content and a digest that fits."""
    content = json.loads(path.read_text())
    change(content)
    content["sha256"] = _digest(content)
    path.write_text(json.dumps(content))
    return path


def refusal(path) -> str:
    with pytest.raises(InputError) as raised:
        load(path)
    assert "\n" not in str(raised.value)
    assert str(raised.value).startswith(str(path))
    return str(raised.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize("kind", list(Kind))
def test_everything_comes_back(tmp_path, kind):
    path = tmp_path / "predictor.json"
    before = train(telling(), kind, alpha=3.0)
    save(before, path)
    after = load(path)
    assert (after.score(RECORDS) == before.score(RECORDS)).all()
    assert (after.kind, after.alpha, after.features) == (kind, 3.0, before.features)
    assert after.trained_on == before.trained_on
    again = tmp_path / "again.json"
    save(after, again)
    assert again.read_bytes() == path.read_bytes()


def test_an_online_predictor_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "predictor.json"
    before = train(telling(), Kind.ONLINE)
    save(before, path)
    after = load(path)
    lifetimes = np.linspace(1.0, 90.0, len(RECORDS))
    before.learn(RECORDS, lifetimes)
    after.learn(RECORDS, lifetimes)
    assert (after.score(RECORDS) == before.score(RECORDS)).all()


def test_it_is_small_and_holds_no_text(saved):
    text = saved.read_text()
    assert len(text) < 20_000
    assert "Rebuild" not in text
    assert "glance" not in text


def test_any_changed_byte_is_refused(saved):
    raw = saved.read_bytes()
    rng = np.random.default_rng(5)
    for place in rng.integers(len(raw), size=150).tolist():
        changed = bytearray(raw)
        changed[place] ^= 1 << int(rng.integers(7))
        saved.write_bytes(changed)
        if raw[place : place + 1].isspace():
            continue  # blanks between values carry nothing
        assert "\n" not in refusal(saved)


def test_half_a_file_is_refused(saved):
    raw = saved.read_bytes()
    saved.write_bytes(raw[: len(raw) // 2])
    assert "is no predictor: not valid JSON" in refusal(saved)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '"x"', '{"format": "other"}', "\x80"])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "other"
    path.write_bytes(text.encode("latin-1"))
    assert refusal(path).startswith("is no predictor")


def test_places_that_hold_no_file_are_refused(tmp_path):
    assert refusal(tmp_path / "absent") == "cannot be read: No such file or directory"
    assert refusal(tmp_path) == "cannot be read: Is a directory"
    with pytest.raises(InputError, match="cannot be written: No such file"):
        save(train(telling()), tmp_path / "absent" / "predictor.json")


def test_a_failed_write_leaves_what_was_there(saved, monkeypatch):
    before = saved.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(InputError, match="cannot be written: No space left"):
        save(train(telling(), Kind.LENGTH), saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_another_version_is_refused_before_its_content(saved):
    content = json.loads(saved.read_text()) | {"version": 2, "unknown": True}
    saved.write_text(json.dumps(content))
    assert refusal(saved) == "version = 2, this build reads version 1"


def test_a_digest_that_does_not_fit_is_damage(saved):
    content = json.loads(saved.read_text())
    content["intercept"] += 1e-9
    saved.write_text(json.dumps(content))
    assert refusal(saved) == "sha256, damaged: does not match the content"


def _set(path, value):
    def change(content):
        *way, last = path.split(".")
        for step in way:
            content = content[step]
        content[last] = value

    return change


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("kind", "forest", "kind = forest, must be one of"),
        ("kind", "counts", "features.words = True, kind counts reads otherwise"),
        ("kind", "online", "online, must be there for kind online, and for no other"),
        ("alpha", 0.0, "alpha = 0.0, must be a finite number above 0"),
        ("features.word_buckets", 4095, "features.word_buckets = 4095, must be a power of two"),
        ("features.extra", 1, "unknown field `extra`"),
        ("surprise", 1, "unknown field `surprise`"),
        ("intercept", "high", "Expected `float`, got `str`"),
        pytest.param(
            "intercept", 10**400, "Number out of range", id="a whole number of 400 digits"
        ),
        ("trained_on.workers", "many", "Expected `int`, got `str`"),
        ("weights", {"index": [4], "value": []}, "weights, index and value must be of one length"),
        ("weights", {"index": [4, 3], "value": [1.0, 1.0]}, "weights.index = 3, must ascend"),
        ("weights", {"index": [-1], "value": [1.0]}, "weights.index = -1, must ascend"),
        ("weights", {"index": [4357], "value": [1.0]}, "weights.index = 4357, must ascend"),
        ("online", {}, "missing required field"),
    ],
)
def test_a_field_that_breaks_a_rule_is_named(saved, path, value, said):
    assert said in refusal(rewritten(saved, _set(path, value)))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("online", None, "online, must be there for kind online"),
        ("online.workers", -1, "online.workers = -1, must be a count"),
        ("online.intercept_variance", -1.0, "online.variances, must be at least 0"),
        ("online.variances", {"index": [0], "value": [-0.1]}, "online.variances, must be"),
    ],
)
def test_an_online_state_that_breaks_a_rule_is_named(tmp_path, path, value, said):
    place = tmp_path / "online.json"
    save(train(telling(), Kind.ONLINE), place)
    assert said in refusal(rewritten(place, _set(path, value)))


def test_numbers_that_json_does_not_know_are_refused(saved):
    saved.write_text(saved.read_text().replace('"alpha": 10.0', '"alpha": NaN'))
    assert refusal(saved) == "is no predictor: not valid JSON (NaN is no number of JSON)"


def test_a_number_too_large_for_a_float_is_refused(saved):
    rewritten(saved, _set("intercept", 1e999))
    saved.write_text(saved.read_text().replace("Infinity", "1e999"))
    assert refusal(saved) == "intercept = inf, must be finite"


def test_half_a_surrogate_in_a_name_breaks_nothing(saved):
    assert load(rewritten(saved, _set("trained_on.software", "\ud800"))).kind is Kind.RIDGE

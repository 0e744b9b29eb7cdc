"""Arguments of the wrong kind raise `InputError` in one line that names the argument."""

import copy
import math
import pickle
import threading

import numpy as np
import pytest

import lachesis

SMALL = {"load": 8, "turnovers": 2}
TEXTS = ("model", "hardware", "flash", "memory", "slo", "horizon", "tpot", "ttft", "turn_end",
         "config", "step_overhead", "policy", "timeline_interval")  # fmt: skip
NUMBERS = ("load", "seed", "turnovers", "precision", "step_time", "threads")


def refused(call, key):
    with pytest.raises(lachesis.InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert key in str(caught.value)


@pytest.mark.parametrize("value", [3, b"x", ["x"], {"a": 1}, object(), math.nan])
@pytest.mark.parametrize("key", TEXTS)
def test_what_is_no_text_is_refused(key, value):
    refused(lambda: lachesis.simulate("tau3-airline", **{**SMALL, key: value}), key)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1, True, [8], "x", object()])
@pytest.mark.parametrize("key", NUMBERS)
def test_what_is_no_number_is_refused(key, value):
    named = key.replace("_", "-") if isinstance(value, str | int) else key
    with pytest.raises(lachesis.InputError, match=f"{key}|{named}"):
        lachesis.simulate("tau3-airline", **{**SMALL, key: value})


@pytest.mark.parametrize("value", [3, "flash.pe_cycles=3", ["a"], {3: 4}, {"flash.pe_cycles": [1]},
                                   {"flash.pe_cycles": object()}, {"a=b": 1}])  # fmt: skip
def test_preset_values_are_checked(value):
    refused(lambda: lachesis.simulate("tau3-airline", **SMALL, set=value), "")


@pytest.mark.parametrize("value", [None, 3, b"tau3-airline", [None], [], {}, "a\0b/c.jsonl", ""])
def test_what_is_no_trace_is_refused(value):
    refused(lambda: lachesis.simulate(value, **SMALL), "")


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ({"jobs": 0}, "jobs"), ({"jobs": "2"}, "jobs"), ({"jobs": 1.5}, "jobs"),
        ({"directory": 3}, "directory"), ({"directory": "a\0b"}, "folder"),
        ({"restart": "no"}, "restart"), ({"set": "x"}, "set"), ({"memory": None}, "memory"),
        ({"memory": {"1/7", "2/6"}}, "memory"), ({"load": object()}, "load"),
        ({"load": np.array([np.nan])}, "load"), ({"policies": ["hbm-first"]}, "policy"),
        ({"title": "x"}, "title"),
    ],
)  # fmt: skip
def test_a_sweep_is_checked_the_same(words, key):
    refused(lambda: lachesis.sweep(**{"trace": "tau3-airline", **SMALL, **words}), key)


@pytest.mark.parametrize(
    "document",
    [
        3,
        [],
        {3: 4},
        {"title": None},
        {"grid": {3: 4}},
        {"title": "\ud800", "grid": {"trace": "tau3-airline"}},
    ],
)
def test_what_is_no_specification_is_refused(document):
    refused(lambda: lachesis.sweep(document), "")


def test_a_specification_that_holds_itself_is_refused():
    document: dict[str, object] = {}
    document["grid"] = document
    refused(lambda: lachesis.sweep(document), "nested too deeply")


@pytest.mark.parametrize("place", [None, 3, b"x", "a\0b", "", "none"])
def test_what_is_no_folder_of_results_is_refused(place):
    refused(lambda: lachesis.read_results(place), "")


def test_values_of_numpy_are_taken_as_they_are():
    plain = lachesis.simulate("tau3-airline", policy="hbf-only", load=8, turnovers=2, seed=3)
    other = lachesis.simulate(
        "tau3-airline", policy="hbf-only", load=np.int64(8), turnovers=np.float64(2),
        seed=np.uint64(3),
    )  # fmt: skip
    same = {**plain["hbf-only"], "wall_s": None}
    assert {**other["hbf-only"], "wall_s": None} == same


def test_results_are_copied_and_written_from_many_threads(tmp_path):
    result = lachesis.simulate("tau3-airline", policy="hbf-only", **SMALL)
    assert pickle.loads(pickle.dumps(result)).document == result.document
    assert copy.deepcopy(result).document == result.document
    faults = []

    def write():
        try:
            result.to_json(tmp_path / "same.json")
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert [file.name for file in tmp_path.iterdir()] == ["same.json"]
    for place in (3, tmp_path, tmp_path / "none" / "x.json", "a\0.json"):
        refused(lambda place=place: result.to_json(place), "")

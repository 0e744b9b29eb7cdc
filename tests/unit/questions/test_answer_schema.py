"""The JSON Schema of ``find --json``: what it takes of each question, and what it refuses."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest

from lachesis.questions import (
    Answer,
    Scenario,
    answer_schema,
    cheapest_split,
    effect,
    largest_load_for,
    smallest_hbm,
)
from lachesis.results.document import run_schema, to_json
from lachesis.simulation import RunOptions

Ask = Callable[[Scenario], Answer]

SET = ("flash.pe_cycles=20", "hardware.max_sequences=4", "slo.ttft_p99_s=1.5")
QUESTIONS: dict[str, tuple[dict[str, Any], Ask]] = {
    "smallest-hbm": ({"load": "8", "memory": "1/7"}, lambda asked: smallest_hbm(asked, 1e-9)),
    "largest-load": ({"set": SET}, lambda asked: largest_load_for(asked, 1e-9)),
    "cheapest-split": (
        {"load": "8"},
        lambda asked: cheapest_split(asked, 1e-9, hbm_price=3.0, hbf_price=1.0),
    ),
    "effect": ({"set": SET}, lambda asked: effect(asked, {"set": (*SET, "node.duty_cycle=0.5")})),
}


@pytest.fixture(scope="module")
def documents() -> dict[str, dict[str, Any]]:
    """An answer to each question, as JSON has it."""
    found = {}
    for name, (options, ask) in QUESTIONS.items():
        scenario = Scenario(
            RunOptions(("tau3-airline",), policies=("hbf-only",), turnovers=1.0, **options)
        )
        found[name] = json.loads(to_json(ask(scenario).document(scenario.provenance())))
    return found


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_is_as_the_schema_says(
    documents: dict[str, dict[str, Any]], question: str
) -> None:
    document = documents[question]
    jsonschema.validate(document, answer_schema())
    assert document["question"] == question
    assert document["findings"][0]["found"] is not None
    without = document | {"findings": [document["findings"][0] | {"found": None}]}
    jsonschema.validate(without, answer_schema())


@pytest.mark.parametrize("question", QUESTIONS)
def test_other_keys_and_missing_ones_are_refused(
    documents: dict[str, dict[str, Any]], question: str
) -> None:
    validator = jsonschema.Draft202012Validator(answer_schema())
    places: list[Callable[[Any], Any]] = [
        lambda whole: whole,
        lambda whole: whole["asked"],
        lambda whole: whole["provenance"],
        lambda whole: whole["findings"][0],
        lambda whole: whole["findings"][0]["found"],
        lambda whole: whole["runs"][0],
    ]
    optional = {"own_load_factor", "load_sessions", "admitted_sessions", "hbm_gb_per_stack"}
    for place in places:
        keys = list(place(documents[question]))
        for key in keys:
            broken = json.loads(json.dumps(documents[question]))
            del place(broken)[key]
            may_be_absent = place is places[4] and key in optional
            if not (may_be_absent and (question == "effect" or key == "hbm_gb_per_stack")):
                assert not validator.is_valid(broken), key
        broken = json.loads(json.dumps(documents[question]))
        place(broken)["surprise"] = 1
        assert not validator.is_valid(broken)


def test_what_one_question_finds_is_no_answer_to_another(
    documents: dict[str, dict[str, Any]],
) -> None:
    validator = jsonschema.Draft202012Validator(answer_schema())
    for question, document in documents.items():
        for other in QUESTIONS:
            assert validator.is_valid(document | {"question": other}) == (question == other)


def test_the_schema_is_valid_and_describes_every_key() -> None:
    schema = answer_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for place, rule in _properties(schema):
        assert rule.get("description"), place


def test_a_run_is_one_of_run_json_with_its_memory_and_cost() -> None:
    ours, theirs = answer_schema()["$defs"], run_schema()["$defs"]
    assert ours["tiers"] == theirs["tiers"]
    added = {"scenario", "hbm_gb_per_gpu", "cost_per_gpu", "cost_per_session"}
    properties = ours["run"]["properties"]
    kept = {key: rule for key, rule in properties.items() if key not in added}
    assert kept == theirs["run"]["properties"]
    assert set(properties) - set(kept) == added
    assert ours["run"]["required"] == [*theirs["run"]["required"], "hbm_gb_per_gpu"]


def _properties(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key of every object that the schema defines, with its rule."""
    for name, definition in {"document": schema, **schema["$defs"]}.items():
        for key, rule in definition["properties"].items():
            yield f"{name}.{key}", rule
            for choice in rule.get("oneOf", ()):
                for inner, described in choice.get("properties", {}).items():
                    yield f"{name}.{key}.{inner}", described

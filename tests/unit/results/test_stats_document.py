"""The document of ``trace stats``, against its schema."""

import copy
import json

import jsonschema
import pytest

from lachesis.characterise import stats
from lachesis.presets import load_latency
from lachesis.results import to_json
from lachesis.results.stats_document import stats_document, stats_schema
from lachesis.traces import Boundary, SegmentClass, TraceBuilder, open_trace


def document_of(trace):
    latency = load_latency()
    return json.loads(
        to_json(stats_document(trace, stats(trace, latency, 0), latency=latency, seed=0))
    )


@pytest.fixture(scope="module")
def mixed():
    return document_of(open_trace("webarena", "tau3-airline"))


def test_the_schema_is_one_and_the_document_keeps_it(mixed):
    jsonschema.Draft202012Validator.check_schema(stats_schema())
    jsonschema.validate(mixed, stats_schema())
    assert [each["workload"] for each in mixed["workloads"]] == ["tau3-airline", "webarena"]


def test_a_trace_of_one_request_keeps_it_too():
    builder = TraceBuilder(source="one")
    session = builder.session("a", workload="w", harness="h", stripping="off")
    session.request(input_tokens=5, output_tokens=1)
    jsonschema.validate(document_of(builder.build()), stats_schema())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("workloads", 0, "classes", "labour"), {}),
        (("workloads", 0, "requests"), -1),
        (("workloads", 0, "laden_share"), 1.5),
        (("workloads", 0, "extra"), 1),
        (("workloads", 1, "separability", "lead/worker"), [0.9, 0.8]),
        (("provenance", "trace_sha256"), "x"),
    ],
)
def test_the_schema_refuses_what_breaks_it(mixed, path, value):
    broken = copy.deepcopy(mixed)
    place = broken
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, stats_schema())


def test_the_schema_names_the_words_of_the_trace():
    workload = stats_schema()["$defs"]["workload"]["properties"]
    assert workload["classes"]["propertyNames"]["enum"] == [str(kind) for kind in SegmentClass]
    assert workload["closed_by"]["propertyNames"]["enum"] == [str(kind) for kind in Boundary]


def test_every_key_has_a_meaning():
    def described(schema, path):
        for name, each in schema.get("properties", {}).items():
            if each.get("type") in ("integer", "number") or isinstance(each.get("type"), list):
                yield f"{path}.{name}", "description" in each or "distribution" in path

    definitions = stats_schema()["$defs"]
    for name in ("class", "workload", "provenance"):
        for place, has in described(definitions[name], name):
            assert has, place


def test_dropped_rows_are_counted():
    trace = open_trace("tau3-airline")
    trace.quality.dropped["broken row"] += 3
    document = document_of(trace)
    assert document["workloads"][0]["quality"]["dropped"] == 3
    assert document["provenance"]["trace_quality"]["dropped_reasons"] == {"broken row": 3}

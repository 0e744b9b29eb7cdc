"""The shipped corpora: counts, structure, calibration, and that they come from their files."""

from collections import Counter

import numpy as np
import pytest

from lachesis.calibrate.measurement import measure
from lachesis.errors import InputError
from lachesis.traces import validate
from lachesis.traces.generator import corpora, generate, published, specification
from lachesis.traces.generator.generate import MIXES

# Lachesis (arXiv:2610.08378), Table 3: sessions, requests, tokens processed, tokens written.
TABLE_3 = {
    "tau3-airline": (58, 709, 4735468, 591248),
    "tau3-retail": (114, 1387, 9593474, 1156112),
    "tau3-telecom": (114, 2208, 20687494, 1407427),
    "tau3-banking": (97, 2221, 63759218, 7172200),
    "bfclv4-base": (200, 2063, 8865141, 800193),
    "bfclv4-long-context": (200, 2066, 23312059, 5279265),
    "appworld": (168, 6248, None, 9738267),
    "deepsearchqa": (125, 12241, None, 37196143),
    "swe-bench-verified": (149, 8745, None, 11677326),
    "terminal-bench": (75, 3675, None, 7289834),
    "webarena": (106, 2190, None, 6707151),
}


@pytest.fixture(scope="module")
def traces():
    return {name: corpora.load(name) for name in TABLE_3}


@pytest.fixture(scope="module")
def figures(traces):
    return {name: measure(trace) for name, trace in traces.items()}


def rows(trace, table):
    return getattr(trace, table).to_pylist()


@pytest.mark.parametrize("name", TABLE_3)
def test_table_3(name, figures):
    sessions, requests, processed, written = TABLE_3[name]
    assert figures[name]["sessions"] == sessions
    assert figures[name]["requests"] == requests
    assert figures[name]["tokens_written"] == written
    if processed is not None:
        assert figures[name]["tokens_processed"] == pytest.approx(processed, rel=0.001)


@pytest.mark.parametrize("name", published.load().figure_4b.workloads)
def test_figure_4b(name, figures):
    wanted = published.load().figure_4b
    for figure, target in wanted.workloads[name].items():
        if f"{name} {figure}" not in wanted.unfit:
            assert figures[name][figure] == pytest.approx(target, rel=wanted.tolerance), figure


@pytest.mark.parametrize("band", published.load().bands, ids=lambda band: band.figure)
def test_bands(band, figures):
    values = {name: of[band.figure] for name, of in figures.items() if band.figure in of}
    low, high = band.range
    outside = {
        (name, band.figure)
        for name, value in values.items()
        if not low <= round(value, band.decimals) <= high
    }
    assert not outside
    assert len(values) in (5, 6)


@pytest.mark.parametrize("name", TABLE_3)
def test_the_shipped_tables_come_from_the_specification(name, traces):
    assert generate(name).sha256 == traces[name].sha256
    assert generate(name, seed=5).sha256 != traces[name].sha256


@pytest.mark.parametrize("name", corpora.names())
def test_every_corpus_is_valid(name):
    trace = corpora.load(name)
    validate(trace)
    parts = MIXES.get(name, (name,))
    assert len(trace) == sum(TABLE_3[part][0] for part in parts)
    assert Counter(trace.sessions["workload"].to_pylist()) == {
        part: TABLE_3[part][0] for part in parts
    }


def test_totals_of_the_regimes():
    assert corpora.load("multi-agent").requests.num_rows == 33099
    temporal = corpora.load("tau3").requests.num_rows + corpora.load("bfclv4").requests.num_rows
    assert temporal == 10654


@pytest.mark.parametrize("name", ["bfclv4-base", "bfclv4-long-context"])
def test_bfclv4_has_its_734_turns(name, figures):
    assert figures[name]["turns"] == 734


@pytest.mark.parametrize("name", ["tau3-airline", "bfclv4-base"])
def test_a_session_writes_a_stripped_segment_for_every_turn_but_the_last(name, traces):
    segments = rows(traces[name], "segments")
    laden = Counter(row["session"] for row in segments if row["class"] == "reasoning-laden")
    stripped = Counter(row["session"] for row in segments if row["class"] == "reasoning-stripped")
    assert all(stripped[session] == turns - 1 for session, turns in laden.items())
    assert max(laden.values()) > 3


def test_prompts_are_shared_in_tau_and_partly_own_in_bfcl(traces):
    def prompts(name):
        return [row for row in rows(traces[name], "segments") if row["class"] == "prompt"]

    assert len({row["prefix_key"] for row in prompts("tau3-retail")}) == 1
    assert len(prompts("tau3-retail")) == 114
    own = [row for row in prompts("bfclv4-base") if row["prefix_key"] is None]
    assert len(own) == 200


def test_observations_and_tools_agree_in_every_workload(traces):
    for name, trace in traces.items():
        requests = {(row["session"], row["request"]): row for row in rows(trace, "requests")}
        for (session, _), row in requests.items():
            tool = [edge["request"] for edge in row["after"] if edge["kind"] == "tool"]
            if tool:
                called = requests[session, tool[0]]["tools"]
                assert row["observations"] == len(called), (name, session, row["request"])


def test_a_reviewer_follows_each_worker_and_gets_a_share_of_its_trace(traces):
    trace = traces["appworld"]
    spawns = rows(trace, "spawns")
    roles = {(row["session"], row["agent"]): row["role"] for row in spawns}
    last, first = {}, {}
    for row in rows(trace, "requests"):
        key = (row["session"], row["agent"])
        last[key] = row["request"]
        first.setdefault(key, row)
    reviewers = [key for key, role in roles.items() if role == "reviewer"]
    assert len(reviewers) == len(spawns) / 2
    for session, agent in reviewers:
        waits = {edge["request"] for edge in first[session, agent]["after"]}
        assert roles[session, agent - 1] == "worker"
        assert last[session, agent - 1] in waits


@pytest.mark.parametrize(
    ("name", "most_rounds"),
    [("appworld", 30), ("swe-bench-verified", 50), ("webarena", 30), ("deepsearchqa", 30)],
)
def test_limits_of_the_harness_hold(name, most_rounds, traces):
    requests = rows(traces[name], "requests")
    delegations = Counter(row["session"] for row in requests if "spawn" in row["tools"])
    assert max(delegations.values()) <= 10
    rounds = Counter((row["session"], row["agent"]) for row in requests if row["agent"] > 0)
    assert max(rounds.values()) <= most_rounds


def test_workers_of_a_delegation_run_side_by_side(traces):
    for row in rows(traces["swe-bench-verified"], "requests"):
        if "spawn" in row["tools"]:
            break
    started = [
        each
        for each in rows(traces["swe-bench-verified"], "spawns")
        if (each["session"], each["spawned_by"]) == (row["session"], row["request"])
        and each["role"] == "worker"
    ]
    assert len(started) == len(row["tools"])
    first = {}
    for each in rows(traces["swe-bench-verified"], "requests"):
        first.setdefault((each["session"], each["agent"]), each)
    for each in started:
        waits = first[each["session"], each["agent"]]["after"]
        assert [edge["request"] for edge in waits] == [row["request"]]


def test_without_reviewers_everything_else_is_the_same():
    with_reviewers, without = corpora.load("multi-agent"), corpora.load("multi-agent-no-reviewer")
    reviewed = {
        (row["session"], row["agent"])
        for row in rows(with_reviewers, "spawns")
        if row["role"] == "reviewer"
    }
    kept = [
        (row["session"], row["output_tokens"], row["observations"], row["tools"])
        for row in rows(with_reviewers, "requests")
        if (row["session"], row["agent"]) not in reviewed
    ]
    assert kept == [
        (row["session"], row["output_tokens"], row["observations"], row["tools"])
        for row in rows(without, "requests")
    ]
    texts = [
        row["instruction"] for row in rows(with_reviewers, "spawns") if row["role"] == "worker"
    ]
    assert texts == [row["instruction"] for row in rows(without, "spawns")]
    assert "reviewer" not in without.segments["class"].to_pylist()
    assert without.requests.num_rows == 33099 - len(reviewed)


@pytest.mark.parametrize(("name", "scale"), [("bfclv4", 2.0), ("webarena", 0.25)])
def test_scale_multiplies_sessions_requests_and_tokens(name, scale):
    trace = generate(name, scale=scale)
    validate(trace)
    parts = MIXES.get(name, (name,))
    assert len(trace) == sum(round(TABLE_3[part][0] * scale) for part in parts)
    assert trace.requests.num_rows == sum(round(TABLE_3[part][1] * scale) for part in parts)
    assert measure(trace)["tokens_written"] == pytest.approx(
        scale * sum(TABLE_3[part][3] for part in parts), abs=len(parts)
    )


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_that_is_no_size_is_refused(scale):
    with pytest.raises(InputError, match="scale"):
        generate("webarena", scale=scale)


def test_a_negative_seed_is_refused():
    with pytest.raises(InputError, match="seed = -1"):
        generate("webarena", seed=-1)


@pytest.mark.parametrize("name", ["", "tau", "Tau3-airline", "../x"])
def test_an_unknown_corpus_is_refused(name):
    with pytest.raises(InputError, match="must be one of"):
        corpora.load(name)
    with pytest.raises(InputError, match="must be one of"):
        generate(name)


def test_the_shipped_tables_are_small():
    size = sum(path.stat().st_size for path in corpora.CORPUS_DIRECTORY.rglob("*.parquet"))
    assert size < 6_000_000


def test_outputs_are_reasoning_and_visible_text(traces):
    for name in ("tau3-banking", "bfclv4-long-context"):
        requests = traces[name].requests
        output = requests["output_tokens"].to_numpy()
        reasoning = requests["reasoning_tokens"].to_numpy()
        assert (output > reasoning).all()
        assert np.mean(reasoning > 0) > 0.9


def test_a_turn_reasons_before_its_first_call_as_its_specification_says(traces):
    requests = traces["bfclv4-long-context"].requests.to_pandas()
    turns = requests.groupby(["session", "turn"], sort=False)["reasoning_tokens"]
    with_calls = turns.size() > 1
    share = turns.first()[with_calls].sum() / turns.sum()[with_calls].sum()
    law = specification.load("bfclv4-long-context").temporal
    assert law is not None
    assert law.first_round_reasoning_share is not None
    assert share == pytest.approx(law.first_round_reasoning_share.value, abs=0.01)


def test_nearly_all_last_turns_of_bfcl_long_context_are_long(traces):
    segments = traces["bfclv4-long-context"].segments.to_pandas()
    laden = segments[segments["class"] == "reasoning-laden"].groupby("session", sort=False)
    spans = traces["bfclv4-long-context"].spans.to_pandas()
    written = spans[spans["written"]].groupby(["session", "segment"])["tokens"].sum()
    requests = traces["bfclv4-long-context"].requests.to_pandas()
    outputs = requests.groupby(["session", "segment"])["output_tokens"].sum()
    written = written.add(outputs, fill_value=0)
    tokens = [
        written.reindex([(session, number) for number in rows["segment"]]).to_numpy()
        for session, rows in laden
    ]
    long_last = [turn[-1] > 3000 for turn in tokens]
    long_before = np.concatenate([turn[:-1] > 3000 for turn in tokens])
    assert np.mean(long_last) > 0.95
    assert np.mean(long_before) < 0.25

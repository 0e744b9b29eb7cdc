"""What is left of a trace when everything that tells what it was about is taken out."""

import json

import pytest

from lachesis.traces import ReadOptions, Role, Trace, TraceBuilder, read, validate
from lachesis.traces.redact import redact

SECRETS = ("merger", "ann", "acme", "poach", "ledger", "/home")


@pytest.fixture
def trace():
    builder = TraceBuilder(source="/home/ann/merger.jsonl")
    for name in ("ann-1", "ann-2"):
        session = builder.session(name, workload="merger", harness="h", source="/home/ann/m.jsonl")
        first = session.request(
            input_tokens=100, prompt_tokens=60, prefix_key="acme prompt", output_tokens=20,
            start_s=1.7e9 + len(builder.sessions), end_s=1.7e9 + 5, model="m", tools=["spawn"],
        )  # fmt: skip
        session.spawn(
            "w", spawned_by=first, role=Role.REVIEWER, agent_type="acme-reviewer",
            instruction="poach their clerk", context="the ledger", context_tokens=7,
            tools=["acme_search", "Bash"], model="m",
        )  # fmt: skip
        session.request(agent="w", input_tokens=50, output_tokens=5)
        session.returns("w", to=session.request(input_tokens=150, output_tokens=5))
    builder.skip("/home/ann/other.md", "no reader recognises it")
    builder.ignore("column ledger")
    builder.drop("row without token counts", 3)
    return builder.build()


def everything(trace: Trace) -> str:
    tables = {name: table.to_pylist() for name, table in trace.tables.items()}
    return json.dumps([tables, trace.manifest()])


def test_no_text_and_no_name_is_left(trace):
    assert all(secret in everything(trace) for secret in SECRETS)
    left = everything(redact(trace))
    assert not any(secret in left for secret in SECRETS)


def test_a_redacted_trace_is_valid_and_can_be_saved(trace, tmp_path):
    clean = redact(trace)
    validate(clean)
    clean.save(tmp_path / "clean.trace")
    assert Trace.load(tmp_path / "clean.trace").sha256 == clean.sha256


def test_counts_and_lengths_stay(trace):
    clean = redact(trace)
    assert clean.spans.drop_columns("session") == trace.spans.drop_columns("session")
    kept = ["request", "turn", "agent", "model", "status", "after", "segment", "output_tokens",
            "reasoning_tokens", "observations", "tools", "usage_source"]  # fmt: skip
    assert clean.requests.select(kept) == trace.requests.select(kept)
    (spawn, _) = clean.spawns.to_pylist()
    assert (spawn["instruction"], spawn["context"]) == (None, None)
    # 17 characters at four a token, since only the text was there; the other was counted before.
    assert (spawn["instruction_tokens"], spawn["context_tokens"]) == (5, 7)
    assert spawn["role"] == "reviewer"
    assert len(set(spawn["tools"])) == 2
    quality = clean.quality.to_json()
    assert quality["dropped_reasons"] == {"row without token counts": 3}
    assert quality["skipped_files"] == {"file 1": "redacted"}
    assert quality["ignored"] == {"column or field": 1}


def test_the_calendar_goes_and_distances_stay(trace):
    clean = redact(trace)
    firsts = [row for row in clean.requests.to_pylist() if row["request"] == 0]
    assert [row["start_s"] for row in firsts] == [0.0, 1.0]
    assert [row["end_s"] for row in firsts] == [4.0, 4.0]


def test_what_was_one_stays_one_and_hashes_are_stable(trace):
    clean = redact(trace)
    keys = clean.segments["prefix_key"].drop_null().to_pylist()
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert len(set(clean.sessions["session"].to_pylist())) == 2
    assert len(set(clean.sessions["workload"].to_pylist())) == 1
    assert clean.sessions["session"][0].as_py() == "session-e3f9b3c375e6b613"
    assert redact(trace).sha256 == clean.sha256


def test_a_workload_named_like_its_harness_is_no_secret(fixtures_dir):
    trace = redact(read([fixtures_dir / "traces" / "claude_code"], options=ReadOptions()))
    assert set(trace.sessions["workload"].to_pylist()) == {"claude-code"}


def test_the_original_is_left_alone(trace):
    before = everything(trace)
    redact(trace)
    assert everything(trace) == before

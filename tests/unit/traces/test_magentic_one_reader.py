"""Magentic-One logs: ledgers, delegations, new plans, tools that are no agents."""

import json
from pathlib import Path

import pytest
from damaged_logs import check_damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from read_traces import closures, column, edges, inputs, requests

from lachesis.errors import InputError
from lachesis.traces import read
from lachesis.traces.token_count import estimate_tokens

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "traces" / "magentic_one"


@pytest.fixture(scope="module")
def trace():
    return read([FIXTURE])


def test_the_orchestrator_leads_and_delegates_work(trace):
    assert column(trace, "agent") == [0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0]
    assert set(column(trace, "usage_source")) == {"inferred"}
    assert set(column(trace, "turn")) == {0}
    assert [tools for tools in column(trace, "tools") if tools] == [
        ["spawn"], ["environment"], ["spawn"], ["environment"], ["environment"], ["spawn"],
        ["spawn"], ["environment"],
    ]  # fmt: skip


def test_delegations_spawn_and_resume_with_instruction_and_context(trace):
    first, second = trace.spawns.to_pylist()
    assert first["instruction"] == "Search for the lighthouse."
    assert first["context"].startswith("How tall is the lighthouse?\n\nInitial plan:")
    assert first["return_requests"] == [3, 5]
    assert (3, "spawn", 0.0) in edges(trace, 4)
    # After a new plan everyone starts anew.
    assert second["instruction"] == "Search again."
    assert "Initial plan" not in second["context"]
    assert second["agent_type"] == first["agent_type"] == "WebSurfer"


def test_a_terminal_is_a_tool_and_an_unanswered_delegation_is_counted(trace):
    assert column(trace, "observations") == [0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 0, 1, 0]
    assert trace.quality.excluded == {"delegation without a result": 1}


def test_boundaries(trace):
    found = closures(trace)
    assert found["lead", "compaction"] == found["summary", "session_end"] == 1
    assert found["worker", "subagent_return"] == 2
    assert found["lead", "reset"] == 7  # ledgers, which no later input holds


def test_only_what_a_surfer_did_is_its_output(trace):
    assert requests(trace)[4]["output_tokens"] == estimate_tokens("I clicked 'Heights'.")


def test_a_broken_value_is_named(tmp_path):
    document = json.loads((FIXTURE / "lighthouse.json").read_text())
    document["history"][3]["content"] = 5
    (tmp_path / "a.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"history\[3\]\.content = 5, expected `str \| null`"):
        read([tmp_path / "a.json"])


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_damage(data):
    check_damaged(data, FIXTURE, "magentic-one")


@pytest.mark.samples
def test_real_logs_agree_with_a_plain_count(samples_dir):
    for path in sorted((samples_dir / "whowhen_magentic_one").glob("*.json")):
        history = json.loads(path.read_text())["history"]
        thoughts = [
            entry["content"]
            for entry in history
            if entry["role"] == "Orchestrator (thought)"
            and entry["content"].startswith(("Initial plan", "New plan", "Updated Ledger"))
        ]
        final = sum("FINAL ANSWER" in e["content"] for e in history if "termination" in e["role"])
        results = [entry for entry in history if entry["role"][-6:] == "Surfer"
                   or entry["role"] == "Assistant"]  # fmt: skip
        trace = read([path])
        agents = column(trace, "agent")
        assert agents.count(0) == len(thoughts) + final
        assert len(agents) - agents.count(0) == len(results)
        returns = sum(len(spawn["return_requests"]) for spawn in trace.spawns.to_pylist())
        assert len(results) - 1 <= returns <= len(results)
        # The largest input holds no more than all that was said.
        said = sum(estimate_tokens(entry["content"]) for entry in history)
        assert max(inputs(trace)) <= said

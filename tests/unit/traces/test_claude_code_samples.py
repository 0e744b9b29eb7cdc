"""Claude Code and ATIF readers on real records, against counts made here from the raw JSON."""

import json
from collections import Counter, defaultdict

import pytest

from lachesis.errors import InputError
from lachesis.traces.readers.registry import read

pytestmark = pytest.mark.samples

PAIRS = {
    "fa812bfe": (
        "claude_code_spotter/fa812bfe-b295-4cca-9c2f-fdf01028cb46.jsonl",
        178,
    ),
    "7acd37a8": (
        "claude_code_log/real_projects/-Users-USER-workspace-JSSoundRecorder/"
        "7acd37a8-2745-4b58-a8a9-46164b22ad9e.jsonl",
        36,
    ),
}


def raw_calls(paths):
    """Input and largest output of every message id, by a plain pass over the rows."""
    calls = {}
    for path in paths:
        for line in path.read_text().splitlines():
            row = json.loads(line)
            if row["type"] != "assistant":
                continue
            usage = row["message"]["usage"]
            given = (
                usage["input_tokens"]
                + usage.get("cache_creation_input_tokens", 0)
                + usage.get("cache_read_input_tokens", 0)
            )
            before = calls.get(row["message"]["id"], (0, 0))[1]
            calls[row["message"]["id"]] = (given, max(before, usage["output_tokens"]))
    return calls


def is_warm_up(path):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    prompts = [row["message"]["content"] for row in rows if row["type"] == "user"]
    return path.name.startswith("agent-") and prompts in (["Warmup"], [])


def inputs(trace):
    found = defaultdict(int)
    for span in trace.spans.to_pylist():
        found[span["session"], span["request"]] += span["tokens"]
    return found


def refusal(path):
    """Why a file does not read, or None if it does."""
    try:
        read([path])
    except InputError as fault:
        return fault
    return None


@pytest.mark.parametrize("folder", ["claude_code_spotter", "claude_code_log/real_projects"])
def test_totals_agree_with_a_plain_count_of_the_log(samples_dir, folder):
    paths = sorted((samples_dir / folder).rglob("*.jsonl"))
    calls = raw_calls(path for path in paths if not is_warm_up(path))
    trace = read([samples_dir / folder])
    rows = trace.requests.to_pylist()
    assert len(rows) == len(calls)
    assert sum(inputs(trace).values()) == sum(given for given, _ in calls.values())
    # Reported outputs are the log's; a recounted one replaces a smaller placeholder.
    found = inputs(trace)
    ours = Counter(
        (found[row["session"], row["request"]], row["output_tokens"])
        for row in rows
        if row["usage_source"] == "reported"
    )
    assert ours <= Counter(calls.values())
    assert sum(row["output_tokens"] for row in rows) >= sum(out for _, out in calls.values())


def test_spotter_sessions_have_their_agents_turns_and_compactions(samples_dir):
    trace = read([samples_dir / "claude_code_spotter"])
    agents = defaultdict(Counter)
    turns = defaultdict(set)
    for row in trace.requests.to_pylist():
        agents[row["session"][:8]][row["agent"]] += 1
        turns[row["session"][:8]].add(row["turn"])
    assert agents == {"258c7280": {0: 153, 1: 3}, "fa812bfe": {0: 158, 1: 11, 2: 9}}
    assert turns == {"258c7280": {0, 1}, "fa812bfe": {0, 1}}
    closed = Counter((row["class"], row["closed_by"]) for row in trace.segments.to_pylist())
    assert closed["lead", "compaction"] == 2
    assert closed["summary", "session_end"] == 2
    assert closed["worker", "subagent_return"] == 3
    assert {spawn["agent_type"] for spawn in trace.spawns.to_pylist()} == {
        "Explore",
        "claude-code-guide",
    }
    assert trace.quality.orphan_subagents == 0


def test_real_projects_have_warm_ups_left_out_and_orphans_counted(samples_dir):
    trace = read([samples_dir / "claude_code_log/real_projects"])
    assert trace.quality.excluded == {
        "warm-up": 20,
        "warm-up (an answer to no logged prompt)": 11,
    }
    assert trace.quality.orphan_subagents == 5
    empty = {
        str(path)
        for path in (samples_dir / "claude_code_log/real_projects").rglob("*.jsonl")
        if path.stat().st_size == 0
    }
    assert len(empty) == 11
    assert set(trace.quality.skipped) - empty == {
        str(
            samples_dir
            / "claude_code_log/real_projects/-experiments-ideas"
            / "a95fea4a-b88a-4e49-ac07-4cc323d8700c.jsonl"
        )
    }


@pytest.mark.parametrize("pair", PAIRS)
def test_a_session_and_its_conversion_give_the_same_trace(samples_dir, pair):
    name, calls = PAIRS[pair]
    ours = read([samples_dir / name])
    theirs = read([samples_dir / "atif_from_claude_code" / f"{pair}.trajectory.json"])
    assert len(ours.requests) == len(theirs.requests) == calls
    lost = {"start_s", "end_s", "after", "source"}
    for table in ("sessions", "requests", "spans", "segments", "spawns"):
        left, right = getattr(ours, table), getattr(theirs, table)
        for column in left.column_names:
            if column not in lost:
                assert left.column(column).to_pylist() == right.column(column).to_pylist(), column
    rows, converted = ours.requests.to_pylist(), theirs.requests.to_pylist()
    for left, right in zip(rows, converted, strict=True):
        assert [(e["request"], e["kind"]) for e in left["after"]] == [
            (e["request"], e["kind"]) for e in right["after"]
        ]
        # What the conversion lost: when messages ended and tools returned.
        assert right["end_s"] <= left["end_s"]
        assert right["start_s"] in (None, left["start_s"])
    tools = [edge for row in converted for edge in row["after"] if edge["kind"] == "tool"]
    recorded = [edge for row in rows for edge in row["after"] if edge["kind"] == "tool"]
    assert all(edge["delay_s"] is not None for edge in recorded)
    assert sum(edge["delay_s"] is None for edge in tools) > 0.9 * len(tools)


def test_every_real_file_reads_by_itself_or_has_nothing_in_it(samples_dir):
    paths = [
        path
        for folder in (
            "claude_code_spotter",
            "claude_code_log/real_projects",
            "atif_from_claude_code",
        )
        for path in sorted((samples_dir / folder).rglob("*.json*"))
    ]
    faults = {path: fault for path in paths if (fault := refusal(path)) is not None}
    for path, fault in faults.items():
        assert "no request remains" in fault.rule
        assert path.stat().st_size == 0 or is_warm_up(path) or path.name.startswith("a95fea4a")
    assert len(paths) - len(faults) == 23


@pytest.mark.parametrize("folder", ["claude_code_log/edge_cases", "atif_golden"])
def test_hand_made_files_end_in_a_trace_or_a_clear_error(samples_dir, folder):
    paths = sorted((samples_dir / folder).rglob("*.json*"))
    faults = {path: fault for path in paths if (fault := refusal(path)) is not None}
    assert len(faults) < len(paths) / 2
    for path, fault in faults.items():
        assert str(path) in str(fault)


def test_golden_trajectories_join_their_helpers_and_continuation(samples_dir):
    trace = read([samples_dir / "atif_golden"])
    # Beside the trajectories lie three logs in their harnesses' own formats.
    sources = trace.sessions.column("source").to_pylist()
    assert len([source for source in sources if "/rfc/" not in source]) == 6
    golden = json.loads(
        (samples_dir / "atif_golden/hello-world-context-summarization.trajectory.json").read_text()
    )
    session = next(
        row["session"]
        for row in trace.sessions.to_pylist()
        if row["source"].endswith("/hello-world-context-summarization.trajectory.json")
    )
    # Its final metrics include those of its three helpers.
    given = sum(tokens for (name, _), tokens in inputs(trace).items() if name == session)
    assert given == golden["final_metrics"]["total_prompt_tokens"]
    made = sum(
        row["output_tokens"] for row in trace.requests.to_pylist() if row["session"] == session
    )
    assert made == golden["final_metrics"]["total_completion_tokens"]

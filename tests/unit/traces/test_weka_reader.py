"""WEKA proxy traces: contexts from blocks, sub-agents dated by their end, duplicates and forks."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from damaged_logs import check_damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from read_traces import column, edges, inputs, matched, requests

from lachesis.errors import InputError
from lachesis.traces import ReadOptions, read

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "traces" / "weka"
CONTENT = json.loads((FIXTURE / "lighthouse.json").read_text())


def written(tmp_path, **changes):
    """The fixture with some fields changed, as a file."""
    file = tmp_path / "session.json"
    file.write_text(json.dumps({**CONTENT, **changes}))
    return file


@pytest.fixture(scope="module")
def trace():
    return read([FIXTURE / "lighthouse.json"])


def test_counts_are_the_providers(trace):
    assert inputs(trace) == [50, 24, 40, 70, 84, 60]
    assert column(trace, "output_tokens") == [10, 6, 5, 8, 9, 4]
    assert set(column(trace, "usage_source")) == {"reported"}


def test_blocks_say_what_matches(trace):
    # Four whole inputs and outputs; the last one diverges after 5 blocks of 8, inside the second
    # request's part, of which 40 tokens lie before the first output's end at 60.
    assert matched(trace) == [0, 0, 30, 60, 78, 40]


def test_a_turn_opens_with_text_after_an_output_that_ended(trace):
    assert column(trace, "turn") == [0, 0, 0, 0, 1, 2]
    assert column(trace, "observations") == [0, 0, 1, 1, 0, 0]


def test_a_sub_agents_row_is_dated_by_its_end(trace):
    assert column(trace, "start_s") == [0.0, 4.9, 13.9, 41.0, 100.0, 160.0]
    assert column(trace, "end_s") == [4.0, 7.4, 16.9, 44.0, 103.0, None]
    (spawn,) = trace.spawns.to_pylist()
    assert (spawn["spawned_by"], spawn["return_requests"]) == (0, [3])
    assert (spawn["agent_type"], spawn["model"], spawn["role"]) == ("Explore", "small", "worker")
    assert [edge[:2] for edge in edges(trace, 3)] == [(0, "tool"), (2, "return")]


def test_prompts_are_tools_and_system(trace):
    prompts = [
        (row["agent"], row["prefix_key"])
        for row in trace.segments.to_pylist()
        if row["class"] == "prompt"
    ]
    assert prompts == [(0, "big/lighthouse block 4/32"), (1, "small/lighthouse block 102/16")]


def test_the_same_session_under_another_id_is_dropped():
    trace = read([FIXTURE])
    assert len(trace) == 1
    assert trace.quality.dropped == {"session that is in another file under another id": 1}
    assert list(trace.quality.skipped) == [str(FIXTURE / "lighthouse.json")]


def test_a_fork_is_kept_and_counted(tmp_path):
    file = written(tmp_path, requests=CONTENT["requests"][:1], id="fork")
    trace = read([FIXTURE / "lighthouse.json", file])
    assert len(trace) == 2
    how = "begins with another one's first request (a fork)"
    assert trace.quality.filled["session"] == {how: 1}


def test_a_session_may_start_midway(tmp_path):
    first = {**CONTENT["requests"][0], "in": 20_000, "hash_ids": list(range(2500))}
    trace = read([written(tmp_path, requests=[first])])
    assert trace.sessions["starts_midway"].to_pylist() == [True]
    assert trace.sessions["ends_open"].to_pylist() == [True]


def test_ids_are_local_to_a_file(tmp_path):
    other = written(tmp_path, id="other", system_tokens=13)
    trace = read([FIXTURE / "lighthouse.json", other])
    keys = [row["prefix_key"] for row in trace.segments.to_pylist() if row["class"] == "prompt"]
    assert len(set(keys)) == 4


def test_sub_agents_may_have_sub_agents(tmp_path):
    rows = json.loads(json.dumps(CONTENT["requests"]))
    inner = {**rows[1], "agent_id": "inner", "t": 12.0, "duration_ms": 8000}
    inner["requests"] = [{**rows[1]["requests"][0], "hash_ids": [201, 202, 203]}]
    rows[1]["requests"].append(inner)
    trace = read([written(tmp_path, requests=rows)])
    assert trace.spawns["parent"].to_pylist() == [0, 1]


def test_a_prompt_that_changes_in_the_middle_is_cut_down(tmp_path):
    rows = json.loads(json.dumps(CONTENT["requests"][:1]))
    rows.append({**rows[0], "t": 10.0, "in": 60, "hash_ids": [1, 2, 31, 32, 33, 34, 35]})
    trace = read([written(tmp_path, requests=rows)])
    assert matched(trace) == [0, 16]
    assert trace.quality.filled["prompt_tokens"] == {
        "cut down to what the blocks show unchanged": 1
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"in": -1}, r"requests\[0\]\.in = -1, expected `int` >= 0"),
        (
            {"hash_ids": [1, 2]},
            r"requests\[0\]: hash_ids = 2 ids, must hold an id for each of the 6",
        ),
        ({"type": "x"}, r"invalid value 'x'"),
        ({"t": None}, r"requests\[0\]\.t.*expected `float`, got `null`"),
        ({"out": 2**31}, r"out = 2147483648, expected `int` <= 2147483647"),
    ],
)
def test_broken_rows(tmp_path, change, message):
    rows = [{**CONTENT["requests"][0], **change}]
    with pytest.raises(InputError, match=message):
        read([written(tmp_path, requests=rows)])


def test_an_agent_is_named_once(tmp_path):
    rows = [*CONTENT["requests"], CONTENT["requests"][1]]
    with pytest.raises(InputError, match=r"requests\[5\]: agent_id = agent_001, must be unique"):
        read([written(tmp_path, requests=rows)])


def test_strict_reading_refuses_what_the_blocks_contradict():
    with pytest.raises(InputError, match="allows no repair: adjusted: 1 × context reset"):
        read([FIXTURE / "lighthouse.json"], options=ReadOptions(strict=True))


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_damaged(data):
    check_damaged(data, FIXTURE, "weka")


def plain_sessions(folder):
    """(name, agents' request rows) of every file, duplicates once; from the raw JSON alone."""
    seen = []
    for path in sorted(folder.rglob("*.json")):
        document = json.loads(path.read_text())
        body = {key: value for key, value in document.items() if key != "id"}
        if body in seen:
            continue
        seen.append(body)
        main = [row for row in document["requests"] if row["type"] != "subagent"]
        subs = [row["requests"] for row in document["requests"] if row["type"] == "subagent"]
        yield document["block_size"], [main, *subs]


def plain_matched(block, rows):
    """Matched tokens of one agent's requests by the rule in words, block by block.

    Outputs are kept whole: `outputs` holds where each one stands that is still in the context.
    """
    found = [0] if rows else []
    outputs = []
    for before, row in pairwise(rows):
        old, new = (each["hash_ids"][: each["in"] // block] for each in (before, row))
        same = 0
        while same < min(len(old), len(new)) and old[same] == new[same]:
            same += 1
        outputs.append((before["in"], before["in"] + before["out"]))
        tokens = same * block
        if same == len(old):
            tokens = max([tokens, *(end for end in outputs[-1] if end <= row["in"])])
        for start, end in reversed(outputs):
            if start < tokens < end:
                tokens = start
        outputs = [output for output in outputs if output[1] <= tokens]
        found.append(tokens)
    return found


@pytest.mark.samples
def test_real_sessions_agree_with_a_plain_count(samples_dir):
    trace = read([samples_dir / "weka_claude_code"])
    sessions = list(plain_sessions(samples_dir / "weka_claude_code"))
    rows = [row for _, agents in sessions for agent in agents for row in agent]
    assert len(trace) == len(sessions) == 15
    assert len(requests(trace)) == len(rows) == 570
    assert sum(inputs(trace)) == sum(row["in"] for row in rows)
    assert sum(column(trace, "output_tokens")) == sum(row["out"] for row in rows)
    plain = [sum(plain_matched(block, agent)) for block, agents in sessions for agent in agents]
    shared = sum(
        span["tokens"]
        for span in trace.spans.to_pylist()
        if not span["written"] and span["request"] in _firsts(trace)[span["session"]]
    )
    assert sum(matched(trace)) == sum(plain) + shared
    # What sub-agents of one session share is their prompt.
    assert shared < 80_000


def _firsts(trace):
    """Each session's first requests of sub-agents."""
    found = {}
    for row in requests(trace):
        found.setdefault(row["session"], {}).setdefault(row["agent"], row["request"])
    return {session: set(agents.values()) for session, agents in found.items()}


@pytest.mark.samples
def test_a_cache_that_expires_would_inflate_what_is_written(samples_dir):
    """What a provider's five-minute cache would have missed is not written anew."""
    ours = expired = 0
    by_session = []
    for block, agents in plain_sessions(samples_dir / "weka_claude_code"):
        before = ours, expired
        for rows in agents:
            over_s = float("inf")
            for row, tokens in zip(rows, plain_matched(block, rows), strict=True):
                ours += row["in"] - tokens + row["out"]
                hit = tokens if row["t"] - over_s <= 300 else 0
                expired += row["in"] - hit + row["out"]
                over_s = row["t"] + (row.get("api_time") or 0)
        by_session.append((expired - before[1]) / (ours - before[0]))
    trace = read([samples_dir / "weka_claude_code"])
    written = sum(span["tokens"] for span in trace.spans.to_pylist() if span["written"])
    written += sum(column(trace, "output_tokens"))
    assert written <= ours
    assert expired / written == pytest.approx(1.93, abs=0.01)
    assert max(by_session) == pytest.approx(5.04, abs=0.01)

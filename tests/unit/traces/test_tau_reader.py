"""The τ-bench reader, on records of our own and, where they are, on real ones."""

import json
from pathlib import Path

import pytest
from short_logs import segments, spans

from lachesis.errors import InputError
from lachesis.traces import Trace, read


@pytest.fixture
def tau2(fixtures_dir) -> Trace:
    return read([fixtures_dir / "traces" / "tau2.json"])


def test_every_message_of_the_agent_but_the_greeting_is_a_request(tau2):
    names = tau2.requests["session"].to_pylist()
    assert [names.count(name) for name in ("with-usage", "without-usage")] == [3, 2]
    quality = tau2.quality.to_json()
    assert quality["excluded_reasons"] == {
        "greeting": 2,
        "message of the simulated user": 5,
        "tool call of the simulated user": 1,
    }
    assert quality["dropped_reasons"] == {"tool result that only the simulated user sees": 1}
    assert quality["empty_sessions"] == 1


def test_usage_is_taken_and_reasoning_that_it_leaves_out_is_added(tau2):
    session = tau2.select(["with-usage"])
    rows = session.requests.to_pylist()
    assert [row["usage_source"] for row in rows] == ["recounted", "reported", "reported"]
    assert [row["reasoning_tokens"] for row in rows] == [28, 0, 0]
    assert [row["output_tokens"] for row in rows] == [9 + 28, 8, 4]
    assert [sum(s[1] for s in spans(session, n)) for n in range(3)] == [400, 415, 428]
    assert [row["turn"] for row in rows] == [0, 0, 1]
    assert [row["observations"] for row in rows] == [0, 1, 0]
    assert [row["tools"] for row in rows] == [["retrieval"], [], []]
    assert rows[0]["model"] == "model-x"
    assert [row["end_s"] - row["start_s"] for row in rows] == [3.0, 3.5, 1.0]


def test_reasoning_that_the_next_input_lacks_was_stripped_after_its_request(tau2):
    session = tau2.select(["with-usage"])
    assert [s for s in segments(session) if s[2] == "request_end"] == [
        ("reasoning-laden", 0, "request_end", 0)
    ]


def test_simulated_users_and_tools_give_no_delays(tau2):
    delays = [e["delay_s"] for after in tau2.requests["after"].to_pylist() for e in after]
    assert delays == [None] * 3


def test_without_usage_text_is_counted_and_flagged(tau2):
    session = tau2.select(["without-usage"])
    assert set(session.requests["usage_source"].to_pylist()) == {"inferred"}
    # "due_books {}" and "fees {}" at four characters a token
    assert session.requests["output_tokens"].to_pylist() == [3 + 2, 5]
    assert session.sessions["ends_open"].to_pylist() == [True]
    assert tau2.quality.filled["prompt_tokens"] == {
        "policy as text; the tool schemas are not in the file": 1,
        "the first input less its visible text": 1,
    }


def test_v1_lists_are_read(fixtures_dir):
    trace = read([fixtures_dir / "traces" / "tau_v1.json"])
    assert trace.sessions.select(["session", "workload"]).to_pylist() == [
        {"session": "3/2", "workload": "tau-bench"}
    ]
    assert trace.requests.num_rows == 2
    assert spans(trace, 0) == [("prompt", 8, True), ("lead", 4, True)]
    assert spans(trace, 1) == [("prompt", 8, False), ("lead", 9, False), ("lead", 2, True)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(usage={"prompt_tokens": -1, "completion_tokens": 3}),
         r"simulations\[0\]\.messages\[2\]: usage.prompt_tokens = -1, must be a whole number"),
        (lambda m: m.update(usage={"prompt_tokens": 3}), "usage.completion_tokens = missing"),
        (lambda m: m.update(usage={"prompt_tokens": 2**31, "completion_tokens": 3}),
         "input_tokens = 2147483648, must be at most"),
        (lambda m: m.update(role="robot"), "role = robot, must be system, user, assistant or"),
        (lambda m: m.update(timestamp="noon"), "timestamp = noon, must be an ISO 8601 time"),
        (lambda m: m.update(content=[1]), "content = .1., must be text or null"),
        (lambda m: m.pop("role"), "must be a message with a role"),
        (lambda m: m.update(tool_calls={"a": 1}), "tool_calls = .*must be a list or null"),
    ],
)  # fmt: skip
def test_broken_values_are_named(fixtures_dir, tmp_path, change, message):
    content = json.loads((fixtures_dir / "traces" / "tau2.json").read_text())
    change(content["simulations"][0]["messages"][2])
    file = tmp_path / "broken.json"
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match=message) as caught:
        read([file])
    assert str(caught.value).startswith(str(file))


def test_a_cut_off_file_is_an_error_with_its_line(fixtures_dir, tmp_path):
    text = (fixtures_dir / "traces" / "tau2.json").read_text()
    file = tmp_path / "cut.json"
    file.write_text(text[: len(text) // 2])
    with pytest.raises(InputError, match=r"cut\.json:\d+: not valid JSON"):
        read([file])


def test_files_without_simulations_are_skipped_and_an_error_if_nothing_remains(
    fixtures_dir, tmp_path
):
    file = tmp_path / "none.json"
    file.write_text('{"info": {"num_trials": 1, "user_info": {}}, "simulations": []}')
    with pytest.raises(InputError, match=r"no request remains .*holds no simulation"):
        read([file])
    assert len(read([file, fixtures_dir / "traces" / "tau2.json"])) == 2


@pytest.mark.samples
@pytest.mark.parametrize(
    "name",
    [
        "tau2_bench/airline_grok-3-mini_with_reasoning.json",
        "tau2_bench/airline_grok-4-fast.json",
        "tau2_bench/toolorchestra_airline_gpt-5.json",
        "tau2_bench/toolorchestra_retail_gpt-5.json",
        "tau_bench_v1/gpt-4o-airline.json",
    ],
)
def test_real_records_hold_what_a_plain_count_finds(samples_dir: Path, name: str):
    content = json.loads((samples_dir / name).read_text())
    is_v1 = isinstance(content, list)
    dialogues = [r["traj"] for r in content] if is_v1 else [
        r["messages"] for r in content["simulations"]
    ]  # fmt: skip
    requests = turns = observations = calls = prompt = 0
    for messages in dialogues:
        waiting = False
        for index, message in enumerate(messages):
            if message["role"] == "assistant" and (is_v1 or index):
                requests += 1
                turns += waiting
                waiting = False
                calls += len(message.get("tool_calls") or [])
                prompt += (message.get("usage") or {}).get("prompt_tokens", 0)
            waiting = waiting or message["role"] == "user"
            # A result after which nobody was asked is in no input.
            later = any(m["role"] == "assistant" for m in messages[index:])
            observations += message["role"] == "tool" and later
    trace = read([samples_dir / name])
    assert len(trace) == len(dialogues)
    assert trace.requests.num_rows == requests
    assert sum(trace.requests["observations"].to_pylist()) == observations
    assert sum(len(tools) for tools in trace.requests["tools"].to_pylist()) == calls
    per_session = trace.requests.group_by("session").aggregate([("turn", "max")])
    assert sum(turn + 1 for turn in per_session["turn_max"].to_pylist()) == turns
    if prompt:
        assert sum(trace.spans["tokens"].to_pylist()) == prompt
        assert "inferred" not in trace.requests["usage_source"].to_pylist()

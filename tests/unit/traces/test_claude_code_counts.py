"""Tokens of Claude Code messages: merged lines, placeholders, reasoning, prompts, wrong counts."""

import pytest
from claude_code_log import (
    START_S,
    Transcript,
    inputs,
    one_call,
    requests,
    text,
    thinking,
    use,
    with_subagent,
)

from lachesis.errors import InputError
from lachesis.traces.readers.protocol import ReadOptions
from lachesis.traces.readers.registry import read


def test_lines_of_a_message_are_one_request_with_the_largest_output(tmp_path):
    log = Transcript()
    log.user("mend it", 0.0)
    log.call(
        "m1",
        2.0,
        [thinking("hm"), text("I look"), use("t1", command="ls")],
        given=(3, 50, 1000),
        output=[2, 180, 2],
        stop=None,
    )
    trace = read([log.write(tmp_path / "s1.jsonl")])
    (row,) = requests(trace)
    assert inputs(trace) == [1053]
    assert row["output_tokens"] == 180
    assert row["reported_cached_tokens"] == 1000
    assert row["usage_source"] == "reported"
    assert row["tools"] == ["environment"]
    assert (row["start_s"], row["end_s"]) == (START_S, START_S + 4.0)


def test_a_placeholder_output_is_recounted_from_the_content(tmp_path):
    log = Transcript()
    log.user("mend it", 0.0)
    log.call("m1", 1.0, [text("x" * 700)], given=(100, 0, 0), output=2, stop=None)
    trace = read([log.write(tmp_path / "s1.jsonl")])
    (row,) = requests(trace)
    assert row["output_tokens"] == 203  # 700 bytes at 3.5 a token, and 3 for the message
    assert row["usage_source"] == "recounted"
    assert sum(trace.quality.filled["output_tokens"].values()) == 1
    counted = read(
        [tmp_path / "s1.jsonl"], options=ReadOptions(count_tokens=lambda said: len(said))
    )
    assert requests(counted)[0]["output_tokens"] == 703


def test_a_small_output_stands_where_the_message_was_stopped(tmp_path):
    log = Transcript()
    log.user("mend it", 0.0)
    log.call("m1", 1.0, [text("x" * 700)], given=(100, 0, 0), output=2, stop="max_tokens")
    (row,) = requests(read([log.write(tmp_path / "s1.jsonl")]))
    assert (row["output_tokens"], row["usage_source"]) == (2, "reported")


def test_a_recount_does_not_exceed_the_growth_of_the_next_input(tmp_path):
    log = Transcript()
    log.user("mend it", 0.0)
    log.call("m1", 1.0, [text("x" * 700)], given=(100, 0, 0), output=2, stop=None)
    log.user("and that", 50.0)
    log.call("m2", 51.0, [text("done")], given=(250, 0, 0), output=3)
    trace = read([log.write(tmp_path / "s1.jsonl")])
    assert requests(trace)[0]["output_tokens"] == 150
    assert "reset" not in trace.segments.column("closed_by").to_pylist()


def test_reasoning_is_weighed_or_what_hidden_thinking_leaves(tmp_path):
    log = Transcript()
    log.user("mend it", 0.0)
    log.call("m1", 1.0, [thinking("y" * 70), text("z" * 35)], given=(100, 0, 0), output=40)
    log.user("again", 9.0)
    log.call("m2", 10.0, [thinking(""), text("z" * 35)], given=(200, 0, 0), output=40)
    first, second = requests(read([log.write(tmp_path / "s1.jsonl")]))
    assert first["reasoning_tokens"] == 20
    assert second["reasoning_tokens"] == 40 - 13  # 10 for the text, 3 for the message


def test_prompt_length_is_the_first_hit_else_what_visible_text_leaves(tmp_path):
    hit = Transcript(session="s1")
    hit.user("x" * 350, 0.0)
    hit.call("m1", 1.0, [text("a")], given=(10, 100, 700), output=5)
    hit.write(tmp_path / "s1.jsonl")
    miss = Transcript(session="s2")
    miss.user("x" * 350, 0.0)
    miss.call("m2", 1.0, [text("a")], given=(10, 790, 0), output=5)
    miss.write(tmp_path / "s2.jsonl")
    trace = read([tmp_path])
    prompts = {}
    for span in trace.spans.to_pylist():
        segment = next(
            s
            for s in trace.segments.to_pylist()
            if (s["session"], s["segment"]) == (span["session"], span["segment"])
        )
        if segment["class"] == "prompt":
            prompts[span["session"]] = span["tokens"]
    assert prompts == {"s1": 700, "s2": 700}
    assert trace.quality.filled["prompt_tokens"] == {
        "the first cache hit": 1,
        "input less visible text": 1,
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda u: u.update(output_tokens=-3), "output_tokens = -3, expected `int` >= 0"),
        (lambda u: u.update(input_tokens="7"), "input_tokens = 7, expected"),
        (lambda u: u.update(input_tokens=2**31), "expected `int` <= 2147483647"),
        (lambda u: u.update(cache_read_input_tokens=1.5), "expected `int"),
    ],
)
def test_a_wrong_count_names_file_line_field_and_rule(tmp_path, change, said):
    log = Transcript()
    one_call(log)
    change(log.rows[1]["message"]["usage"])
    path = log.write(tmp_path / "s1.jsonl")
    with pytest.raises(InputError) as fault:
        read([path])
    assert f"{path}:2: message.usage." in str(fault.value)
    assert said in str(fault.value)
    assert "\n" not in str(fault.value)


def test_a_truncated_last_line_is_dropped_and_one_before_it_is_an_error(tmp_path):
    log = Transcript()
    one_call(log)
    log.user("more", 9.0)
    lines = log.lines()
    path = tmp_path / "s1.jsonl"
    path.write_text("\n".join([*lines[:2], lines[2][:40]]))
    trace = read([path])
    assert trace.quality.dropped == {f"truncated last line ({path}:3)": 1}
    path.write_text("\n".join([lines[0], lines[1][:60], lines[2]]))
    with pytest.raises(InputError, match=r"s1\.jsonl:2: not valid JSON"):
        read([path])


def test_reading_twice_gives_the_same_tables(tmp_path):
    main = with_subagent(tmp_path, background=True)
    first, second = read([main]), read([main])
    for table in ("sessions", "requests", "spans", "segments", "spawns"):
        assert getattr(first, table).equals(getattr(second, table))

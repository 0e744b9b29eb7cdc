"""The reader of per-request tables."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from short_logs import after, segments, spans

from lachesis.errors import InputError
from lachesis.traces import ReadOptions, Trace, read

HEADER = "session,input_tokens,output_tokens"


def table(tmp_path, text: str, name: str = "log.csv", **options) -> Trace:
    file = tmp_path / name
    file.write_text(text)
    return read([file], options=ReadOptions(**options))


def test_three_columns_are_enough(tmp_path):
    trace = table(tmp_path, f"{HEADER}\na,100,10\nb,5,5\na,130,20\n")
    assert trace.sessions["session"].to_pylist() == ["a", "b"]
    assert trace.sessions["workload"].to_pylist() == ["log", "log"]
    assert trace.requests["usage_source"].to_pylist() == ["reported"] * 3
    assert spans(trace.select(["a"]), 1) == [("lead", 110, False), ("lead", 20, True)]
    assert trace.quality.filled["turn"] == {"none in the table: a session is one turn": 2}


FULL = [
    {"session": "a", "input_tokens": 100, "output_tokens": 10, "cached_tokens": 60,
     "reasoning_tokens": 4, "timestamp": 1000.0, "agent": "main", "parent": None, "model": "m",
     "turn": 1, "host": "x"},
    {"session": "a", "input_tokens": 50, "output_tokens": 5, "cached_tokens": 0,
     "reasoning_tokens": 0, "timestamp": 1001.0, "agent": "helper", "parent": "main", "model": "n",
     "turn": 1, "host": "x"},
    {"session": "a", "input_tokens": 140, "output_tokens": 10, "cached_tokens": 110,
     "reasoning_tokens": 4, "timestamp": 1005.0, "agent": "main", "parent": None, "model": "m",
     "turn": 2, "host": "y"},
]  # fmt: skip


def write(tmp_path, form: str):
    rows = list(reversed(FULL))  # order comes from the timestamps
    file = tmp_path / f"log.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
        return file
    if form.startswith("jsonl"):
        text = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        separator = "\t" if form.startswith("tsv") else ","
        lines = [list(rows[0])] + [
            ["" if value is None else str(value) for value in row.values()] for row in rows
        ]
        text = "".join(separator.join(line) + "\n" for line in lines)
    content = text.encode()
    if form.endswith(".gz"):
        content = gzip.compress(content)
    elif form.endswith(".zst"):
        content = zstandard.compress(content)
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet", "csv.gz", "jsonl.zst"])
def test_all_columns_in_every_form(tmp_path, form):
    trace = read([write(tmp_path, form)])
    rows = trace.requests.to_pylist()
    assert [row["agent"] for row in rows] == [0, 1, 0]
    assert [row["turn"] for row in rows] == [0, 0, 1]
    assert [row["model"] for row in rows] == ["m", "n", "m"]
    assert [row["reported_cached_tokens"] for row in rows] == [60, 0, 110]
    assert [row["start_s"] for row in rows] == [1000.0, 1001.0, 1005.0]
    assert after(trace, 2) == [(0, "user", None), (1, "return", 0.0)]
    assert segments(trace)[0] == ("prompt", 0, "session_end", 2)
    assert spans(trace, 0) == [("prompt", 60, True), ("lead", 40, True)]
    assert trace.quality.to_json()["ignored"] == {"column host": 1}


@pytest.mark.parametrize(
    "names", ["cache_read,cache_creation", "cache_read_input_tokens,cache_creation_input_tokens"]
)
def test_three_counts_of_one_input_are_added(tmp_path, names):
    trace = table(tmp_path, f"{HEADER},{names}\na,3,10,0,60\na,2,10,63,20\n")
    assert [sum(tokens for _, tokens, _ in spans(trace, row)) for row in (0, 1)] == [63, 85]
    assert trace.requests["reported_cached_tokens"].to_pylist() == [0, 63]
    assert not trace.quality.ignored


def test_columns_can_have_other_names(tmp_path):
    trace = table(
        tmp_path,
        "trace_id;in;out\nq;10;1\nq;12;2\n",
        columns={"session": "trace_id", "input_tokens": "in", "output_tokens": "out"},
    )
    assert trace.requests.num_rows == 2


def test_rows_without_output_or_counts_are_left_out_and_counted(tmp_path):
    trace = table(tmp_path, f"{HEADER}\na,5,0\na,,\na,7,1\n")
    assert trace.requests.num_rows == 1
    assert trace.quality.excluded == {"request without output": 1}
    assert trace.quality.dropped == {"row without token counts": 1}


def test_an_agent_without_an_earlier_parent_is_a_session_of_its_own(tmp_path):
    trace = table(tmp_path, f"{HEADER},agent,parent\na,5,1,x,gone\na,7,1,main,\na,9,1,x,gone\n")
    assert trace.sessions["session"].to_pylist() == ["a", "a/x"]
    assert trace.quality.orphan_subagents == 1


def test_nested_agents_return_to_their_parents(tmp_path):
    rows = ["a,5,1,m,", "a,5,1,w,m", "a,5,1,v,w", "a,9,1,w,m", "a,9,1,m,"]
    trace = table(tmp_path, "\n".join([f"{HEADER},agent,parent", *rows]))
    assert trace.spawns.select(["agent", "parent", "return_requests"]).to_pylist() == [
        {"agent": 1, "parent": 0, "return_requests": [4]},
        {"agent": 2, "parent": 1, "return_requests": [3]},
    ]


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        ("1700000000", 1.7e9),
        ("1700000000000", 1.7e9),
        ("1700000000000000", 1.7e9),
        ("1700000000000000000", 1.7e9),
        ("2023-11-14T22:13:20Z", 1.7e9),
        ("2023-11-14T23:13:20+01:00", 1.7e9),
    ],
)
def test_times_in_any_usual_unit(tmp_path, stamp, seconds):
    trace = table(tmp_path, f"{HEADER},timestamp\na,1,1,{stamp}\n")
    assert trace.requests["start_s"].to_pylist() == [seconds]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEADER}\na,1,-3\n", r"log\.csv:2: output_tokens = -3, must not be negative"),
        (f"{HEADER}\na,1,1\na,2147483648,1\n", r":3: input_tokens = 2147483648, must be at most"),
        (f"{HEADER}\na,{2**63},1\n", f":2: input_tokens = {2**63}, must be at most 2147483647"),
        (f"{HEADER}\na,nan,1\n", "input_tokens = nan, must be a whole number"),
        (f"{HEADER}\na,1.5,1\n", "input_tokens = 1.5, must be a whole number"),
        (f"{HEADER}\na,many,1\n", "input_tokens = many, must be a whole number"),
        (f"{HEADER}\na,,1\n", "input_tokens = missing, is needed in every row"),
        (f"{HEADER}\n,1,1\n", "session = missing, is needed in every row"),
        (f"{HEADER}\na,1\n", r":2: has 2 fields, the header 3"),
        (f'{HEADER}\na,1,"1\n', r"log\.csv:\d+: not valid CSV"),
        (f"{HEADER},cached_tokens\na,1,1,2\n", r"cached_tokens = 2, must be at most input_tokens"),
        (f"{HEADER},reasoning_tokens\na,1,1,2\n", "reasoning_tokens = 2, must be at most output"),
        (f"{HEADER},timestamp\na,1,1,soon\n", "timestamp = soon, must be seconds since the epoch"),
        (f"{HEADER},timestamp\na,1,1,inf\n", "timestamp = inf, must be a finite time"),
        (f"{HEADER},session\na,1,1,b\n", r"log\.csv: column session, stands there twice"),
        (f"{HEADER}\n", "no request remains .*holds no request with output"),
        ("session,tokens\na,1\n", r"log\.csv: needed column input_tokens, output_tokens is missing;"
                                  r" there are session, tokens \(--map input_tokens=NAME\)"),
    ],
)  # fmt: skip
def test_broken_tables_are_named(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as caught:
        table(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_broken_maps_are_named(tmp_path):
    with pytest.raises(InputError, match="map = sesion, no such column to map; there are session"):
        table(tmp_path, f"{HEADER}\na,1,1\n", columns={"sesion": "x"})
    with pytest.raises(InputError, match=r"map = x, no such column \(mapped to turn\)"):
        table(tmp_path, f"{HEADER}\na,1,1\n", columns={"turn": "x"})


def test_a_truncated_json_line_is_named(tmp_path):
    text = '{"session": "a", "input_tokens": 3, "output_tokens": 1}\n{"session": "a", "inp'
    with pytest.raises(InputError, match=r"log\.jsonl:2: not valid JSON"):
        table(tmp_path, text, "log.jsonl")
    with pytest.raises(InputError, match=r"log\.jsonl:2: .*must be an object"):
        table(tmp_path, text.partition("\n")[0] + "\n[1]\n", "log.jsonl")


def test_a_time_beyond_all_floats_is_named(tmp_path):
    text = '{"session": "a", "input_tokens": 3, "output_tokens": 1, "timestamp": 1' + "0" * 400
    with pytest.raises(InputError, match=r"log\.jsonl:1: timestamp = 10+.*, must be a finite time"):
        table(tmp_path, text + "}\n", "log.jsonl")


def test_rows_of_one_time_keep_their_order(tmp_path):
    trace = table(tmp_path, f"{HEADER},timestamp\na,9,1,5\na,12,2,5\na,3,3,4\n")
    assert trace.requests["output_tokens"].to_pylist() == [3, 1, 2]

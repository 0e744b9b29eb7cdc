"""Importing takes no more memory for a longer log: sessions go to disk as they are complete.

What is kept back before it goes to disk is made small here, so that small logs show it.
"""

import json
import random
import tracemalloc
from itertools import count

import pyarrow as pa
import pytest

from lachesis.traces import (
    builder,
    column_groups,
    digests,
    open_trace,
    record_groups,
    session_names,
    spool,
    trace_files,
)
from lachesis.traces.opening import open_batches
from lachesis.traces.readers import (
    block_table,
    csv_blocks,
    frontier,
    protocol,
    request_rows,
    table_columns,
)
from lachesis.traces.readers.protocol import SourceFile

#: Bytes that peak memory may grow by for each byte that the log is longer. Before sessions went to
#: disk it was more than one for all formats here, and more than four for tables and chains.
GROWTH_MAX = 0.5
#: For those of which every request is remembered by some numbers, and is short here.
GROWTH_MAX_OF_SHORT_ROWS = 1.0


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Everything that is kept back is kept back a little."""
    for module, name, value in (
        (builder, "_BATCH_ROWS", 400),
        (spool, "_MEMORY_BYTES", 20_000),
        (record_groups, "_RUN_BYTES", 20_000),
        (record_groups, "_RECENT", 100),
        (record_groups, "_READ_RECORDS", 8),
        (record_groups, "_READ_BYTES", 500),
        (session_names, "_RECENT", 100),
        (digests, "_BUCKET_BYTES", 512),
        (trace_files, "_GROUP_BYTES", 20_000),
        (csv_blocks, "_BLOCK_BYTES", 8_000),
        (request_rows, "_ROWS_AT_ONCE", 200),
        (table_columns, "_ROWS_AT_ONCE", 200),
        (frontier, "_ROWS_AT_ONCE", 50),
        (protocol, "LINES_BYTES", 2_000),
        (column_groups, "_RUN_BYTES", 60_000),
        (column_groups, "_READ_BYTES", 500),
        (column_groups, "_GROUPED_BYTES", 20_000),
        (block_table, "_STAYS_BYTES", 1_000),
        (block_table, "_USES_TILL_RELEASE", 1_000),
    ):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(SourceFile.open, "__defaults__", (4_000,))


def interleaved(draw):
    """(session, requests so far, tokens held) of sessions that overlap, without end."""
    live, numbers = [], count()
    while True:
        if len(live) < 20:
            live.append([next(numbers), 0, draw.randrange(100, 900)])
        session = draw.choice(live)
        yield session
        session[1] += 1
        session[2] += draw.randrange(5, 50)
        if session[1] == 8:
            live.remove(session)


def azure(draw):
    yield "TIMESTAMP,ContextTokens,GeneratedTokens"
    for second in count():
        yield f"{second}.25,{draw.randrange(5000)},{draw.randrange(1, 500)}"


def quoted_azure(draw):
    """Read row by row, for its quotes."""
    rows = azure(draw)
    yield next(rows)
    for row in rows:
        time, inputs, outputs = row.split(",")
        yield f'{time},"{inputs}",{outputs}'


def conversations(draw):
    yield "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens"
    for second, (session, _, held) in enumerate(interleaved(draw)):
        yield f"{second},c-{session},1.5,m,{held},4"


def table(draw):
    yield "session,input_tokens,output_tokens,timestamp"
    for second, (session, _, held) in enumerate(interleaved(draw)):
        yield f"session-{session},{held},4,{second}"


def chains(draw):
    yield "arrived_at,num_prefill_tokens,num_decode_tokens,block_hash_ids"
    blocks, chain_of = count(), {}
    for second, (session, _, _) in enumerate(interleaved(draw)):
        chain = chain_of.setdefault(session, [])
        chain += [next(blocks) for _ in range(3)]
        yield f"{second},{len(chain) * 16},4,{'|'.join(map(str, chain))}"


def mooncake(draw):
    blocks, chain_of = count(), {}
    for second, (session, _, _) in enumerate(interleaved(draw)):
        chain = chain_of.setdefault(session, [])
        chain += [next(blocks) for _ in range(3)]
        row = {"timestamp": second, "input_length": len(chain) * 16, "output_length": 4}
        yield json.dumps({**row, "hash_ids": chain})


def agentic(draw):
    for session in count():
        name, worker = f"lead-{session}", f"worker-{session}"
        for turn in range(6):
            row = {"request_id": f"{name}-{turn}", "session_id": name, "output_length": 4,
                   "input_length": 16 * turn + 16, "hash_ids": list(range(turn + 1)),
                   "timestamp": session * 100 + turn}  # fmt: skip
            if turn:
                row["wait_for"] = [f"{name}-{turn - 1}"]
            yield json.dumps(row)
            if turn == 2:
                yield json.dumps({**row, "request_id": f"{worker}-0", "session_id": worker,
                                  "wait_for": [f"{name}-2"]})  # fmt: skip


def bfcl(draw):
    for session in count():
        messages = []
        for turn in range(4):
            words = " ".join(str(draw.randrange(10**6)) for _ in range(30))
            messages += [
                {"turn": turn, "role": "user", "content": words},
                {"turn": turn, "role": "assistant", "tool_calls": [{"call": f"look('{words}')"}]},
                {"turn": turn, "role": "tool", "content": words},
            ]
        yield json.dumps({"id": f"s{session}", "involved_classes": [], "messages": messages})


def lmcache(draw):
    prompts = {}
    for second, (session, _, _) in enumerate(interleaved(draw)):
        words = " ".join(str(draw.randrange(10**6)) for _ in range(10))
        prompts[session] = f"{prompts.get(session, '')}user: {words}\n\nassistant: yes\n\n"
        yield json.dumps({"timestamp": 10**15 + second * 10**6, "input": prompts[session],
                          "output": "yes", "session_id": f"s{session}"})  # fmt: skip


def otel(draw):
    for second, (session, number, held) in enumerate(interleaved(draw)):
        words = " ".join(str(draw.randrange(10**6)) for _ in range(30))
        yield json.dumps(
            {
                "trace_id": f"t{session}", "span_id": f"{session}-{number}", "name": "chat",
                "start_time": second + 1.0, "end_time": second + 1.5,
                "attributes": {
                    "gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": held,
                    "gen_ai.usage.output_tokens": 4,
                    "gen_ai.input.messages": json.dumps(
                        [{"role": "user", "parts": [{"type": "text", "content": words}]}]
                    ),
                },
            }
        )  # fmt: skip


def written(path, rows, size_bytes):
    """A file of so many bytes."""
    with path.open("w") as file:
        for row in rows(random.Random(5)):
            file.write(row + "\n")
            if file.tell() >= size_bytes:
                return path
    raise AssertionError("rows come without end")


def peak_bytes(path, target):
    """The most memory that Python, numpy and Arrow had at once for an import."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        open_batches(path).save(target)
        return tracemalloc.get_traced_memory()[1] + pool.max_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)


@pytest.mark.parametrize(
    ("rows", "ending", "growth_max"),
    [
        (azure, "csv", GROWTH_MAX_OF_SHORT_ROWS),
        (quoted_azure, "csv", GROWTH_MAX_OF_SHORT_ROWS),
        (conversations, "csv", GROWTH_MAX_OF_SHORT_ROWS),
        (table, "csv", GROWTH_MAX_OF_SHORT_ROWS),
        (chains, "csv", GROWTH_MAX),
        (mooncake, "jsonl", GROWTH_MAX_OF_SHORT_ROWS),
        (agentic, "jsonl", GROWTH_MAX_OF_SHORT_ROWS),
        (bfcl, "jsonl", GROWTH_MAX),
        (lmcache, "jsonl", GROWTH_MAX),
        (otel, "jsonl", GROWTH_MAX_OF_SHORT_ROWS),
    ],
)
def test_peak_memory_does_not_grow_with_the_log(tmp_path, rows, ending, growth_max):
    short = written(tmp_path / f"short.{ending}", rows, 100_000)
    long = written(tmp_path / f"long.{ending}", rows, 400_000)
    open_batches(short).save(tmp_path / "first.trace")  # what is made once is made here
    grown = peak_bytes(long, tmp_path / "long.trace") - peak_bytes(short, tmp_path / "short.trace")
    assert grown < growth_max * 300_000


@pytest.mark.parametrize("rows", [azure, conversations, table, chains, mooncake, lmcache, otel])
def test_what_went_to_disk_comes_back_as_it_was(tmp_path, monkeypatch, rows):
    ending = "csv" if rows in (azure, conversations, table, chains) else "jsonl"
    path = written(tmp_path / f"log.{ending}", rows, 30_000)
    small = open_trace(path)
    for module, name in ((builder, "_BATCH_ROWS"), (spool, "_MEMORY_BYTES"),
                         (record_groups, "_RUN_BYTES"), (csv_blocks, "_BLOCK_BYTES")):  # fmt: skip
        monkeypatch.setattr(module, name, 10**9)
    whole = open_trace(path)
    assert all(small.tables[name].equals(table) for name, table in whole.tables.items())
    assert small.manifest() == whole.manifest()
    assert open_batches(path).save(tmp_path / "a.trace").sha256 == whole.sha256

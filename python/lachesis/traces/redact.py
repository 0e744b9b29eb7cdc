"""Takes out of a trace everything that tells what it was about.

What remains: the structure (sessions, turns, agents, requests, edges, segments, spans), every token
count and length, times counted from the trace's earliest start (no calendar), statuses, classes of
tools, roles, names of models and harnesses, and the quality counts with their reasons.

What goes: instructions and contexts of spawns (their lengths stay; where only the text was there,
its length is estimated), names of files (sessions' and the trace's `source`, skipped files), names
of ignored columns. Names that only have to be told apart become hashes: sessions, workloads (unless
named like their harness), agent types, spawns' tools, prompts. A hash is the same in every trace,
so that traces of one source can be joined later; it follows that somebody who can guess a name can
also check the guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lachesis.traces.quality import Quality
from lachesis.traces.schema import REQUESTS, SEGMENTS, SESSIONS, SPAWNS, TABLES
from lachesis.traces.token_count import CHARACTERS_PER_TOKEN_NAME, estimate_tokens
from lachesis.traces.totals import TraceTotals
from lachesis.traces.trace import Trace

REDACTED: Final = "redacted"


def redact(trace: Trace) -> Trace:
    """The trace without text and private names; see the module for exactly what remains.

    Example:
        >>> from lachesis.traces.builder import TraceBuilder
        >>> builder = TraceBuilder(source="/home/ann/secret.jsonl")
        >>> session = builder.session("secret", workload="merger", harness="h")
        >>> _ = session.request(input_tokens=3, output_tokens=1, start_s=1.7e9)
        >>> clean = redact(builder.build())
        >>> clean.source, clean.sessions["source"][0].as_py(), clean.requests["start_s"][0].as_py()
        ('redacted', 'redacted', 0.0)
    """
    redaction = Redaction(trace.quality, TraceTotals.of(trace.tables).earliest_s)
    return Trace(
        **redaction.tables(trace.tables),
        source=REDACTED,
        tokenizer=trace.tokenizer,
        quality=redaction.quality,
    )


class Redaction:
    """Redacts a trace batch by batch.

    Args:
        quality: the trace's; what the redacted one's is stands in `self.quality`, complete after
            the last batch.
        earliest_s: the trace's earliest start of a request, from which times are counted.
    """

    def __init__(self, quality: Quality, earliest_s: float | None) -> None:
        self.quality = _quality(quality)
        self.earliest_s = earliest_s

    def tables(self, given: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """A batch's tables without text and private names."""
        tables = {name: _renamed_sessions(given[name], TABLES[name]) for name in TABLES}
        sessions = tables["sessions"]
        workloads = [
            workload if workload == harness else _hashed("workload", workload)
            for workload, harness in zip(
                sessions["workload"].to_pylist(), sessions["harness"].to_pylist(), strict=True
            )
        ]
        sessions = _with(sessions, SESSIONS, "workload", workloads)
        tables["sessions"] = _with(sessions, SESSIONS, "source", [REDACTED] * len(sessions))
        if self.earliest_s is not None:
            tables["requests"] = _without_calendar(tables["requests"], self.earliest_s)
        keys = [_hashed_if("prompt", key) for key in tables["segments"]["prefix_key"].to_pylist()]
        tables["segments"] = _with(tables["segments"], SEGMENTS, "prefix_key", keys)
        tables["spawns"] = _spawns(tables["spawns"], self.quality)
        return tables


def _hashed(kind: str, name: str) -> str:
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8, person=kind.encode())
    return f"{kind}-{digest.hexdigest()}"


def _hashed_if(kind: str, name: str | None) -> str | None:
    return None if name is None else _hashed(kind, name)


def _with(table: pa.Table, schema: pa.Schema, name: str, values: Sequence[object]) -> pa.Table:
    index = schema.get_field_index(name)
    field = schema.field(index)
    return table.set_column(index, field, pa.array(values, field.type))


def _renamed_sessions(table: pa.Table, schema: pa.Schema) -> pa.Table:
    encoded = table["session"].combine_chunks().dictionary_encode()
    names = pa.array([_hashed("session", name) for name in encoded.dictionary.to_pylist()],
                     pa.string())  # fmt: skip
    column = names.take(encoded.indices) if len(names) else table["session"]
    return table.set_column(0, schema.field(0), column)


def _without_calendar(requests: pa.Table, earliest_s: float) -> pa.Table:
    for name in ("start_s", "end_s"):
        index = REQUESTS.get_field_index(name)
        counted = pc.round(pc.subtract(requests[name], earliest_s), 6)
        requests = requests.set_column(index, REQUESTS.field(index), counted)
    return requests


def _spawns(spawns: pa.Table, quality: Quality) -> pa.Table:
    for name in ("instruction", "context"):
        texts = spawns[name].to_pylist()
        lengths = spawns[f"{name}_tokens"].to_pylist()
        for row, (text, length) in enumerate(zip(texts, lengths, strict=True)):
            if text is not None and length is None:
                lengths[row] = estimate_tokens(text)
                quality.fill(f"{name}_tokens", CHARACTERS_PER_TOKEN_NAME)
        spawns = _with(spawns, SPAWNS, f"{name}_tokens", lengths)
        spawns = _with(spawns, SPAWNS, name, [None] * len(texts))
    types = [_hashed_if("type", kind) for kind in spawns["agent_type"].to_pylist()]
    spawns = _with(spawns, SPAWNS, "agent_type", types)
    tools = [[_hashed("tool", tool) for tool in each] for each in spawns["tools"].to_pylist()]
    return _with(spawns, SPAWNS, "tools", tools)


def _quality(quality: Quality) -> Quality:
    found = Quality()
    found.replace(quality)
    found.skipped = {f"file {number}": REDACTED for number in range(1, len(quality.skipped) + 1)}
    found.ignored.clear()
    if quality.ignored:
        found.ignored["column or field"] = sum(quality.ignored.values())
    return found

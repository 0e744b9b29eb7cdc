"""A trace that was exported and read again says the same, as far as the format can say it."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_builder_properties import build, scripts

from lachesis.presets import load_latency
from lachesis.results.export import (
    ExportFormat,
    Matching,
    exported_requests,
    request_times,
    write_oracle_general,
    write_requests,
)
from lachesis.results.export.oracle_general import RECORD
from lachesis.simulation import Load
from lachesis.traces import Trace, open_trace

FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
LOADS = st.sampled_from([None, "1", "poisson:1"])
LATENCY = load_latency()
Said = Counter[tuple[int, int, int]]


def exported(trace: Trace, name: ExportFormat, block_tokens: int) -> tuple[Said, set[str], Trace]:
    """What the format says of each request, the agents, and the trace read again."""
    times = request_times(trace, None, LATENCY, seed=1)
    matching = Matching(block_tokens, says_resets=name is ExportFormat.AGENTIC_MOONCAKE)
    said: Said = Counter()
    agents = set()
    for request in exported_requests(trace, times, block_tokens):
        told = matching.add(request)
        if request.output_tokens:
            said[request.input_tokens, request.output_tokens, told] += 1
            agents.add(request.agent)
    with tempfile.TemporaryDirectory() as folder:
        ending = ".csv" if name is ExportFormat.FRONTIER else ".jsonl"
        path = Path(folder) / f"again{ending}"
        write_requests(name, trace, times, path, block_tokens=block_tokens)
        first = path.read_bytes()
        write_requests(name, trace, times, path, block_tokens=block_tokens)
        assert path.read_bytes() == first, "equal traces give equal bytes"
        return said, agents, open_trace(str(path))


def read(trace: Trace) -> Said:
    """Input, output and matched tokens of each request of a trace."""
    columns = (
        trace.spans[name].to_pylist() for name in ("session", "request", "tokens", "written")
    )
    inputs: Counter[tuple[str, int]] = Counter()
    matched: Counter[tuple[str, int]] = Counter()
    for session, request, tokens, written in zip(*columns, strict=True):
        inputs[session, request] += tokens
        matched[session, request] += 0 if written else tokens
    rows = (trace.requests[name].to_pylist() for name in ("session", "request", "output_tokens"))
    return Counter(
        (inputs[session, request], output, matched[session, request])
        for session, request, output in zip(*rows, strict=True)
    )


def has_output(trace: Trace) -> bool:
    return any(trace.requests["output_tokens"].to_pylist())


@FEW
@given(logs=st.lists(scripts, min_size=1, max_size=3), block_tokens=st.sampled_from([1, 4, 16, 64]))
def test_agentic_mooncake(logs: list, block_tokens: int):
    trace = build({f"s{number}": log for number, log in enumerate(logs)})
    if not has_output(trace):
        return
    said, agents, again = exported(trace, ExportFormat.AGENTIC_MOONCAKE, block_tokens)
    # Where every input fits one block any size of block fits the file, and no block is whole.
    assert read(again) == said
    assert len(agents) == len(again) + again.spawns.num_rows
    if all(trace.requests["output_tokens"].to_pylist()):
        assert sorted(again.sessions["session"].to_pylist()) == sorted(
            trace.sessions["session"].to_pylist()
        )


@FEW
@given(logs=st.lists(scripts, min_size=1, max_size=3), block_tokens=st.sampled_from([1, 4, 16, 64]))
def test_frontier(logs: list, block_tokens: int):
    trace = build({f"s{number}": log for number, log in enumerate(logs)})
    if not has_output(trace):
        return
    said, agents, again = exported(trace, ExportFormat.FRONTIER, block_tokens)
    if not any(tokens for tokens, _, _ in said):
        return  # without any hash the format's rows say what each request adds
    assert read(again) == said
    assert set(again.sessions["session"].to_pylist()) == agents


@FEW
@given(logs=st.lists(scripts, min_size=1, max_size=3), block_tokens=st.sampled_from([1, 4, 16]))
def test_mooncake(logs: list, block_tokens: int):
    """Sessions are not in it: what a reader recovers may join or part them."""
    trace = build({f"s{number}": log for number, log in enumerate(logs)})
    if not has_output(trace):
        return
    said, _, again = exported(trace, ExportFormat.MOONCAKE, block_tokens)
    lengths = Counter((tokens, output) for tokens, output, _ in said.elements())
    assert Counter((tokens, output) for tokens, output, _ in read(again).elements()) == lengths


@FEW
@given(logs=st.lists(scripts, min_size=1, max_size=3), block_tokens=st.sampled_from([1, 4, 16]))
def test_hashes_agree_where_contexts_do(logs: list, block_tokens: int):
    """Two requests share a block's number if and only if they share all tokens up to its end."""
    trace = build({f"s{number}": log for number, log in enumerate(logs)})
    times = request_times(trace, None, LATENCY, seed=1)
    contexts = tokens_of(trace)
    up_to: dict[int, tuple[object, ...]] = {}
    known: dict[tuple[object, ...], int] = {}
    for request in exported_requests(trace, times, block_tokens):
        context = contexts[request.row]
        assert len(context) == request.input_tokens
        assert len(request.hash_ids) == -(-len(context) // block_tokens)
        for place, number in enumerate(request.hash_ids):
            start = tuple(context[: (place + 1) * block_tokens])
            assert up_to.setdefault(number, start) == start
            assert known.setdefault(start, number) == number


def tokens_of(trace: Trace) -> list[list[object]]:
    """Every input as a list of tokens: (segment or prompt, number in it), token by token."""
    names = ("session", "segment", "prefix_key")
    keys = {
        (session, segment): ("prompt", key) if key is not None else (session, segment)
        for session, segment, key in zip(
            *(trace.segments[name].to_pylist() for name in names), strict=True
        )
    }
    spans: dict[tuple[str, int], list[tuple[int, int, int, bool]]] = {}
    for session, request, position, segment, tokens, written in zip(
        *(trace.spans[name].to_pylist() for name in trace.spans.schema.names), strict=True
    ):
        spans.setdefault((session, request), []).append((position, segment, tokens, written))
    live: Counter[object] = Counter()
    contexts: list[list[object]] = []
    for session, request, segment, output in zip(
        *(trace.requests[name].to_pylist()
          for name in ("session", "request", "segment", "output_tokens")), strict=True
    ):  # fmt: skip
        context: list[object] = []
        read_up_to: Counter[object] = Counter()
        for _, number, tokens, written in sorted(spans.get((session, request), [])):
            own = (session, number)
            start = live[own] if written else read_up_to[own]
            context += [(keys[own], token) for token in range(start, start + tokens)]
            if written:
                live[own] += tokens
            else:
                read_up_to[own] += tokens
        live[session, segment] += output
        contexts.append(context)
    return contexts


@FEW
@given(logs=st.lists(scripts, min_size=1, max_size=3), load=LOADS)
def test_oracle_general(logs: list, load: str | None):
    trace = build({f"s{number}": log for number, log in enumerate(logs)})
    chosen = None if load is None else Load.parse(load)
    times = request_times(trace, chosen, LATENCY, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream"
        stream = write_oracle_general(trace, times, path, block_tokens=16, block_bytes=3 << 20)
        records = np.fromfile(path, dtype=RECORD)
    assert len(records) == stream.accesses
    assert len(set(records["object"].tolist())) == stream.blocks
    if load is not None:
        assert (np.diff(records["time"].astype(np.int64)) >= 0).all()
    later: dict[int, int] = {}
    for number in range(len(records), 0, -1):
        record = records[number - 1]
        assert record["next_access"] == later.get(int(record["object"]), -1)
        later[int(record["object"])] = number
    held = sum(
        -(-tokens // 16) for tokens in Counter(
            token[0] for context in outputs_too(trace) for token in context
        ).values()
    )  # fmt: skip
    assert stream.blocks == held, "every token that is ever held lies in one of the blocks"


def outputs_too(trace: Trace) -> list[set[object]]:
    """Different tokens that the trace holds: those of inputs, and those of outputs."""
    seen: set[object] = {token for context in tokens_of(trace) for token in context}
    live = Counter(token[0] for token in seen)  # type: ignore[index]
    written = Counter(live)
    spans = trace.spans.filter(trace.spans["written"])
    total: Counter[object] = Counter()
    for session, segment, tokens in zip(
        *(spans[name].to_pylist() for name in ("session", "segment", "tokens")), strict=True
    ):
        total[session, segment] += tokens
    for session, segment, tokens in zip(
        *(trace.requests[name].to_pylist() for name in ("session", "segment", "output_tokens")),
        strict=True,
    ):
        total[session, segment] += tokens
    for own, tokens in total.items():
        if own in written:
            written[own] = max(written[own], tokens)
        elif own not in prompts(trace):
            written[own] = tokens
    return [{(own, token) for own, tokens in written.items() for token in range(tokens)}]


def prompts(trace: Trace) -> set[object]:
    keyed = trace.segments.filter(trace.segments["prefix_key"].is_valid())
    return set(zip(keyed["session"].to_pylist(), keyed["segment"].to_pylist(), strict=True))


@pytest.mark.parametrize("corpus", ["bfclv4-base", "tau3-airline"])
def test_a_corpus_that_diverges(corpus: str):
    trace = open_trace(corpus)
    said, _, again = exported(trace, ExportFormat.AGENTIC_MOONCAKE, 16)
    assert read(again) == said

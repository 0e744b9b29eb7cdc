"""Ratios and footprints of traces that are small enough to add up by hand."""

import msgspec
import numpy as np
import pytest

from lachesis.characterise.ratio import footprints, mean_read_write_ratio, read_write_ratio
from lachesis.characterise.reference_clock import schedule, written_tokens
from lachesis.presets import load_latency
from lachesis.traces import Edge, EdgeKind, Role, TraceBuilder, concat, open_trace


@pytest.fixture
def latency():
    """A user takes 120 s exactly, a prefill 1 s, a token 0.2 s."""
    return msgspec.structs.replace(load_latency(), user_sigma=0.0)


def held(trace, latency, **options):
    return footprints(trace, schedule(trace, latency, seed=0), latency, **options)


def two_rounds(name="a"):
    """Round 1: 40 in, 10 out. A tool takes 3 s. Round 2: 20 more in (one observation), 20 out."""
    builder = TraceBuilder(source="two rounds")
    session = builder.session(name, workload="w", harness="h", stripping="off")
    session.request(input_tokens=40, output_tokens=10, tools=["retrieval"])
    session.request(
        input_tokens=70, appended_tokens=20, output_tokens=20, observations=1, delay_s=3.0
    )
    return builder.build()


def delegation():
    """A lead spawns two workers at once; all have the same prompt, which sessions share."""
    builder = TraceBuilder(source="delegation")
    session = builder.session("a", workload="w", harness="h", stripping="off")
    lead = session.request(
        input_tokens=50, prompt_tokens=33, prefix_key="tools", output_tokens=10,
        tools=["spawn", "spawn"],
    )  # fmt: skip
    session.spawn("long", spawned_by=lead, role=Role.WORKER)
    session.spawn("short", spawned_by=lead, role=Role.WORKER)
    session.request(agent="long", input_tokens=20, output_tokens=100)
    session.request(agent="short", input_tokens=20, output_tokens=10)
    answer = session.request(input_tokens=100, output_tokens=20, observations=2)
    session.returns("long", to=answer)
    session.returns("short", to=answer)
    return builder.build()


def test_the_ratio_sums_the_reads_of_every_step():
    # Round 1 reads 40 ... 49, round 2 reads 70 ... 89, of 40 + 10 + 20 + 20 tokens.
    reads = sum(range(40, 50)) + sum(range(70, 90))
    assert mean_read_write_ratio(two_rounds()) == {"lead": pytest.approx(reads / 90, rel=1e-15)}


def test_a_segment_that_only_others_write_by_reads_alone():
    # The prompt of 33 is read by both requests of the lead: 33 x (10 + 20) of 33 written.
    assert mean_read_write_ratio(delegation())["prompt"] == 30.0


def test_every_segment_counts_once_in_the_mean():
    # Workers: (20 x 100 + 4950) / 120 and (20 x 10 + 45) / 30.
    mean = mean_read_write_ratio(delegation())["worker"]
    assert mean == pytest.approx((6950 / 120 + 245 / 30) / 2, rel=1e-15)


def test_tokens_are_held_from_their_write_to_the_death_of_the_segment(latency):
    # Time: 2 s of output, 3 s tool, 1 s prefill, 4 s of output: 10 s.
    # 40 and 20 tokens from 0 s and 5 s; 10 grow over 0-2 s, 20 over 6-10 s.
    token_s = 40 * 10 + 20 * 5 + 10 * (1 + 8) + 20 * 2
    assert held(two_rounds(), latency)["lead"].tokens_per_session == pytest.approx(token_s / 10)


def test_part_filled_blocks_count_whole(latency):
    # Blocks of 16: 40 tokens hold 3, the 9th output makes 4 at 1.6 s; at 5 s 70 tokens hold 5;
    # the 11th output makes 6 at 8 s.
    block_s = 3 * 1.6 + 4 * (5 - 1.6) + 5 * 3 + 6 * 2
    lead = held(two_rounds(), latency, block_tokens=16)["lead"]
    assert lead.blocks_per_session == pytest.approx(block_s / 10)


def test_blocks_of_one_token_are_tokens(latency):
    # A token takes its block when it begins to be generated: half a token early, for 6 of 10 s.
    lead = held(two_rounds(), latency, block_tokens=1)["lead"]
    assert lead.blocks_per_session == pytest.approx(lead.tokens_per_session + 0.5 * 6 / 10)


def test_parallel_segments_add_up(latency):
    # Workers live 20 s and 2 s; the session takes 2 + 20 + 2 + 4 = 28 s.
    token_s = (20 * 20 + 100 * 10) + (20 * 2 + 10 * 1)
    worker = held(delegation(), latency)["worker"]
    assert worker.tokens_per_session == pytest.approx(token_s / 28)


def test_carried_tokens_are_there_while_the_user_thinks(latency):
    builder = TraceBuilder(source="two turns")
    session = builder.session("a", workload="w", harness="h", stripping="turn")
    session.request(input_tokens=40, output_tokens=10)
    session.request(
        opens_turn=True, input_tokens=30 + 7, carried_tokens=30, appended_tokens=7, output_tokens=5
    )
    found = held(builder.build(), latency)
    # Turns of 2 s and 1 s, 120 s apart: 30 carried tokens for 121 of 123 s.
    assert found["reasoning-stripped"].tokens_per_session == pytest.approx(30 * 121 / 123)
    laden = (40 * 2 + 10 * 1) + (7 * 1 + 5 * 0.5)
    assert found["reasoning-laden"].tokens_per_session == pytest.approx(laden / 123)


def test_shared_prompts_are_counted_once_a_gpu(latency):
    trace = concat([delegation(), delegation()])
    prompt = held(trace, latency)["prompt"]
    assert prompt.tokens_per_session == 0.0
    assert (prompt.shared_tokens, prompt.shared_blocks) == (33, 3)
    assert prompt.node_blocks(sessions=100, gpus=8) == 8 * 3
    assert prompt.node_blocks(sessions=2, gpus=8) == 2 * 3


def test_long_sessions_weigh_by_their_length(latency):
    # 90 token-seconds more are held, over 10 + 2 seconds of sessions.
    builder = TraceBuilder(source="short")
    session = builder.session("b", workload="w", harness="h", stripping="off")
    session.request(input_tokens=40, output_tokens=10)
    found = held(concat([two_rounds(), builder.build()]), latency)
    token_s = (40 * 10 + 20 * 5 + 10 * 9 + 20 * 2) + (40 * 2 + 10 * 1)
    assert found["lead"].tokens_per_session == pytest.approx(token_s / 12)


def test_overlapping_writers_of_a_segment_add_up(latency):
    # Two calls at once into one context: their tokens count from their own times all the same.
    builder = TraceBuilder(source="fork")
    session = builder.session("a", workload="w", harness="h", stripping="off")
    first = session.request(input_tokens=40, output_tokens=10)
    session.spawn("w", spawned_by=first, role=Role.WORKER)
    session.request(agent="w", input_tokens=30, output_tokens=50)
    session.request(
        agent="w", input_tokens=100, output_tokens=20, after=[Edge(first, EdgeKind.SPAWN, 0.0)]
    )
    trace = builder.build()
    clock = schedule(trace, latency, seed=0)
    per_token = 0.0
    death = clock.death_s[np.array(trace.segments["class"].to_pylist()) == "worker"].item()
    rows = [i for i, agent in enumerate(trace.requests["agent"].to_pylist()) if agent == 1]
    outputs = trace.requests["output_tokens"].to_pylist()
    spans = trace.spans.to_pylist()
    for row in rows:
        new = sum(s["tokens"] for s in spans if s["request"] == row and s["written"])
        per_token += new * (death - clock.start_s[row])
        per_token += outputs[row] * (death - (clock.start_s[row] + clock.end_s[row]) / 2)
    found = held(trace, latency)["worker"].tokens_per_session
    assert found == pytest.approx(per_token / clock.end_s.max())


def test_agrees_with_a_walk_over_the_rows_of_a_corpus(latency):
    trace = open_trace("tau3-airline")
    requests, spans = trace.requests.to_pylist(), trace.spans.to_pylist()
    output = {(r["session"], r["request"]): r for r in requests}
    reads: dict[tuple[str, int], float] = {}
    for span in spans:
        length = output[span["session"], span["request"]]["output_tokens"]
        key = (span["session"], span["segment"])
        reads[key] = reads.get(key, 0) + span["tokens"] * length
    for row in requests:
        key = (row["session"], row["segment"])
        reads[key] = reads.get(key, 0) + row["output_tokens"] * (row["output_tokens"] - 1) // 2
    segments = [(s["session"], s["segment"]) for s in trace.segments.to_pylist()]
    expected = np.array([reads.get(key, 0) for key in segments])
    assert read_write_ratio(trace) == pytest.approx(expected / written_tokens(trace), rel=1e-12)


def test_results_do_not_depend_on_the_order_of_sessions(latency):
    trace = open_trace("tau3-airline")
    names = trace.sessions["session"].to_pylist()
    backwards = concat([trace.select([name]) for name in reversed(names)])
    assert mean_read_write_ratio(backwards) == mean_read_write_ratio(trace)
    forwards, found = held(trace, latency), held(backwards, latency)
    for name, footprint in forwards.items():
        blocks = found[name].node_blocks(400, 8)
        assert blocks == pytest.approx(footprint.node_blocks(400, 8), rel=1e-12)

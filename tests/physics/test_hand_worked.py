"""Small replays whose every byte and time was worked out by hand, for every policy.

A step takes 0.5 s, a prefill 1 s, blocks hold 16 tokens and a token 196,608 bytes. Where a table
gives tokens as (HBM, HBF), the test compares bytes.
"""

from __future__ import annotations

import pytest

from lachesis.errors import InputError
from lachesis.policy import POLICIES, choose_policy
from lachesis.policy.ratio import fix_threshold
from lachesis.traces import Edge, EdgeKind, Role, TraceBuilder

from .tiny_nodes import TOKEN_BYTES, Drained, drain, tiny_node


def chosen(name, trace, settings, load_sessions=1):
    policy = choose_policy(name)
    if name == "read-write-ratio":
        return fix_threshold(policy, trace, settings, load_sessions)
    return policy


def in_bytes(tokens):
    return {name: (hbm * TOKEN_BYTES, hbf * TOKEN_BYTES) for name, (hbm, hbf) in tokens.items()}


# One lead, one worker, then a reviewer of it.
#
#   request 0, lead:     prompt 20 + 12 new, 4 out   ready 0, prefill to 1, first token 1.5, end 3
#   request 1, worker:   10 new, 6 out               ready 3, prefill to 4, first 4.5, end 7
#   request 2, reviewer: 8 new, 2 out                ready 7, prefill to 8, first 8.5, end 9
#   request 3, lead:     5 new after 36, 3 out       ready 9, prefill to 10, first 10.5, end 11.5
#
# Written: prompt 20, lead 12 + 4 + 5 + 3 = 24, worker 16, reviewer 10 tokens.


def delegation(worker_output=6):
    builder = TraceBuilder(source="delegation")
    session = builder.session("a", workload="w", harness="h", stripping="off")
    lead = session.request(
        input_tokens=32, prompt_tokens=20, prefix_key="tools", output_tokens=4, tools=["spawn"]
    )
    session.spawn("worker", spawned_by=lead, role=Role.WORKER)
    session.spawn("review", spawned_by=lead, role=Role.REVIEWER)
    worker = session.request(agent="worker", input_tokens=10, output_tokens=worker_output)
    session.request(
        agent="review", input_tokens=8, output_tokens=2,
        after=[Edge(worker, EdgeKind.RETURN, 0.0)],
    )  # fmt: skip
    answer = session.request(input_tokens=41, appended_tokens=5, output_tokens=3)
    session.returns("worker", to=answer)
    session.returns("review", to=answer)
    return builder.build()


# Ranked policies admit every worker until one has finished, and rank nothing else: here they place
# as the deterministic path does.
RANKED = ("lachesis", "lachesis-oracle")

DELEGATION_TIMES = {
    (0, 0): (0.0, 1.0, 1.5, 3.0),
    (0, 1): (3.0, 4.0, 4.5, 7.0),
    (0, 2): (7.0, 8.0, 8.5, 9.0),
    (0, 3): (9.0, 10.0, 10.5, 11.5),
}

# HBM of 3 blocks. hbm-first: 20 tokens of prompt take two, 12 + 4 of the lead the third; all that
# follows goes to flash, since nothing is freed. hbm-only: lead 2 blocks, worker or reviewer 1.
# Ratios (hand-worked below) put all but the prompt below the threshold: 1.73 mean blocks, 3.73
# with the prompt.
DELEGATION_TOKENS = {
    "hbm-first": {"prompt": (20, 0), "lead": (16, 8), "worker": (0, 16), "reviewer": (0, 10)},
    "hbf-only": {"prompt": (0, 20), "lead": (0, 24), "worker": (0, 16), "reviewer": (0, 10)},
    "hbm-only": {"prompt": (0, 20), "lead": (24, 0), "worker": (16, 0), "reviewer": (10, 0)},
    "lachesis-deterministic": {
        "prompt": (0, 20), "lead": (0, 24), "worker": (16, 0), "reviewer": (10, 0),
    },
    "read-write-ratio": {
        "prompt": (0, 20), "lead": (24, 0), "worker": (16, 0), "reviewer": (10, 0),
    },
}  # fmt: skip
DELEGATION_TOKENS |= dict.fromkeys(RANKED, DELEGATION_TOKENS["lachesis-deterministic"])


@pytest.mark.parametrize("name", POLICIES)
def test_delegation(name):
    trace, settings = delegation(), tiny_node(hbm_blocks=3, hbf_blocks=12)
    run = drain(trace, chosen(name, trace, settings), settings)
    assert run.times_s == DELEGATION_TIMES
    assert [run.ttft_s(0, request) for request in range(4)] == [1.5] * 4
    assert [run.tpot_s(0, request, n) for request, n in enumerate((4, 6, 2, 3))] == [0.5] * 4
    assert run.bytes == in_bytes(DELEGATION_TOKENS[name])
    assert run.tokens("rematerialised") == {}
    # 15 steps. The prompt stays where it is cached; hbm-first frees nothing else either.
    assert run.measured["whole"]["steps"] == 15
    kept = {"hbm-first": (0, 12 - 3)}.get(name, (3, 12 - 2))
    assert run.measured["free_blocks"] == [kept]


def test_the_ratios_of_the_delegation():
    # Lead: 12 x 4 + 6, then 21 x 3 + 3, of 24. Worker: 10 x 6 + 15 of 16. Reviewer: 8 x 2 + 1 of
    # 10. Prompt: 20 x (4 + 3) of 20.
    # On the reference clock 0.8 + 1.2 + 0.4 + 0.6 s: lead 1 block for 2.4 s and 2 for 0.6 s,
    # worker 1 for 1.2 s, reviewer 1 for 0.4 s; the prompt's 2 blocks lie there always.
    trace = delegation()
    facts = dict(chosen("read-write-ratio", trace, tiny_node(3, 12)).chosen_for)
    assert facts["mean_rho_by_class"] == {
        "prompt": 7.0, "lead": 120 / 24, "worker": 75 / 16, "reviewer": 17 / 10,
    }  # fmt: skip
    assert facts["mean_blocks_by_class"] == {
        "prompt": 2.0,
        "lead": pytest.approx(3.6 / 3),
        "worker": pytest.approx(1.2 / 3),
        "reviewer": pytest.approx(0.4 / 3),
    }
    assert facts["threshold_rho"] == 5.0


# HBM of 1 block and a worker of 10 + 8 = 18 tokens: its 17th token falls into a second block.
# It ends at 8.0, the reviewer at 10.0, the lead at 12.5.
# hbm-first: the prompt's first 16 tokens. By class: the worker's first block, then (it has
# returned) the reviewer's. The ratios of lead and worker are 5.0 and (80 + 28)/18 = 6.0; the lead
# holds 1.16 mean blocks and does not fit, so only the reviewer (ratio 1.7) is below the threshold.
FALLBACK_TOKENS = {
    "hbm-first": {"prompt": (16, 4), "lead": (0, 24), "worker": (0, 18), "reviewer": (0, 10)},
    "hbf-only": {"prompt": (0, 20), "lead": (0, 24), "worker": (0, 18), "reviewer": (0, 10)},
    "lachesis-deterministic": {
        "prompt": (0, 20), "lead": (0, 24), "worker": (16, 2), "reviewer": (10, 0),
    },
    "read-write-ratio": {
        "prompt": (0, 20), "lead": (0, 24), "worker": (0, 18), "reviewer": (10, 0),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", FALLBACK_TOKENS)
def test_an_hbm_of_one_block(name):
    trace, settings = delegation(worker_output=8), tiny_node(hbm_blocks=1, hbf_blocks=12)
    run = drain(trace, chosen(name, trace, settings), settings)
    assert run.bytes == in_bytes(FALLBACK_TOKENS[name])
    assert run.times_s[0, 1] == (3.0, 4.0, 4.5, 8.0)
    assert run.times_s[0, 3] == (10.0, 11.0, 11.5, 12.5)
    # Blocks wanted in HBM and served by flash: all but one of hbm-first's 7; the worker's second.
    fallbacks = {"hbm-first": 6, "lachesis-deterministic": 1}.get(name, 0)
    assert run.measured["whole"]["fallback_blocks"] == fallbacks


def test_hbm_only_needs_room_for_a_whole_request():
    # The lead's 24 tokens are 2 blocks, and flash must not take one.
    trace, settings = delegation(), tiny_node(hbm_blocks=1, hbf_blocks=12)
    with pytest.raises(InputError, match="session a"):
        drain(trace, choose_policy("hbm-only"), settings)


# Two turns of a harness that strips reasoning.
#
#   turn 0: prompt 16 + 24 new, 8 out     ready 0, prefill to 1, first token 1.5, end 5
#   at 5:   20 tokens are written that the next turn carries; the turn's 32 end
#   turn 1: ready 15 (the user takes 10 s), 4 new tokens, prefill to 16, first 16.5, 5 out, end 18.5
#
# Written: prompt 16, laden 24 + 8 and 4 + 5, stripped 20 tokens.
# HBM of 3 blocks. hbm-first: prompt 1, laden 2, all else to flash. hbm-only: laden 2 + stripped 2
# do not fit at once: the turn's 2 blocks end as the carried 20 tokens are written, then the next
# turn's 9 take the third. Ratios: laden (24 x 8 + 28)/32 = 6.875 and (4 x 5 + 10)/9 = 3.33, mean
# 5.1; prompt 13; stripped 5. In order stripped, laden, prompt.
TURNS_TOKENS = {
    "hbm-first": {"prompt": (16, 0), "reasoning-laden": (32, 9), "reasoning-stripped": (0, 20)},
    "hbf-only": {"prompt": (0, 16), "reasoning-laden": (0, 41), "reasoning-stripped": (0, 20)},
    "hbm-only": {"prompt": (0, 16), "reasoning-laden": (41, 0), "reasoning-stripped": (20, 0)},
    "lachesis-deterministic": {
        "prompt": (0, 16), "reasoning-laden": (41, 0), "reasoning-stripped": (0, 20),
    },
    "read-write-ratio": {
        "prompt": (0, 16), "reasoning-laden": (41, 0), "reasoning-stripped": (20, 0),
    },
}  # fmt: skip
TURNS_TOKENS |= dict.fromkeys(RANKED, TURNS_TOKENS["lachesis-deterministic"])


def two_turns():
    builder = TraceBuilder(source="two turns")
    session = builder.session("a", workload="w", harness="h", stripping="turn")
    session.request(input_tokens=40, prompt_tokens=16, prefix_key="tools", output_tokens=8)
    session.request(
        opens_turn=True, input_tokens=40, carried_tokens=20, appended_tokens=4, output_tokens=5,
        delay_s=10.0,
    )  # fmt: skip
    return builder.build()


@pytest.mark.parametrize("name", POLICIES)
def test_two_turns(name):
    trace, settings = two_turns(), tiny_node(hbm_blocks=3, hbf_blocks=8)
    run = drain(trace, chosen(name, trace, settings), settings)
    assert run.times_s == {(0, 0): (0.0, 1.0, 1.5, 5.0), (0, 1): (15.0, 16.0, 16.5, 18.5)}
    assert run.bytes == in_bytes(TURNS_TOKENS[name])
    assert run.tokens("rematerialised") == {}


# Two sessions with the same prompt: on one GPU one copy, on two GPUs two.
#
#   each: prompt 20 + 12 new, 4 out. Both ready at 0, prefilled at 1, ended at 3.


def twins():
    builder = TraceBuilder(source="twins")
    for name in ("a", "b"):
        session = builder.session(name, workload="w", harness="h", stripping="off")
        session.request(input_tokens=32, prompt_tokens=20, prefix_key="tools", output_tokens=4)
    return builder.build()


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("gpus", [1, 2])
def test_a_prompt_is_written_once_a_gpu(name, gpus):
    trace, settings = twins(), tiny_node(8, 8, gpus=gpus)
    run = drain(trace, chosen(name, trace, settings, 2), settings)
    assert run.times_s == {(draw, 0): (0.0, 1.0, 1.5, 3.0) for draw in (0, 1)}
    hbm_of_lead = 0 if name in ("hbf-only", "lachesis-deterministic", *RANKED) else 32
    # read-write-ratio: 4 or 8 mean blocks of 8 or 16, everything fits.
    hbm_of_prompt = 20 * gpus if name in ("hbm-first", "read-write-ratio") else 0
    assert run.bytes == in_bytes(
        {
            "prompt": (hbm_of_prompt, 20 * gpus - hbm_of_prompt),
            "lead": (hbm_of_lead, 32 - hbm_of_lead),
        }
    )


@pytest.mark.parametrize("name", POLICIES)
def test_a_full_gpu_makes_the_next_request_wait(name):
    # One slot: the second session's request is admitted when the first has ended, at 3.0.
    trace, settings = twins(), tiny_node(8, 8, slots=1)
    run = drain(trace, chosen(name, trace, settings, 2), settings)
    assert run.times_s == {(0, 0): (0.0, 1.0, 1.5, 3.0), (1, 0): (0.0, 3.0, 3.5, 5.0)}
    assert (run.ttft_s(1, 0), run.tpot_s(1, 0, 4)) == (3.5, 0.5)


# hbm-first and a memory of 1 + 3 blocks: the first session fills 3 (40 + 8 tokens) and ends at 5;
# the second comes then, finds one block free and takes the first one's last two, both in flash.


def in_turn():
    builder = TraceBuilder(source="in turn")
    for name in ("a", "b"):
        session = builder.session(name, workload="w", harness="h", stripping="off")
        session.request(input_tokens=40, output_tokens=8)
    return builder.build()


def test_hbm_first_takes_the_oldest_tail_when_nothing_is_free():
    run = drain(in_turn(), choose_policy("hbm-first"), tiny_node(1, 3), load_sessions=1)
    assert run.times_s == {(0, 0): (0.0, 1.0, 1.5, 5.0), (1, 0): (5.0, 6.0, 6.5, 10.0)}
    assert run.bytes == in_bytes({"lead": (16, 32 + 48)})
    assert run.measured["whole"]["reclaimed_blocks"] == 2
    assert run.measured["free_blocks"] == [(0, 0)]


@pytest.mark.parametrize("name", ["hbf-only", "lachesis-deterministic"])
def test_boundary_policies_reuse_what_the_session_s_end_has_freed(name):
    run = drain(in_turn(), choose_policy(name), tiny_node(1, 3), load_sessions=1)
    assert run.bytes == in_bytes({"lead": (0, 96)})
    assert run.measured["whole"]["reclaimed_blocks"] == 0
    assert run.measured["free_blocks"] == [(1, 3)]


# hbm-first and what comes back too late: the first session waits 20 s for its user while a second
# one (ready at 0 as well) needs its blocks. Memory of 1 + 3 blocks; a: 20 + 4 tokens, 2 blocks;
# b: 36 + 4, 3 blocks: the first 32 + 4 tokens of both need 2 + 3 blocks and do not fit together.
#
#   a, request 0: ready 0, prefill to 1, first 1.5, end 3: HBM 16, HBF 8 tokens
#   b, request 0: ready 0, prefilled at 1, but a's 2 blocks are in use: admitted at 3, takes the
#                 free 2 and a's tail block (8 tokens of flash), first 3.5, end 5
#   a, request 1: ready 3 + 20 = 23: 8 tokens are gone, 6 are new; prefill to 24, takes b's tail
#                 block; first 24.5, 2 out, end 25. Context 24 + 6 + 2 = 32: 2 blocks.


def test_what_was_reclaimed_is_written_again_and_counted():
    builder = TraceBuilder(source="comes back")
    first = builder.session("a", workload="w", harness="h", stripping="off")
    first.request(input_tokens=20, output_tokens=4)
    first.request(input_tokens=30, appended_tokens=6, output_tokens=2, delay_s=20.0)
    second = builder.session("b", workload="w", harness="h", stripping="off")
    second.request(input_tokens=36, output_tokens=4)
    run: Drained = drain(builder.build(), choose_policy("hbm-first"), tiny_node(1, 3))
    assert run.times_s == {
        (0, 0): (0.0, 1.0, 1.5, 3.0),
        (1, 0): (0.0, 3.0, 3.5, 5.0),
        (0, 1): (23.0, 24.0, 24.5, 25.0),
    }
    assert run.ttft_s(1, 0) == 3.5
    assert run.bytes == in_bytes({"lead": (16, 4 + 4 + 40 + 6 + 2)})
    assert run.tokens("rematerialised") == {"lead": (0, 8)}
    assert run.measured["whole"]["reclaimed_blocks"] == 2

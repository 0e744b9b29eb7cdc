"""Cases worked out by hand, for the oracle and the engine; every number stands in a comment first.

Unless a case says otherwise: one GPU, blocks of 4 tokens, prefill of 100 ps, steps of 10 ps for one
running request and 16 ps for two.
"""

from __future__ import annotations

from typing import Any

import pytest

from .by_hand import Replay, times, tokens
from .case import MemoryTooSmallError, Request, Segment, Session, StepCost


def one_request(written: int, output_tokens: int, start_ps: int = 0) -> Session:
    request = Request([], [(0, written)], 0, output_tokens)
    return Session([request], [Segment("lead")], start_ps)


def test_one_request_reads_one_token_more_each_step(replay: Replay):
    # Prefill ends at 100. Steps read 6, 7, 8 tokens: 10 + 6 + 2 + 3 = 21, then 22, then 23.
    # 6 tokens take 2 blocks, tokens 7 and 8 fill the second, token 9 takes a third.
    cost = StepCost(local_ps=[0, 10], shared_ps=[0, 2], context_ps=1, overhead_ps=3)
    result = replay(one_request(6, 3), cost=cost, slots=1)
    assert result.requests == {(0, 0): times(0, 100, 121, 166)}
    assert result.end_ps == 166
    assert result.steps == 3
    assert result.materialised == tokens(lead=[9, 0])
    assert result.free == [[7, 10]]  # hbm-first frees nothing at the session's end


def test_boundary_policies_free_everything_at_the_end(replay: Replay):
    result = replay(one_request(6, 3), policy="lachesis-deterministic")
    assert result.materialised == tokens(lead=[0, 9])
    assert result.free == [[10, 10]]


def test_a_request_joins_at_the_next_step_boundary(replay: Replay):
    # A runs alone 100-110. B is prefilled at 105 and joins at 110: steps 110-126 and 126-142.
    result = replay(one_request(4, 3), one_request(2, 2, start_ps=5))
    assert result.requests == {(0, 0): times(0, 100, 110, 142), (1, 0): times(5, 110, 126, 142)}
    assert result.steps == 3


def test_gpus_step_together_at_the_pace_of_the_slowest(replay: Replay):
    # A on GPU 0 and B on GPU 1. A alone: 10 + 1. Then both: max(10 + 2·5, 10 + 2·2) + 3 = 23,
    # and max(10 + 2·6, 10 + 2·3) + 3 = 25. A's context is 4, so its first step costs 10 + 8 + 1.
    cost = StepCost(local_ps=[0, 10, 16], shared_ps=[0, 1, 3, 4, 5], context_ps=2)
    result = replay(one_request(4, 3), one_request(2, 2, start_ps=5), gpus=2, cost=cost)
    assert result.requests[0, 0] == times(0, 100, 119, 167)
    assert result.requests[1, 0] == times(5, 119, 142, 167)


def test_slots_bound_the_running_requests(replay: Replay):
    # One slot: B is prefilled at 105 but waits for A's end at 130.
    result = replay(one_request(4, 3), one_request(2, 2, start_ps=5), slots=1)
    assert result.requests[1, 0] == times(5, 130, 140, 150)


def test_a_shared_prompt_is_written_once_and_kept_unheld(replay: Replay):
    # A and B are both ready before the prompt is there: both take a prefill, A (in order) writes
    # the 8 tokens at 100, B finds them at 110. C starts at 500, when nobody holds the prompt, and
    # finds it cached; its 2 own tokens take a prefill. One token each.
    def session(start_ps: int) -> Session:
        request = Request([], [(0, 8), (1, 2)], 1, 1)
        return Session([request], [Segment("prompt", prefix_key=7), Segment("lead")], start_ps)

    result = replay(session(0), session(1), session(500), policy="lachesis-deterministic")
    assert result.requests == {
        (0, 0): times(0, 100, 110, 110),
        (1, 0): times(1, 110, 120, 120),
        (2, 0): times(500, 600, 610, 610),
    }
    assert result.materialised == tokens(prompt=[0, 8], lead=[0, 9])
    assert result.rematerialised == tokens()
    assert result.free == [[10, 8]]


def test_a_cached_prompt_on_the_gpu_needs_no_prefill(replay: Replay):
    # The second session reads the cached prompt only: it is queued at once, at 500.
    segments = [Segment("prompt", prefix_key=7), Segment("lead")]
    session = Session([Request([], [(0, 8)], 1, 1)], segments)
    later = Session(session.requests, segments, start_ps=500)
    result = replay(session, later, policy="lachesis-deterministic")
    assert result.requests[1, 0] == times(500, 500, 510, 510)


TURNS = Session(
    requests=[
        Request([], [(0, 4), (1, 3)], 1, 2),
        Request([(0, "user", 50)], [(0, 0), (2, 5)], 3, 1),
    ],
    segments=[
        Segment("prompt"),
        Segment("reasoning-laden", closed_by="turn_end", closed_after=0),
        Segment("reasoning-stripped"),
        Segment("reasoning-laden", closed_by="turn_end", closed_after=1),
    ],
)


def test_the_turn_end_writes_what_is_carried(replay: Replay):
    # Steps read 7 and 8: 100-117-135. At 135 the laden segment goes and the 5 carried tokens are
    # written. Ready at 185 with nothing to write: queued and admitted at 185; reads 4 + 5: 19.
    cost = StepCost(local_ps=[0, 10], shared_ps=[0, 0], context_ps=1)
    result = replay(TURNS, policy="lachesis-deterministic", cost=cost, slots=1)
    assert result.requests == {(0, 0): times(0, 100, 117, 135), (0, 1): times(185, 185, 204, 204)}
    assert result.materialised == tokens(
        prompt=[0, 4], reasoning_laden=[6, 0], reasoning_stripped=[0, 5]
    )


def test_the_next_message_writes_what_is_carried(replay: Replay):
    # As above, but the 5 tokens are part of the second request's suffix: prefill 185-285.
    cost = StepCost(local_ps=[0, 10], shared_ps=[0, 0], context_ps=1)
    settings: dict[str, Any] = {"cost": cost, "slots": 1, "turn_end": "next-message"}
    result = replay(TURNS, policy="lachesis-deterministic", **settings)
    assert result.requests[0, 1] == times(185, 285, 304, 304)


@pytest.mark.parametrize(("hbf_blocks", "admitted"), [(6, 176), (5, 276)])
def test_a_carried_write_that_cannot_be_had_joins_the_suffix(
    replay: Replay, hbf_blocks: int, admitted: int
):
    # A alone 100-110, with B 110-126; then A's turn ends. Held at that instant: the prompt's block,
    # B's 2, and A's laden 2 until they go. The 9 carried tokens need 3 blocks: there with 6 blocks,
    # not with 5. B is gone at 146. A2 is ready at 176, and its token takes one more block.
    requests = [
        Request([], [(0, 4), (1, 3)], 1, 2),
        Request([(0, "user", 50)], [(0, 0), (2, 9)], 3, 1),
    ]
    turns = Session(requests, TURNS.segments)
    result = replay(turns, one_request(5, 3, 5), policy="hbf-only", hbf_blocks=hbf_blocks)
    assert result.requests == {
        (0, 0): times(0, 100, 110, 126),
        (1, 0): times(5, 110, 126, 146),
        (0, 1): times(176, admitted, admitted + 10, admitted + 10),
    }


def test_what_is_being_carried_is_not_reclaimed(replay: Replay):
    # hbm-first with 3 + 1 blocks. At 120 the list is laden (2 blocks), prompt (1); one HBF block is
    # free. The 5 carried tokens take it (fallback), then the laden segment's tail, in HBM. At 170
    # all is resident; the next turn's first token takes the laden segment's other block.
    result = replay(TURNS, hbm_blocks=3, hbf_blocks=1)
    assert result.requests[0, 1] == times(170, 170, 180, 180)
    assert result.materialised == tokens(
        prompt=[4, 0], reasoning_laden=[6, 0], reasoning_stripped=[1, 4]
    )
    assert result.rematerialised == tokens()
    assert (result.fallbacks, result.reclaimed_blocks) == (1, 2)


def test_a_block_falls_back_and_is_flushed(replay: Replay):
    # One HBM block takes tokens 1-4, HBF the rest: 2 written, 2 + 1 decoded. Every step writes to
    # HBF: 10 + 7 each. With synchronous landing the first also flushes the 2 written tokens.
    cost = StepCost(local_ps=[0, 10], shared_ps=[0, 0], flush_ps=7)
    memory: dict[str, Any] = {"hbm_blocks": 1, "hbf_blocks": 3, "cost": cost, "slots": 1}
    result = replay(one_request(6, 3), **memory)
    assert result.requests[0, 0] == times(0, 100, 117, 151)
    assert result.materialised == tokens(lead=[4, 5])
    assert result.fallbacks == 2
    landed = replay(one_request(6, 3), landing="sync", **memory)
    assert landed.requests[0, 0] == times(0, 100, 131, 165)


@pytest.mark.parametrize(("window_kind", "ends"), [("sliding", 166), ("chunked", 145)])
def test_windowed_layers_read_less(replay: Replay, window_kind: str, ends: int):
    # Contexts of 6, 7, 8 and a window of 4. Sliding: 4, 4, 4. Chunked: 2, 3, 0.
    # 100 + 3·10 + 3·12 = 166; 100 + 3·10 + 3·5 = 145.
    cost = StepCost([0, 10], [0, 0], window_ps=3, window=4, window_kind=window_kind)
    assert replay(one_request(6, 3), cost=cost, slots=1).end_ps == ends


def test_reclaim_takes_the_tail_of_the_least_recent(replay: Replay):
    # Memory of 4 + 1 blocks. A1 writes prompt 4 (HBM) and lead 7 + 1 (HBM, HBM), ends at 110; it
    # is unpinned lead first. B at 600 writes 12: HBM, HBF (fallback 1), then A's lead loses its
    # top block (reclaim 1): HBM. Its token 13 takes the lead's other block (reclaim 2). A2, ready
    # at 1110, finds its prompt and re-materialises the lead's 8: B's two top blocks (3, 4), both
    # HBM; its token takes B's next (5), which is HBF, so it falls back (2).
    context = [Segment("prompt"), Segment("lead")]
    first = Request([], [(0, 4), (1, 7)], 1, 1)
    second = Request([(0, "tool", 1000)], [(0, 0), (1, 0)], 1, 1)
    result = replay(
        Session([first, second], context), one_request(12, 1, 500), hbm_blocks=4, hbf_blocks=1
    )
    assert result.requests == {
        (0, 0): times(0, 100, 110, 110),
        (1, 0): times(500, 600, 610, 610),
        (0, 1): times(1110, 1210, 1220, 1220),
    }
    assert result.rematerialised == tokens(lead=[8, 0])
    # lead: A1 8 in HBM; B 4, 4 in HBF, 4, 1; A2 1 in HBF.
    assert result.materialised == tokens(prompt=[4, 0], lead=[17, 5])
    assert (result.reclaimed_blocks, result.fallbacks) == (5, 2)
    assert result.free == [[0, 0]]


def test_the_newest_admitted_is_preempted_and_keeps_its_ready_time(replay: Replay):
    # 3 HBF blocks. A: 7 tokens, 2 blocks; B: 1 token, 1 block. Step 100-116: both have room. At
    # 116 A needs a third block: B, the newest, is preempted with 1 of 4 tokens done. A runs alone
    # to 136. B is queued at 216, re-materialises 1 + 1 tokens and runs 3 steps: 246.
    result = replay(one_request(7, 3), one_request(1, 4), policy="hbf-only", hbf_blocks=3)
    assert result.requests == {(0, 0): times(0, 100, 116, 136), (1, 0): times(0, 100, 116, 246)}
    assert result.preemptions == 1
    assert result.rematerialised == tokens(lead=[0, 2])
    assert result.materialised == tokens(lead=[0, 15])


def test_a_request_preempts_itself_if_it_is_the_newest(replay: Replay):
    # 3 HBF blocks. A takes 1 and, for its token, 2; B's token finds none: B goes at 100 without
    # having run. A's fifth token (at 140) takes the block that B left. B: 200-210.
    result = replay(one_request(4, 5), one_request(4, 1), policy="hbf-only", hbf_blocks=3)
    assert result.requests == {(0, 0): times(0, 100, 110, 150), (1, 0): times(0, 100, 210, 210)}
    assert result.preemptions == 1
    assert result.rematerialised == tokens(lead=[0, 4])


def waiting_session() -> Session:
    first = Request([], [(0, 4)], 0, 1)
    return Session([first, Request([(0, "tool", 10)], [(0, 8)], 0, 1)], [Segment("lead")])


def test_alone_and_without_a_block_the_newest_other_session_loses(replay: Replay):
    # 4 HBF blocks. A1: 5 tokens, 2 blocks, ends at 110. B (9 tokens) is admitted at 110 with the
    # other 2; its token needs a third: A loses its 2. B ends at 120. A2, ready at 120,
    # re-materialises 5 and writes 8: prefill to 220, ends at 230.
    result = replay(waiting_session(), one_request(8, 1, 1), policy="hbf-only", hbf_blocks=4)
    assert result.session_losses == 1
    assert result.preemptions == 0
    assert result.requests[1, 0] == times(1, 110, 120, 120)
    assert result.requests[0, 1] == times(120, 220, 230, 230)
    assert result.rematerialised == tokens(lead=[0, 5])


def test_the_head_of_the_queue_takes_blocks_only_when_nothing_can_happen(replay: Replay):
    # As above, but B needs 3 blocks at its admission. A2 is ready at 120 and prefilled at 220: a
    # timer of the GPU is pending until then, and B waits. At 220 nothing runs and no timer is
    # pending: A loses its blocks, B runs 220-230 (its token takes the fourth block), then A2.
    result = replay(waiting_session(), one_request(12, 1, 1), policy="hbf-only", hbf_blocks=4)
    assert result.session_losses == 1
    assert result.requests[1, 0] == times(1, 220, 230, 230)
    assert result.requests[0, 1] == times(120, 230, 240, 240)


def test_the_head_is_tried_again_at_the_step_after_blocks_were_lost(replay: Replay):
    # 5 HBF blocks. At 100 S1 takes 2 and is over; A takes 2, and a third for its token 9. C needs
    # one and waits from 105. A's token 13, at 140, finds none: S loses 2, A takes 1. C is admitted
    # at the next boundary, 150, and both end at 166. S2: 8 tokens again, 1200-1210.
    idle = Session(
        [Request([], [(0, 8)], 0, 0), Request([(0, "user", 1000)], [(0, 0)], 0, 1)],
        [Segment("lead")],
    )
    result = replay(
        idle, one_request(8, 6), one_request(1, 1, start_ps=5), policy="hbf-only", hbf_blocks=5
    )
    assert result.requests == {
        (0, 0): {"ready": 0, "admitted": 100, "end": 100},
        (1, 0): times(0, 100, 110, 166),
        (2, 0): times(5, 150, 166, 166),
        (0, 1): times(1100, 1200, 1210, 1210),
    }
    assert (result.session_losses, result.preemptions) == (1, 0)
    assert result.rematerialised == tokens(lead=[0, 8])


def test_a_session_that_ends_is_replaced_at_once(replay: Replay):
    # Slots of the loop start at 0 and 40·1//2 = 20. Draw 0 ends at 110; draw 2 arrives then, is
    # prefilled at 210 and runs to 230. Draw 1: 120-130. With two GPUs nothing else changes.
    for gpus in (1, 2):
        result = replay(
            one_request(1, 1),
            one_request(1, 2),
            draws=[0, 0, 1],
            arrivals=("closed", 2, 40),
            gpus=gpus,
        )
        assert result.requests == {
            (0, 0): times(0, 100, 110, 110),
            (1, 0): times(20, 120, 130, 130),
            (2, 0): times(110, 210, 220, 230),
        }


def test_a_request_without_output_ends_as_it_is_admitted(replay: Replay):
    # A1 is prefilled at 105, admitted and over at 110, when B's step ends. A2 is ready at 110 with
    # nothing to write, but this boundary's admissions are under way: it joins at 120. B runs
    # 100-110-120, then both to 136, and B alone to 146.
    requests = [Request([], [(0, 4)], 0, 0), Request([(0, "tool", 0)], [(0, 0)], 0, 1)]
    result = replay(one_request(1, 4), Session(requests, [Segment("lead")], start_ps=5))
    assert result.requests == {
        (0, 0): times(0, 100, 110, 146),
        (1, 0): {"ready": 5, "admitted": 110, "end": 110},
        (1, 1): times(110, 120, 136, 136),
    }


def test_requests_queued_at_one_instant_stand_in_order(replay: Replay):
    # 4 HBF blocks. B runs 100-110-120-136 in one. A1 is prefilled at 110, takes one and is over; C,
    # prefilled at 110 too, needs 3. A2 is ready at 110 after C was queued, but stands before it:
    # it joins at 120, and its token takes a block. C has its 3 at 136, and a fourth for its token.
    without_output = Session(
        [Request([], [(0, 4)], 0, 0), Request([(0, "tool", 0)], [(0, 0)], 0, 1)],
        [Segment("lead")],
        start_ps=10,
    )
    result = replay(
        one_request(1, 3), without_output, one_request(12, 1, 10), policy="hbf-only", hbf_blocks=4
    )
    assert result.requests == {
        (0, 0): times(0, 100, 110, 136),
        (1, 0): {"ready": 10, "admitted": 110, "end": 110},
        (1, 1): times(110, 120, 136, 136),
        (2, 0): times(10, 136, 146, 146),
    }


def test_a_sub_agent_context_is_freed_at_its_return(replay: Replay):
    # The worker's 3 + 2 tokens hold 2 HBM blocks until 220, when it returns; the lead goes on.
    # Lead 1: 100-110. Worker: ready 110, 210-220-230. Lead 2: ready 235 (1 to write): 335-345.
    session = Session(
        requests=[
            Request([], [(0, 2)], 0, 1),
            Request([(0, "spawn", 0)], [(1, 3)], 1, 2),
            Request([(0, "tool", 0), (1, "return", 5)], [(0, 1)], 0, 1),
        ],
        segments=[Segment("lead"), Segment("worker", None, "subagent_return", 1)],
    )
    result = replay(session, policy="lachesis-deterministic", hbm_blocks=2, hbf_blocks=2)
    assert result.requests[0, 1] == times(110, 210, 220, 230)
    assert result.requests[0, 2] == times(235, 335, 345, 345)
    assert result.materialised == tokens(lead=[0, 5], worker=[5, 0])
    assert result.fallbacks == 0
    assert result.free == [[2, 2]]


def test_a_memory_that_cannot_hold_one_request_is_an_error(replay: Replay):
    # 6 + 3 tokens need 3 blocks.
    with pytest.raises(MemoryTooSmallError):
        replay(one_request(6, 3), hbm_blocks=1, hbf_blocks=1)

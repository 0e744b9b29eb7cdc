"""What an engine meets at the public surface; the rules themselves are tested in Rust."""

from __future__ import annotations

import threading

import pytest

from lachesis import placement as lp
from lachesis.errors import InputError, LachesisError
from lachesis.placement import Placement
from lachesis.policy import policy_names

ERRORS = [
    kind for kind in vars(lp).values() if isinstance(kind, type) and issubclass(kind, Exception)
]


def deterministic(hbm_blocks: int = 4, hbf_blocks: int = 8, **options) -> Placement:
    return Placement(hbm_blocks, hbf_blocks, policy="lachesis-deterministic", **options)


@pytest.mark.parametrize("kind", ERRORS)
def test_errors_form_one_tree(kind):
    assert issubclass(kind, LachesisError)


def test_names_may_be_numbers_or_text_and_are_not_confused():
    placement = deterministic()
    placement.open(1, "worker", session=0)
    placement.open("1", "worker", session="0")
    placement.commit(1, [0])
    placement.commit("1", [1])
    assert placement.boundary("session_end", session=0).closed == [1]
    assert placement.boundary("session_end", session="0").closed == ["1"]
    with pytest.raises(TypeError, match="int or a str"):
        placement.open(1.5, "worker", session=0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda p: p.plan("x", 1), lp.UnknownSegment, 'segment "x" is unknown: open it first'),
        (lambda p: p.plan("w", -1), InputError, "blocks = -1, must be at least 0"),
        (lambda p: p.plan("w", 99), lp.OutOfBlocks, "99 asked for in HBM, 11 free"),
        (lambda p: p.commit("w", [-1]), lp.UnknownBlock, "block -1 is unknown"),
        (lambda p: p.commit("w", [2**70]), lp.UnknownBlock, "is unknown"),
        (lambda p: p.plan("w", 2**70), InputError, "below 2^32"),
        (lambda p: p.plan(2**70, 1), InputError, "name = 1180591620717411303424, must fit"),
        (lambda p: p.plan("w", 1, generation=-1), lp.UnknownSegment, '"w"'),
        (lambda p: p.plan("w", 1, generation=2), lp.UnknownSegment, '"w"'),
        (lambda p: p.commit("w", [12]), lp.UnknownBlock, "ids run from 0 to 11"),
        (lambda p: p.commit("w", [0]), lp.BlockHeld, "adopt it to share it"),
        (lambda p: p.commit("w", [2, 2]), lp.BlockHeld, "named twice"),
        (lambda p: p.adopt("w", [5]), lp.UnknownBlock, "nothing was written"),
        (lambda p: p.adopt("w", [5], cached=True), lp.UnknownBlock, "nothing was written"),
        (lambda p: p.adopt("w", [0]), lp.BlockHeld, "holds it already"),
        (lambda p: p.free("w", [1]), lp.DoubleFree, "block 1 is freed twice"),
        (lambda p: p.open("w", "worker", session="s"), lp.DuplicateSegment, "live already"),
        (lambda p: p.open("v", "wurker", session="s"), InputError, "must be one of prompt, "),
        (lambda p: p.open("v", "lead", session="s", closes="end"), InputError, "turn_end, "),
        (lambda p: p.open("v", "lead", session="s", parent="x"), lp.UnknownSegment, '"x"'),
        (lambda p: p.open("v", "lead", session="t", parent="w"), lp.WrongSession, 'not to "t"'),
        (lambda p: p.boundary("end", session="s"), InputError, "boundary = "),
        (lambda p: p.boundary("session_end", session="x"), lp.UnknownSession, '"x"'),
        (lambda p: p.boundary("subagent_return", session="s"), lp.WrongBoundary, "must name"),
        (
            lambda p: p.boundary("turn_end", session="s", segment="w"),
            lp.WrongBoundary,
            'turn_end does not close segment "w" of kind worker',
        ),
        (lambda p: p.finish_request("x"), lp.UnknownRequest, "start it first"),
        (lambda p: p.abort("x"), lp.UnknownRequest, "start it first"),
        (lambda p: p.start_request("r", ["x"]), lp.UnknownSegment, '"x"'),
        (lambda p: p.extend("w", 1), lp.PlacementError, "give Placement one"),
        (lambda p: p.spawn("v", {"role": "boss"}, session="s"), InputError, "role = boss"),
        (lambda p: p.spawn("v", {"task": "x"}, session="s"), InputError, "record = task"),
        (lambda p: p.tier_of(99), lp.UnknownBlock, "block 99"),
    ],
)
def test_a_refused_call_says_why_in_one_line_and_changes_nothing(call, error, message):
    placement = deterministic()
    placement.open("w", "worker", session="s")
    placement.commit("w", [0])
    before = placement.stats()
    with pytest.raises(error) as refused:
        call(placement)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert placement.stats() == before
    placement.check()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hbm_blocks": -1}, "hbm_blocks = -1"),
        ({"hbm_blocks": 2**31}, "fewer than 2147483648"),
        ({"block_tokens": 0}, "block_tokens = 0"),
        ({"reap_after_s": 0.0}, "reap_after_s = 0"),
        ({"policy": "lachesys"}, "did you mean lachesis"),
        ({"policy": "lachesis-oracle"}, "nobody knows at a spawn"),
        ({"policy": "read-write-ratio"}, "fix_threshold"),
        ({"predictor": object()}, "must have a method score"),
    ],
)
def test_wrong_settings_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Placement(**{"hbm_blocks": 4, "hbf_blocks": 8, **arguments})


@pytest.mark.parametrize(
    "policy",
    [name for name in policy_names() if name not in ("lachesis-oracle", "read-write-ratio")],
)
def test_every_policy_that_an_engine_can_use_runs(policy):
    placement = Placement(4, 8, policy=policy)
    placement.spawn("w", {}, session="s")
    block = 0 if placement.plan("w", 1) == ["hbm"] else 4
    placement.commit("w", [block])
    placement.boundary("session_end", session="s")
    placement.reclaim(1)
    assert placement.stats().free_blocks == placement.stats().total_blocks


def test_idle_segments_are_reaped_by_the_callers_clock():
    now_s = [0.0]
    placement = deterministic(reap_after_s=30.0, clock=lambda: now_s[0])
    placement.open("w", "worker", session="s")
    placement.commit("w", [0])
    now_s[0] = 29.0
    assert placement.reap().closed == []
    now_s[0] = 31.0
    assert placement.reap().freed == [0]
    with pytest.raises(lp.SegmentClosed):
        placement.plan("w", 1)
    assert placement.stats().reaped == 1


def test_events_that_come_twice_are_taken_once():
    placement = deterministic()
    first = placement.open("w", "worker", session="s", event=1)
    assert placement.open("w", "worker", session="s", event=1) == first
    for _ in range(2):
        placement.commit("w", [0], event=2)
    assert placement.boundary("session_end", session="s", event=3).freed == [0]
    assert placement.boundary("session_end", session="s", event=3).ignored == "repeated"
    assert placement.boundary("session_end", session="s").ignored == "late"
    stats = placement.stats()
    assert (stats.repeated_events, stats.late_events) == (3, 1)


def test_a_harness_may_keep_its_reasoning():
    placement = deterministic(turn_end_strips=False)
    placement.open("turn", "reasoning-laden", session="s")
    assert placement.plan("turn", 1) == ["hbf"]
    assert placement.boundary("turn_end", session="s").ignored == "keeps-reasoning"
    assert placement.boundary("session_end", session="s").closed == ["turn"]


def test_an_engine_may_evict_a_segment_and_go_on():
    placement = deterministic()
    placement.open("w", "worker", session="s")
    placement.commit("w", [0, 2])
    assert placement.evict("w").freed == [0, 2]
    placement.commit("w", [1])
    assert placement.blocks("w") == [1]


class Lists:
    """An engine in memory that can be told to fail."""

    def __init__(self, hbm_blocks: int, hbf_blocks: int):
        self.free_ids = {
            "hbm": list(range(hbm_blocks)),
            "hbf": list(range(hbm_blocks, hbm_blocks + hbf_blocks)),
        }
        self.hbm_blocks = hbm_blocks
        self.allocs_left = 10**9
        self.frees = True

    def alloc(self, tier):
        self.allocs_left -= 1
        if self.allocs_left < 0:
            raise RuntimeError("no answer from the allocator")
        return self.free_ids[tier].pop(0)

    def free(self, blocks):
        if not self.frees:
            raise RuntimeError("no answer to free")
        for block in blocks:
            self.free_ids["hbm" if block < self.hbm_blocks else "hbf"].append(block)

    def free_blocks(self, tier):
        return len(self.free_ids[tier])


def test_the_layer_draws_from_an_engine_and_gives_back():
    engine = Lists(4, 8)
    placement = deterministic(engine=engine)
    placement.open("w", "worker", session="s")
    assert placement.extend("w", 5) == [0, 1, 2, 3, 4]
    assert (engine.free_blocks("hbm"), engine.free_blocks("hbf")) == (0, 7)
    assert placement.stats().fallback_blocks == 1
    placement.boundary("session_end", session="s")
    assert (engine.free_blocks("hbm"), engine.free_blocks("hbf")) == (4, 8)
    placement.check()


def test_blocks_that_the_engine_gave_to_others_are_not_planned_with():
    engine = Lists(4, 8)
    engine.free_ids["hbm"] = [3]
    placement = deterministic(engine=engine)
    placement.open("w", "worker", session="s")
    assert placement.extend("w", 2) == [3, 4]
    with pytest.raises(
        lp.CensusError, match="the engine has 0 free blocks, but 3 are held by nobody"
    ):
        placement.check()


def test_an_engine_that_fails_in_the_middle_gets_all_back():
    engine = Lists(4, 8)
    placement = deterministic(engine=engine)
    placement.open("w", "worker", session="s")
    engine.allocs_left = 2
    before = placement.stats()
    with pytest.raises(RuntimeError, match="no answer from the allocator"):
        placement.extend("w", 3)
    assert placement.stats() == before
    placement.check()


def test_an_engine_that_hands_out_a_held_block_is_refused_and_gets_all_back():
    engine = Lists(4, 8)
    placement = deterministic(engine=engine)
    placement.open("w", "worker", session="s")
    placement.extend("w", 1)
    engine.free_ids["hbm"] = [1, 0, 2]
    with pytest.raises(lp.BlockHeld, match="block 0"):
        placement.extend("w", 2)
    assert sorted(engine.free_ids["hbm"]) == [0, 1, 2]


def test_what_an_engine_refused_to_take_back_is_offered_again():
    engine = Lists(4, 8)
    placement = deterministic(engine=engine)
    placement.open("w", "worker", session="s")
    placement.open("lead", "lead", session="s")
    placement.extend("w", 3)
    engine.frees = False
    with pytest.raises(RuntimeError, match="no answer to free"):
        placement.boundary("subagent_return", session="s", segment="w")
    engine.frees = True
    placement.boundary("session_end", session="s")
    assert engine.free_blocks("hbm") == 4
    placement.check()


def test_extend_reclaims_what_the_policy_keeps():
    engine = Lists(2, 3)
    placement = Placement(2, 3, policy="hbm-first", engine=engine)
    for name in ("first", "second"):
        placement.open(name, "worker", session=name)
        placement.extend(name, 2)
        placement.boundary("session_end", session=name)
    placement.open("third", "worker", session="third")
    assert len(placement.extend("third", 3)) == 3
    assert placement.stats().kept_blocks == {"hbm": 0, "hbf": 2}
    with pytest.raises(lp.OutOfBlocks):
        placement.extend("third", 3)
    assert sum(placement.stats().kept_blocks.values()) == 2, "what is not enough is left alone"
    placement.check()


def test_threads_that_draw_and_release_lose_nothing():
    engine = Lists(300, 900)
    placement = deterministic(300, 900, engine=engine)
    faults = []

    def work(thread: int) -> None:
        try:
            for session in range(60):
                name = f"{thread}/{session}"
                placement.open(f"{name}/lead", "lead", session=name)
                for worker in range(4):
                    segment = f"{name}/{worker}"
                    placement.spawn(segment, {}, session=name)
                    placement.start_request(segment, [segment, f"{name}/lead"])
                    placement.extend(segment, 5 + worker)
                    placement.boundary("subagent_return", session=name, segment=segment)
                    with pytest.raises(lp.DuplicateRequest):
                        placement.start_request(segment, ["nobody"])
                    placement.finish_request(segment)
                placement.boundary("session_end", session=name)
                placement.check()
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert placement.stats().free_blocks == placement.stats().total_blocks
    assert placement.stats().closed == 4 * 60 * 5

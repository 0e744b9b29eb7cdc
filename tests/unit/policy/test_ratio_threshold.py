"""Which classes a threshold keeps in HBM, on traces and memories made by hand."""

from itertools import pairwise

import msgspec
import pytest

from lachesis.errors import InputError
from lachesis.policy import choose_policy
from lachesis.policy.ratio import fix_threshold
from lachesis.presets import Settings
from lachesis.traces import Role, TraceBuilder, open_trace


def delegation():
    """A lead, one worker, one reviewer: ratios 52.6, 57.9 and 12.3."""
    builder = TraceBuilder(source="delegation")
    session = builder.session("a", workload="w", harness="h", stripping="off")
    lead = session.request(input_tokens=60, output_tokens=10, tools=["spawn", "spawn"])
    session.spawn("worker", spawned_by=lead, role=Role.WORKER)
    session.spawn("review", spawned_by=lead, role=Role.REVIEWER)
    session.request(agent="worker", input_tokens=20, output_tokens=100)
    session.request(agent="review", input_tokens=30, output_tokens=15)
    answer = session.request(input_tokens=100, output_tokens=60, observations=2)
    session.returns("worker", to=answer)
    session.returns("review", to=answer)
    return builder.build()


def with_hbm_blocks(blocks):
    """Settings of one GPU with about that many HBM blocks, in blocks of 16 tokens."""
    settings = Settings.choose(memory="1/7")
    block_bytes = settings.kv_capacity().block_bytes
    settings = msgspec.structs.replace(
        settings,
        hardware=msgspec.structs.replace(
            settings.hardware, hbm_gb_per_stack=(blocks + 0.5) * block_bytes / 1e9
        ),
        node=msgspec.structs.replace(settings.node, gpus=1),
        # One GPU cannot hold all of Maverick's weights otherwise.
        model=msgspec.structs.replace(settings.model, weight_bytes_per_value=0.5),
    )
    assert settings.kv_capacity().hbm_blocks == blocks
    return settings


def chosen(blocks, load_sessions=1, trace=None):
    policy = choose_policy("read-write-ratio")
    trace = delegation() if trace is None else trace
    fixed = fix_threshold(policy, trace, with_hbm_blocks(blocks), load_sessions)
    return fixed, dict(fixed.chosen_for)


def test_ratios_that_the_threshold_is_chosen_from():
    _, facts = chosen(100)
    assert facts["mean_rho_by_class"] == {
        "lead": pytest.approx(((60 * 10 + 45) + (100 * 60 + 1770)) / 160),
        "worker": pytest.approx((20 * 100 + 4950) / 120),
        "reviewer": pytest.approx((30 * 15 + 105) / 45),
    }


def test_blocks_of_a_class_scale_with_the_load():
    _, one = chosen(100)
    _, ten = chosen(100, load_sessions=10)
    for name, blocks in one["mean_blocks_by_class"].items():
        assert ten["mean_blocks_by_class"][name] == pytest.approx(10 * blocks)


def test_classes_enter_hbm_from_the_lowest_ratio_up():
    # Session: 2 + 20 + 2 + 12 = 36 s. Reviewer: 30 tokens growing to 45 over 3 s: 2 blocks for
    # 2 tokens, 3 for 13: 8.2 block-seconds. Worker: 20 growing to 120 over 20 s.
    _, facts = chosen(100)
    reviewer = (2 * 2 + 3 * 13) * 0.2 / 36
    assert facts["mean_blocks_by_class"]["reviewer"] == pytest.approx(reviewer)
    worker = (2 * 12 + sum(range(3, 8)) * 16 + 8 * 8) * 0.2 / 36
    assert facts["mean_blocks_by_class"]["worker"] == pytest.approx(worker)
    order = sorted(facts["mean_rho_by_class"], key=facts["mean_rho_by_class"].get)
    assert order[0] == "reviewer"
    needed = [facts["mean_blocks_by_class"][name] for name in order]
    seen = []
    for count in range(4):
        # At 1,000 sessions, HBM of just the blocks that the first `count` classes hold.
        fixed, found = chosen(int(1000 * sum(needed[:count])) + 1, load_sessions=1000)
        assert fixed.classes_in_hbm == frozenset(order[:count])
        seen.append(found["threshold_rho"])
    assert seen == [0.0, *sorted(facts["mean_rho_by_class"].values())]


def test_no_class_is_kept_where_the_lowest_does_not_fit_though_a_later_one_would():
    # The reviewer comes first by ratio; nothing behind it may jump the queue.
    _, facts = chosen(100)
    reviewer = facts["mean_blocks_by_class"]["reviewer"]
    fixed, found = chosen(int(1000 * reviewer) - 1, load_sessions=1000)
    assert fixed.classes_in_hbm == frozenset()
    assert found["threshold_rho"] == 0.0
    assert set(fixed.engine()["targets"]) == {1}


def test_the_engine_is_told_of_the_classes_below():
    fixed, _ = chosen(100)
    assert fixed.classes_in_hbm == {"lead", "worker", "reviewer"}
    # prompt, laden, stripped, lead, worker, reviewer, summary: what the trace lacks goes to HBF.
    targets = [1, 1, 1, 0, 0, 0, 1]
    assert fixed.engine() == {"name": "read-write-ratio", "targets": targets, "options": None}


def test_equal_ratios_are_not_told_apart():
    builder = TraceBuilder(source="twins")
    session = builder.session("a", workload="w", harness="h", stripping="off")
    lead = session.request(input_tokens=20, output_tokens=30, tools=["spawn", "spawn"])
    session.spawn("worker", spawned_by=lead, role=Role.WORKER)
    session.spawn("review", spawned_by=lead, role=Role.REVIEWER)
    session.request(agent="worker", input_tokens=30, output_tokens=15)
    session.request(agent="review", input_tokens=30, output_tokens=15)
    trace = builder.build()
    fixed, facts = chosen(100, 1, trace)
    ratios, blocks = facts["mean_rho_by_class"], facts["mean_blocks_by_class"]
    assert ratios["worker"] == ratios["reviewer"] < ratios["lead"]
    assert fixed.classes_in_hbm == {"lead", "worker", "reviewer"}
    room_for_one = int(1000 * blocks["worker"]) + 1
    assert chosen(room_for_one, 1000, trace)[0].classes_in_hbm == frozenset()
    room_for_both = int(2000 * blocks["worker"]) + 1
    assert chosen(room_for_both, 1000, trace)[0].classes_in_hbm == {"worker", "reviewer"}


def test_a_larger_load_never_keeps_more_classes():
    trace, policy = open_trace("tau3-airline"), choose_policy("read-write-ratio")
    kept = [
        fix_threshold(policy, trace, Settings.choose(memory="2/6"), load).classes_in_hbm
        for load in (1, 100, 1000, 100_000)
    ]
    assert all(later <= earlier for earlier, later in pairwise(kept))
    assert kept[0] == {"prompt", "reasoning-laden", "reasoning-stripped"}
    assert kept[-1] == frozenset()


def test_same_input_same_choice():
    trace, policy = open_trace("tau3-airline"), choose_policy("read-write-ratio")
    first = fix_threshold(policy, trace, Settings.choose(), 300)
    assert fix_threshold(policy, trace, Settings.choose(), 300) == first


def test_a_load_of_nothing_is_refused():
    with pytest.raises(InputError, match="load_sessions = 0, must be at least 1"):
        fix_threshold(choose_policy("read-write-ratio"), delegation(), Settings.choose(), 0)

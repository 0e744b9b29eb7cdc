"""The live layer places real blocks as the simulator counts them, over whole simulations."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from lachesis import _engine
from lachesis.policy import choose_policy
from lachesis.presets import Settings
from lachesis.simulation.journal import Journal
from lachesis.simulation.loaded_trace import LoadedTrace
from lachesis.simulation.plan import Load, Plan, Stopping
from lachesis.simulation.workload import workload_columns
from lachesis.traces import open_trace

from . import census, engine
from .case import POLICIES, Config, Request, Segment, Session, StepCost, Workload
from .shadow import BOUNDARY, CLOSE, DRAW, END, EVICT, OPEN, START, WRITE, Shadow
from .strategies import random_case
from .test_journal import plain

RANKING = ("lachesis", "lachesis-oracle")
CASES = 60


Given = dict[str, Any]


def listen(
    loaded: Any, settings: Given, policy: Given, stop: Given, shadow: Shadow
) -> dict[str, Any]:
    return _engine.replay(
        loaded, settings, policy, stop, None, Journal(shadow, segments=True).engine()
    )


def policy_of(config: Config):
    policy = choose_policy(config.policy.name)
    ranking = config.policy.ranking
    if ranking is None:
        return policy
    options = {name: getattr(ranking, name) for name in ranking.__dataclass_fields__}
    return replace(policy, ranking=replace(policy.ranking, **options))


def is_shared_only(workload: Workload) -> bool:
    """Whether every prompt is one that sessions share: the layer keeps those and others alike."""
    segments = [spec for session in workload.sessions for spec in session.segments]
    return all(s.prefix_key is not None for s in segments if s.segment_class == "prompt")


@pytest.mark.parametrize(
    ("name", "layer_caches"),
    [
        *((name, False) for name in ("hbf-only", "lachesis-deterministic", *RANKING)),
        # Without a fallback it matters in which tier the layer reclaims.
        *((name, True) for name in ("lachesis-deterministic", *RANKING)),
    ],
)
def test_random_cases(name: str, layer_caches: bool):
    told: Counter[Any] = Counter()
    for seed in range(CASES * (3 if layer_caches else 1)):
        workload, config = random_case(Random(seed), name, memory_may_be_too_small=seed % 3 == 0)
        if layer_caches:
            config = replace(config, gpus=1)
            if not is_shared_only(workload):
                continue
        settings, columns = engine.run_config(workload, config), engine.columns(workload)
        scores, policy = engine.scores(workload), policy_of(config)
        shadow = Shadow(columns, scores, policy, settings, layer_caches=layer_caches)
        loaded = _engine.Workload(**columns)
        try:
            outcome = listen(loaded, settings, engine.run_policy(config), engine.DRAINED, shadow)
        except _engine.EngineError as error:
            if error.args[0] != "SessionTooLarge":
                raise
            continue
        quiet = engine.replay(workload, settings, config)
        assert plain(outcome) == plain(quiet), "listening changes no result"
        shadow.over(outcome["whole"]["fallback_blocks"])
        assert shadow.reclaimed == outcome["whole"]["reclaimed_blocks"]
        assert not any(shadow.live.values()), "every session has ended"
        told.update(dict(enumerate(shadow.seen)))
        told.update(reclaimed=shadow.reclaimed, adopted=shadow.adopted, deferred=shadow.deferred)
        told.update(fallbacks=outcome["whole"]["fallback_blocks"])
    events = (OPEN, START, WRITE, DRAW, EVICT, END, BOUNDARY, CLOSE)
    assert all(told[each] > 0 for each in (*events, "reclaimed", "adopted", "deferred"))
    assert (told["fallbacks"] > 0) == (name != "hbf-only")


def test_a_boundary_that_comes_before_its_segments_first_use():
    """It waits for all who have yet to use the segment, and frees it after the last of them."""
    segments = [
        Segment("lead"),
        Segment("worker", closed_by="subagent_return", closed_after=1),
        Segment("worker", closed_by="subagent_return", closed_after=3),
    ]
    requests = [
        Request([], [(0, 4)], 0, 1),
        Request([(0, "tool", 0)], [(0, 0)], 0, 1),
        Request([(0, "spawn", 50)], [(1, 8)], 1, 4),
        Request([(1, "tool", 500)], [(2, 16)], 2, 1),
    ]
    workload = Workload([Session(requests, segments)])
    config = Config(
        gpus=1,
        hbm_blocks=5,
        hbf_blocks=50,
        slots=4,
        ttft_ref_ps=1,
        cost=StepCost([0] * 5, [0] * 5, overhead_ps=1),
        draws=[0],
        policy=POLICIES["lachesis-deterministic"],
        block_tokens=4,
    )
    settings, columns = engine.run_config(workload, config), engine.columns(workload)
    shadow = Shadow(columns, None, policy_of(config), settings)
    loaded = _engine.Workload(**columns)
    outcome = listen(loaded, settings, engine.run_policy(config), engine.DRAINED, shadow)
    # The second worker finds the first one's blocks free: 5 blocks of 5.
    assert outcome["whole"]["fallback_blocks"] == 0
    shadow.over(0)
    assert shadow.seen[BOUNDARY] == 1
    assert engine.simulate(workload, config) == census.simulate(workload, config)


@pytest.fixture(scope="module")
def multi_agent() -> LoadedTrace:
    return LoadedTrace(open_trace("multi-agent"))


@pytest.mark.parametrize("gpus", [1, 3])
@pytest.mark.parametrize("name", ["lachesis-deterministic", *RANKING])
def test_a_built_in_corpus(multi_agent: LoadedTrace, name: str, gpus: int):
    """Ten minutes of the built-in multi-agent corpus, in a memory of which HBM is a small part."""
    load, policy, plan = Load.parse(str(4 * gpus)), choose_policy(name), Plan(Settings.choose())
    loaded = multi_agent.workload(load)
    scores = multi_agent.scores_for(policy, plan.settings.latency)
    memory = {"gpus": gpus, "hbm_blocks": 1_500, "hbf_blocks": 24_000}
    config = plan.engine_config(loaded, policy, load, plan.cost(), scores) | memory
    columns = workload_columns(multi_agent.trace, recorded=False, longest_gap_s=0.0)
    shadow = Shadow(columns, scores, policy, config, check_every=2_000)
    stop = Stopping(fixed=True, warm_up_turnovers=0.0, turnovers=1e9, horizon_s=600.0)
    outcome = listen(loaded, config, policy.engine_for_a_run(), stop.engine(load), shadow)
    fallbacks = outcome["whole"]["fallback_blocks"]
    shadow.over(fallbacks)
    assert outcome["whole"]["sessions"] > gpus
    assert min(fallbacks, shadow.adopted, shadow.seen[DRAW] // 5_000) > 0

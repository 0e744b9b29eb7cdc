"""Cells that differ in what enters after a replay are replayed once, and change no value."""

import threading
from collections import Counter
from typing import Any

import pytest

from lachesis import _engine
from lachesis.policy import choose_policy
from lachesis.policy.ratio import fix_threshold
from lachesis.presets import Settings, apply_overrides, override_keys
from lachesis.questions import Scenario, effect
from lachesis.simulation import KnownReplays, Load, LoadedTrace, Plan, RunOptions, replay_plan
from lachesis.simulation.pricing import gpu_rates, model_shape
from lachesis.sweeps import Specification
from lachesis.sweeps.cells import Cell, expand
from lachesis.sweeps.execution import of_one_replay, run_cell, run_cells
from lachesis.traces import open_trace

#: What turns a measured rate into device-years, and nothing before.
AFTER: dict[str, list[Any]] = {
    "flash.pe_cycles": [30_000, 100_000],
    "flash.write_amplification": [1.02, 2.0],
    "flash.refresh_hours": [0, 24],
    "flash.warranty_years": [3.0, 5.0],
    "node.duty_cycle": [0.4, 1.0],
}
#: What a replay depends on.
BEFORE: dict[str, list[Any]] = {
    "memory": ["1/7", "2/6"],
    "model": ["llama-4-maverick", "qwen3-235b-a22b"],
    "load": [4, 8],
    "seed": [1, 2],
    "turnovers": [1, 2],
    "precision": [0.2, 0.4],
    "cold": [True, False],
    "flash": ["hbf-slc", "sandisk-gen2"],
    "hardware.hbf_write_gb_per_s_per_stack": [4.0, 16.0],
    "latency.user_median_s": [60.0, 120.0],
    "slo.tpot_p99_ms": [40.0, 60.0],
    "node.landing": ["sync", "async"],
    "node.block_tokens": [16, 32],
    "node.gpus": [4, 8],
}


LOAD = Load.parse("8")


@pytest.fixture(scope="module")
def loaded() -> LoadedTrace:
    return LoadedTrace(open_trace("tau3-airline"))


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the engine was asked, by policy."""
    asked: Counter[str] = Counter()
    real = _engine.replay
    counting = threading.Lock()

    def counted(workload: Any, config: Any, policy: Any, *rest: Any) -> Any:
        with counting:
            asked[str(policy["name"])] += 1
        return real(workload, config, policy, *rest)

    monkeypatch.setattr(_engine, "replay", counted)
    return asked


def cells_of(**axes: Any) -> list[Cell]:
    grid = {"trace": "tau3-airline", "load": 4, "turnovers": 1, "policy": "hbf-only", **axes}
    return expand(Specification.parse({"grid": grid}))


@pytest.mark.parametrize("key", AFTER)
def test_what_enters_after_a_replay_needs_no_other(key: str) -> None:
    (group,) = of_one_replay(cells_of(**{key: AFTER[key]}))
    assert [cell.number for cell in group] == [0, 1]


def test_the_engine_is_told_nothing_of_it(loaded: LoadedTrace) -> None:
    """Whatever of these the engine were told, replays could not be shared."""
    settings = Settings.choose()
    keys = [key for key in override_keys(settings) if key.startswith("flash.")]
    assert set(AFTER) <= {*keys, "node.duty_cycle"}
    workload, policy, load = loaded.workload(LOAD), choose_policy("read-write-ratio"), LOAD

    def told(chosen: Settings) -> list[Any]:
        plan = Plan(chosen)
        config = plan.engine_config(workload, policy, load, plan.cost())
        fixed = fix_threshold(policy, loaded.trace, chosen, load.sessions).engine()
        rates, shape = gpu_rates(chosen), model_shape(chosen.model, chosen)
        return [{**config, "cost": None}, fixed, rates, shape]

    usual = told(settings)
    for key in [*keys, "node.duty_cycle"]:
        part, _, field = key.partition(".")
        value = getattr(getattr(settings, part), field)
        other = 0.5 if key == "node.duty_cycle" else value * 2 + (24 if value == 0 else 0)
        changed = apply_overrides(settings, [f"{key}={other}"])
        assert told(changed) == usual, key
        assert replay_plan(Plan(changed)) == replay_plan(Plan(settings))


@pytest.mark.parametrize("key", BEFORE)
def test_what_a_replay_depends_on_needs_its_own(key: str) -> None:
    cells = cells_of(**{key: BEFORE[key]})
    assert [len(group) for group in of_one_replay(cells)] == [1, 1]


def test_groups_and_their_cells_stand_in_the_order_of_the_sweep() -> None:
    cells = cells_of(**{"load": [4, 8], "flash.pe_cycles": [1, 2], "memory": ["1/7", "2/6"]})
    numbers = [[cell.number for cell in group] for group in of_one_replay(cells)]
    assert numbers == [[0, 2], [1, 3], [4, 6], [5, 7]]


@pytest.mark.parametrize("load", ["8", "auto", "poisson:0.05"])
def test_a_replay_that_is_shared_gives_the_same_rows(
    loaded: LoadedTrace, replays: Counter[str], load: str
) -> None:
    axes: dict[str, Any] = {
        "load": load, "precision": 0.2, "policy": ["hbm-first", "read-write-ratio", "hbm-only"],
        "hardware.max_sequences": 1, "slo.ttft_p99_s": 1.5, **AFTER,
    }  # fmt: skip
    cells = cells_of(**axes)
    some = [cells[place] for place in (0, 13, 31)]
    alone = {cell.id: run_cell(cell, loaded) for cell in some}
    for_one = sum(replays.values()) / len(some)
    replays.clear()
    outcomes = run_cells(some, {some[0].source: loaded}, jobs=2, stop=threading.Event())
    together = {outcome.cell: outcome for outcome in outcomes}
    assert sum(replays.values()) == for_one
    assert set(together) == set(alone)
    for identity, outcome in together.items():
        assert outcome.rows == alone[identity].rows
        assert outcome.searches == alone[identity].searches
    years = {outcome.rows[0]["hbf_lifetime_years"] for outcome in together.values()}
    assert len(years) == len(some)


def test_an_error_is_not_kept() -> None:
    known = KnownReplays()

    def fails() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        known.once("a", fails)
    assert known.once("a", lambda: 3) == 3


def test_a_plan_with_another_seed_or_length_is_another_replay() -> None:
    plans = [cell.plan for cell in cells_of(seed=[1, 2], turnovers=[1, 2])]
    assert len({replay_plan(plan) for plan in plans}) == 4


def test_the_effect_of_endurance_is_found_without_a_further_replay(
    replays: Counter[str],
) -> None:
    scenario = Scenario(
        RunOptions(("tau3-airline",), policies=("hbf-only",), turnovers=1.0, load="8")
    )
    before = effect(scenario, {"set": ("flash.pe_cycles=10000",)}).findings[0]
    assert before.found is not None
    assert before.found["same_load_factor"] == pytest.approx(0.1)
    assert sum(replays.values()) == 1
    assert scenario.load == Load.parse("8")
    effect(scenario, {"memory": "1/7"})
    assert sum(replays.values()) == 2

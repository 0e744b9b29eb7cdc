"""The journal on random cases: it changes no result, and what it tells is all that happened."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from lachesis import _engine

from . import engine
from .case import Config, Workload
from .strategies import POLICY_NAMES, random_case

CASES = 60
DECODE = 2


def replay(
    workload: Workload, config: Config, *, flash: bool, window_s: tuple[float, float] | None
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]] | None:
    """Outcome and records, one array a column; None where the memory is too small."""
    told: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))

    def deliver(tables: dict[str, dict[str, Any]]) -> None:
        for name, columns in tables.items():
            for column, values in columns.items():
                told[name][column].append(values)

    loaded = _engine.Workload(**engine.columns(workload))
    settings = engine.run_config(workload, config)
    journal = {"flash": flash, "segments": False, "window_s": window_s, "deliver": deliver}
    try:
        outcome = _engine.replay(
            loaded, settings, engine.run_policy(config), engine.DRAINED, None, journal
        )
    except _engine.EngineError as error:
        if error.args[0] != "SessionTooLarge":
            raise
        return None
    return outcome, {
        name: {column: np.concatenate(chunks) for column, chunks in columns.items()}
        for name, columns in told.items()
    }


def plain(value: Any) -> Any:
    """An outcome that `==` can compare."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def flash_census(workload: Workload, config: Config, outcome: dict[str, Any], flash: Any) -> None:
    """Nothing is written over, nothing held is left untrimmed, nothing is counted twice."""
    written: dict[int, set[int]] = defaultdict(set)
    tokens = 0
    before_ps = 0
    bounds = config.hbf_blocks * config.block_tokens
    names = ("time_ps", "is_write", "gpu", "address_tokens", "tokens")
    rows = zip(*(flash[name].tolist() for name in names), strict=True)
    for time_ps, is_write, gpu, address, count in rows:
        assert time_ps >= before_ps, "the clock never runs backwards"
        before_ps = time_ps
        assert address >= 0
        assert address + count <= bounds, "an address lies in the flash of its GPU"
        span = set(range(address, address + count))
        if is_write:
            assert count > 0
            assert not written[gpu] & span, "no address is written twice without a trim between"
            written[gpu] |= span
            tokens += count
        else:
            assert address % config.block_tokens == 0
            assert count % config.block_tokens == 0
            assert written[gpu] & span, "only what was written is trimmed"
            written[gpu] -= span
    whole = outcome["whole"]
    counted = sum(pair[1] for name in ("materialised_tokens", "rematerialised_tokens")
                  for pair in whole[name].values())  # fmt: skip
    assert tokens == counted, "every token that the run counts is written once"
    for gpu, (_, free) in enumerate(outcome["free_blocks"]):
        blocks = {token // config.block_tokens for token in written[gpu]}
        assert len(blocks) == config.hbf_blocks - free, "what is not trimmed is what is held"


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_flash_operations(policy: str):
    told = 0
    for seed in range(CASES):
        workload, config = random_case(Random(seed), policy)
        found = replay(workload, config, flash=True, window_s=None)
        if found is None:
            continue
        outcome, tables = found
        quiet = engine.replay(workload, engine.run_config(workload, config), config)
        assert plain(outcome) == plain(quiet), "listening changes no result"
        if tables:
            told += len(tables["flash"]["tokens"])
            flash_census(workload, config, outcome, tables["flash"])
    assert told > 0 or policy == "hbm-only"


@pytest.mark.parametrize("policy", ["hbm-first", "lachesis-deterministic"])
def test_phases_of_requests(policy: str):
    """A request's phases fill the time from ready to end, and decode ends where it ends."""
    preempted = 0
    for seed in range(CASES):
        workload, config = random_case(Random(seed), policy)
        found = replay(workload, config, flash=False, window_s=(0.0, 9e6))
        if found is None:
            continue
        outcome, tables = found
        quiet = engine.replay(workload, engine.run_config(workload, config), config)
        assert plain(outcome) == plain(quiet), "listening changes no result"
        slices = tables["slices"]
        phases: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
        names = ("draw", "request", "begin_ps", "end_ps", "phase")
        for draw, request, *phase in zip(*(slices[name].tolist() for name in names), strict=True):
            phases[draw, request].append(tuple(phase))
        for draw, request, ready, admitted, _, end in outcome["requests"]:
            own = phases.pop((draw, request), [])
            if not own:
                assert ready == end, "only a request without duration has no phase"
                continue
            assert own[0][0] == ready
            assert own[-1][1] == end
            assert all(left[1] == right[0] for left, right in pairwise(own))
            # Admitted and preempted at one instant is a phase without duration.
            assert admitted in {begin for begin, _, _ in own} | {end}
            decode = [begin for begin, _, phase in own if phase == DECODE]
            preempted += len(decode) > 1
        assert not phases, "no phase of a request that never ended"
        assert not slices["is_cut"].any()
        steps = tables["steps"]
        durations: dict[int, int] = {}
        columns = steps["time_ps"].tolist(), steps["duration_ps"].tolist()
        for time_ps, duration_ps in zip(*columns, strict=True):
            assert durations.setdefault(time_ps, duration_ps) == duration_ps
        assert len(durations) == outcome["whole"]["steps"], "every step is told"
        whole = outcome["whole"]
        assert (tables["instants"]["what"] == 1).sum() == whole["preemptions"]
        assert (tables["instants"]["what"] == 2).sum() == whole["session_losses"]
        assert (tables["instants"]["what"] == 4).sum() == whole["sessions"]
    assert preempted > 0

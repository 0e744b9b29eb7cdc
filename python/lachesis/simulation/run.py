"""Run the engine: one policy at one load."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lachesis import _engine
from lachesis.policy import Policy
from lachesis.presets import SloPreset
from lachesis.simulation.faults import engine_errors
from lachesis.simulation.plan import Load, Plan
from lachesis.simulation.search import Strain

#: Hears simulated seconds, requests ended, and the share of the run that is done.
Observer = Callable[[float, int, float], object]


@dataclass(frozen=True)
class Replay:
    """What the engine measured: counts in tokens, blocks and seconds, as `_engine.replay` gives."""

    policy: Policy
    load: Load
    measured: dict[str, Any]
    wall_s: float

    @property
    def meets_slo(self) -> bool:
        """Whether at most 1 % of the requests took longer than the SLO's TTFT, and its TPOT.

        Counted exactly. A run in which no request ended, or that was stuck, meets nothing.
        """
        window = self.measured["window"]
        return bool(
            not self.measured["stuck"]
            and window["requests"] > 0
            and window["over_ttft"] * 100 <= window["timed_ttft"]
            and window["over_tpot"] * 100 <= window["timed_tpot"]
        )

    def strain(self, slo: SloPreset) -> Strain:
        """How near the run comes to the limits of the SLO that it was measured with."""
        pairs = (("ttft_p99_s", slo.ttft_p99_s), ("tpot_p99_s", slo.tpot_p99_s))
        shares = [self.measured[name] / limit_s for name, limit_s in pairs if self.measured[name]]
        return Strain(self.meets_slo, max(shares, default=math.inf))


def replay(
    workload: _engine.Workload,
    plan: Plan,
    policy: Policy,
    load: Load,
    *,
    cost: _engine.StepCost | None = None,
    scores: NDArray[np.float64] | None = None,
    source: str = "workload",
    session_names: tuple[str, ...] = (),
    observe: Observer | None = None,
) -> Replay:
    """Replay a workload under one policy at one load.

    Args:
        workload: from `lachesis.simulation.workload.to_workload`.
        plan: presets, seed, stopping.
        policy: from `lachesis.policy.choose_policy`.
        load: closed, Poisson or recorded.
        cost: the price of a step, where the caller has it already.
        scores: a lifetime a segment of the workload, for policies that rank workers.
        source: what the workload was read from, for messages.
        session_names: the workload's sessions, for messages.
        observe: called every 8,192 instants of the simulation.

    Raises:
        InputError: a setting is out of range or a session does not fit the memory.
        KeyboardInterrupt: Ctrl-C.
    """
    cost = plan.cost() if cost is None else cost
    started = time.perf_counter()
    with engine_errors(source, session_names):
        config = plan.engine_config(workload, policy, load, cost, scores)
        measured = _engine.replay(
            workload,
            config,
            policy.engine_for_a_run(),
            plan.stopping.engine(load),
            observe,
            None if plan.journal is None else plan.journal.engine(),
        )
    return Replay(policy, load, measured, time.perf_counter() - started)

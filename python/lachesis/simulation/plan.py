"""What a run is: load, precision, seed; and the engine's settings that follow from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lachesis import _engine
from lachesis.errors import InfeasibleError, InputError
from lachesis.policy import Policy
from lachesis.presets import Settings
from lachesis.simulation.journal import Journal
from lachesis.simulation.pricing import NodePart, step_cost
from lachesis.simulation.workload import TOOL_CLASSES

SESSIONS_MAX = 2**20
BLOCKS_MAX = 2**31
#: The TPOT by which a session's duration is reckoned before a run: the limit of the default SLO.
#: It is the same for every SLO, so that a run at a given load does not depend on what it is judged
#: by. The reference clock's 0.2 s would start sessions over three of their durations.
SESSION_TPOT_S = 0.06


@dataclass(frozen=True)
class Load:
    """How sessions arrive at the node.

    Attributes:
        kind: ``closed`` (a fixed number of live sessions), ``poisson``, ``recorded``, or a search
            for the largest closed load that the SLO admits: ``auto`` (once, under hbm-first) and
            ``each`` (for each policy).
        sessions: live sessions of the node, where closed.
        sessions_per_s: rate of the node, where Poisson.
        longest_gap_s: where recorded, the most that two starts in a row lie apart; longer gaps,
            such as nights and months between sessions, are cut to it.
    """

    kind: Literal["closed", "poisson", "recorded", "auto", "each"]
    sessions: int = 0
    sessions_per_s: float = 0.0
    longest_gap_s: float = math.inf

    @property
    def is_searched(self) -> bool:
        """Whether it is still to be found, by a search for what the SLO admits."""
        return self.kind in ("auto", "each")

    @classmethod
    def parse(cls, text: str) -> Load:
        """Read ``N``, ``auto``, ``each``, ``poisson:RATE`` or ``recorded[:SECONDS]``.

        The rate is in sessions a second; the seconds are the longest gap between two starts.

        Raises:
            InputError: anything else, or a number out of range.

        Example:
            >>> Load.parse("400").sessions, Load.parse("poisson:0.5").sessions_per_s
            (400, 0.5)
        """
        word = text.strip()
        if word in ("auto", "each", "recorded"):
            return cls(kind=word)  # type: ignore[arg-type]
        rule = (
            f"must be a number of sessions from 1 to {SESSIONS_MAX}, auto, each, recorded, "
            "recorded:SECONDS with the longest gap between two starts, or poisson:RATE with a rate "
            "in sessions a second"
        )
        kind, colon, number = word.partition(":")
        try:
            value = float(number) if colon else int(word)
        except ValueError:
            raise InputError(rule, field="load", value=text) from None
        if kind == "poisson" and 1e-6 <= value <= 1e6:
            return cls(kind="poisson", sessions_per_s=value)
        if kind == "recorded" and 0.0 <= value < math.inf:
            return cls(kind="recorded", longest_gap_s=value)
        if not colon and 1 <= value <= SESSIONS_MAX:
            return cls(kind="closed", sessions=int(value))
        raise InputError(rule, field="load", value=text)


@dataclass(frozen=True)
class Stopping:
    """When a run ends.

    Attributes:
        precision: asked half-width of the 95 % interval of device-years, relative.
        turnovers: turnovers of the live sessions (ended sessions / load) at which it ends anyway.
        horizon_s: simulated seconds at which it ends anyway.
        warm_up_turnovers: with `fixed`, the turnovers that are not measured.
        fixed: measure exactly `turnovers` after the warm-up, whatever the precision.
        fail_fast: with `fixed`, end as soon as it is clear that the SLO is missed.
    """

    precision: float = 0.02
    turnovers: float = 40.0
    horizon_s: float = 60 * 86_400.0
    warm_up_turnovers: float = 1.0
    fixed: bool = False
    fail_fast: bool = False

    def engine(self, load: Load) -> dict[str, Any]:
        """The stop as the engine takes it; a recording is replayed once, and measured whole."""
        kind = "fixed" if self.fixed else "settled"
        return {
            "kind": "drained" if load.kind == "recorded" else kind,
            "precision": self.precision,
            "warm_up_turnovers": self.warm_up_turnovers,
            "measured_turnovers": self.turnovers,
            "horizon_s": self.horizon_s,
            "fail_fast": self.fail_fast,
        }


@dataclass(frozen=True)
class Plan:
    """One simulation, the load apart: presets, seed, and options of the replay.

    Attributes:
        settings: presets with overrides applied.
        seed: of every random draw.
        step_time_s: a constant step instead of roofline pricing, for hand-checked cases.
        aged: whether hbm-first starts from a memory full of dead blocks (equal to a cold start
            within the interval, and settled a memory's fill earlier).
        stopping: when a run ends.
        timeline_interval_s: simulated seconds between two rows of the timeline; none without.
        journal: who listens to the run; changes no result.
        part: how many of the node's GPUs are simulated and stand for all; the whole node if None.
    """

    settings: Settings
    seed: int = 1
    step_time_s: float | None = None
    aged: bool = True
    stopping: Stopping = field(default_factory=Stopping)
    timeline_interval_s: float | None = None
    journal: Journal | None = None
    part: NodePart | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**64:
            raise InputError("must be from 0 to 2^64 - 1", field="seed", value=self.seed)
        if self.part is not None:
            gpus = self.settings.node.gpus
            if self.part.gpus < 1 or gpus % self.part.gpus:
                raise InputError(
                    f"must divide the {gpus} GPUs of the node", field="gpus", value=self.part.gpus
                )

    @property
    def gpus(self) -> int:
        """GPUs that the engine replays."""
        return self.settings.node.gpus if self.part is None else self.part.gpus

    @property
    def gpus_stood_for(self) -> int:
        """GPUs of the node that each simulated one stands for.

        Example:
            >>> Plan(Settings.choose(), part=NodePart(2)).gpus_stood_for
            4
        """
        return self.settings.node.gpus // self.gpus

    @property
    def longer_writes(self) -> float:
        """How much longer a write to flash is priced than one GPU of the node takes for it.

        Example:
            >>> Plan(Settings.choose()).longer_writes
            1.0
        """
        if self.part is None:
            return 1.0
        writes = self.part.slowest_writes
        return self.part.slowest if writes is None else writes

    def with_stopping(self, stopping: Stopping) -> Plan:
        """The same plan with another end."""
        return replace(self, stopping=stopping)

    def with_journal(self, journal: Journal) -> Plan:
        """The same plan with somebody who listens."""
        return replace(self, journal=journal)

    def cost(self) -> _engine.StepCost:
        """The price of a step; see `lachesis.simulation.pricing.step_cost`."""
        return step_cost(self.settings, self.step_time_s, self.part)

    def engine_config(
        self,
        workload: _engine.Workload,
        policy: Policy,
        load: Load,
        cost: _engine.StepCost,
        scores: NDArray[np.float64] | None = None,
    ) -> dict[str, Any]:
        """The settings of `_engine.replay` for one policy at one load.

        `scores` holds a lifetime a segment of the workload for policies that rank workers, NaN
        where there is none.

        Raises:
            InputError: the policy ranks workers and there are no scores.
        """
        if policy.ranking is not None and scores is None:
            raise InputError(
                "ranks workers, which needs a score each", field="policy", value=policy.name
            )
        settings = self.settings
        capacity, latency, slo = settings.kv_capacity(), settings.latency, settings.slo
        for tier, blocks in (("HBM", capacity.hbm_blocks), ("HBF", capacity.hbf_blocks)):
            if blocks >= BLOCKS_MAX:
                raise InfeasibleError(
                    f"a GPU has {blocks} KV blocks of {tier}, must be fewer than {BLOCKS_MAX}: use "
                    "larger blocks (node.block_tokens)"
                )
        means = latency.tool_means()
        lognormal = latency.tool_distribution == "lognormal"
        return {
            "gpus": self.gpus,
            "hbm_blocks": capacity.hbm_blocks,
            "hbf_blocks": capacity.hbf_blocks,
            "block_tokens": settings.node.block_tokens,
            "slots": settings.hardware.max_sequences,
            "ttft_reference_s": latency.ttft_ref_s,
            "cost": cost,
            "load": {
                "kind": load.kind,
                # Rounded up, so that a load is never 0.
                "sessions": -(-load.sessions // self.gpus_stood_for),
                "ramp_s": self.ramp_s(workload),
                "sessions_per_s": load.sessions_per_s / self.gpus_stood_for,
            },
            "draws": None,
            "scores": None if policy.ranking is None and policy.python is None else scores,
            "seed": self.seed,
            "tool_mean_s": [means[name] for name in TOOL_CLASSES],
            "tool_sigma": latency.tool_sigma if lognormal else None,
            "user_median_s": latency.user_median_s,
            "user_sigma": latency.user_sigma,
            "turn_end": settings.node.turn_end,
            "landing": settings.node.landing,
            "aged": self.aged,
            "ttft_limit_s": slo.ttft_p99_s,
            "tpot_limit_s": slo.tpot_p99_s,
            "timeline_interval_s": self.timeline_interval_s,
            "keep_requests": False,
            "check_blocks": False,
        }

    def ramp_s(self, workload: _engine.Workload) -> float:
        """Seconds over which the first sessions of a closed load start: a session's mean duration.

        At `SESSION_TPOT_S` and mean delays; the mean of a log-normal is median · exp(σ²/2). A day
        at the most.
        """
        latency = self.settings.latency
        means = latency.tool_means()
        user_mean_s = latency.user_median_s * math.exp(latency.user_sigma**2 / 2)
        mean_s = workload.mean_duration_s(
            SESSION_TPOT_S,
            latency.ttft_ref_s,
            [means[name] for name in TOOL_CLASSES],
            user_mean_s,
        )
        return min(mean_s, 86_400.0)

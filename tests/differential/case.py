"""What the two simulators are given and what they give back; times are integers of picoseconds.

A `Workload` and a `Config` make one *case*. Both simulators must answer it with equal `Result`s.
"""

from __future__ import annotations

from dataclasses import dataclass, field

CLASSES = (
    "prompt",
    "reasoning-laden",
    "reasoning-stripped",
    "lead",
    "worker",
    "reviewer",
    "summary",
)
EDGE_KINDS = ("tool", "spawn", "return", "user")
BOUNDARIES = (
    "turn_end",
    "subagent_return",
    "session_end",
    "compaction",
    "request_end",
    "reset",
)
HBM, HBF = 0, 1


@dataclass(frozen=True)
class Request:
    after: list[tuple[int, str, int | None]]  # (predecessor, edge kind, delay in ps; None: drawn)
    uses: list[tuple[int, int]]  # (segment, tokens written into it), in context order
    output_segment: int
    output_tokens: int
    tools: list[int] = field(default_factory=list)  # classes of the calls that the output makes

    @property
    def user_predecessors(self) -> list[int]:
        return [before for before, kind, _ in self.after if kind == "user"]


@dataclass(frozen=True)
class Segment:
    segment_class: str
    prefix_key: int | None = None
    closed_by: str = "session_end"
    closed_after: int | None = None
    score: float | None = None  # a predicted lifetime, of which only the order counts


@dataclass(frozen=True)
class Session:
    requests: list[Request]
    segments: list[Segment]
    start_ps: int = 0


@dataclass(frozen=True)
class Workload:
    sessions: list[Session]


@dataclass(frozen=True)
class Ranking:
    """How workers are ranked: the options of `docs/policies.md`."""

    ranked_against: str = "live-workers"  # or 'workers-in-hbm'
    capacity: str = "total"  # or 'free'
    reserve: str = "expected"  # or 'live' or 'nothing'
    margin: float = 1.0


@dataclass(frozen=True)
class Policy:
    """The tier that each class is written to, and the habits that tell policies apart."""

    name: str
    targets: dict[str, int]
    falls_back: bool  # a block is drawn from the other tier when the target's is empty
    keeps: bool  # boundaries free nothing; what nobody reads is reclaimed when memory is full
    ranking: Ranking | None = None  # a worker goes to its target only if its rank allows

    def target(self, segment: Segment) -> int:
        """The tier that a segment is placed in by what it is."""
        if self.name == "hbm-only" and segment.prefix_key is None:
            return HBM  # only prompts that sessions share may lie in flash
        return self.targets[segment.segment_class]


ALL_TO_HBM, ALL_TO_HBF = dict.fromkeys(CLASSES, HBM), dict.fromkeys(CLASSES, HBF)
SHORT_LIVED_TO_HBM = ALL_TO_HBF | dict.fromkeys(("worker", "reviewer", "reasoning-laden"), HBM)
POLICIES = {
    policy.name: policy
    for policy in (
        Policy("hbm-first", ALL_TO_HBM, falls_back=True, keeps=True),
        Policy("hbf-only", ALL_TO_HBF, falls_back=False, keeps=False),
        Policy("hbm-only", ALL_TO_HBM | {"prompt": HBF}, falls_back=False, keeps=False),
        Policy("lachesis-deterministic", SHORT_LIVED_TO_HBM, falls_back=True, keeps=False),
        Policy("lachesis", SHORT_LIVED_TO_HBM, True, False, Ranking()),
        Policy("lachesis-oracle", SHORT_LIVED_TO_HBM, True, False, Ranking()),
    )
}


RANKING_POLICIES = [name for name, policy in POLICIES.items() if policy.ranking]


@dataclass(frozen=True)
class StepCost:
    local_ps: list[int]  # by the running requests of a GPU, from 0
    shared_ps: list[int]  # by the running requests of the node, from 0
    context_ps: int = 0
    window_ps: int = 0
    window: int = 0  # 0: no windowed layers
    window_kind: str = "sliding"  # or 'chunked'
    flush_ps: int = 0
    overhead_ps: int = 0


@dataclass(frozen=True)
class Drawing:
    """What the engine draws delays and arrivals from."""

    seed: int = 0
    tool_mean_s: tuple[float, ...] = ()  # by class of tool
    tool_sigma: float | None = None  # of a log-normal; None: exponential
    user_median_s: float = 1.0
    user_sigma: float = 1.0


@dataclass(frozen=True)
class Config:
    gpus: int
    hbm_blocks: int  # per GPU, as hbf_blocks
    hbf_blocks: int
    slots: int
    ttft_ref_ps: int
    cost: StepCost
    draws: list[int]  # the session that draw 0, 1, … takes; the run ends when all have ended
    policy: Policy
    block_tokens: int = 16
    turn_end: str = "last-output"  # or 'next-message'
    landing: str = "async"  # or 'sync'
    # Or ('closed', N, ramp_ps); or, for the engine alone, ('poisson', sessions_per_s).
    arrivals: tuple[str, int, int] | tuple[str, float] | tuple[str] = ("recorded",)
    drawing: Drawing = Drawing()  # the oracle draws nothing


def no_tokens() -> dict[str, list[int]]:
    return {name: [0, 0] for name in CLASSES}


@dataclass
class Result:
    end_ps: int = 0
    # (draw, request): ps by 'ready', 'admitted' (first), 'first_token' (if it has output), 'end'
    requests: dict[tuple[int, int], dict[str, int]] = field(default_factory=dict)
    materialised: dict[str, list[int]] = field(default_factory=no_tokens)  # class: [HBM, HBF]
    rematerialised: dict[str, list[int]] = field(default_factory=no_tokens)
    fallbacks: int = 0
    preemptions: int = 0
    session_losses: int = 0
    reclaimed_blocks: int = 0
    steps: int = 0
    free: list[list[int]] = field(default_factory=list)  # blocks by GPU and tier


class MemoryTooSmallError(Exception):
    """Nothing is left to lose, and the request (draw, request) still cannot have its blocks."""

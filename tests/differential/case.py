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
    after: list[tuple[int, str, int]]  # (predecessor, edge kind, delay in ps)
    uses: list[tuple[int, int]]  # (segment, tokens written into it), in context order
    output_segment: int
    output_tokens: int


@dataclass(frozen=True)
class Segment:
    segment_class: str
    prefix_key: int | None = None
    closed_by: str = "session_end"
    closed_after: int | None = None


@dataclass(frozen=True)
class Session:
    requests: list[Request]
    segments: list[Segment]
    start_ps: int = 0


@dataclass(frozen=True)
class Workload:
    sessions: list[Session]


@dataclass(frozen=True)
class Policy:
    """The tier that each class is written to, and the two habits that tell policies apart."""

    name: str
    targets: dict[str, int]
    falls_back: bool  # a block is drawn from the other tier when the target's is empty
    keeps: bool  # boundaries free nothing; what nobody reads is reclaimed when memory is full


ALL_TO_HBM, ALL_TO_HBF = dict.fromkeys(CLASSES, HBM), dict.fromkeys(CLASSES, HBF)
SHORT_LIVED_TO_HBM = ALL_TO_HBF | dict.fromkeys(("worker", "reviewer", "reasoning-laden"), HBM)
POLICIES = {
    policy.name: policy
    for policy in (
        Policy("hbm-first", ALL_TO_HBM, falls_back=True, keeps=True),
        Policy("hbf-only", ALL_TO_HBF, falls_back=False, keeps=False),
        Policy("hbm-only", ALL_TO_HBM | {"prompt": HBF}, falls_back=False, keeps=False),
        Policy("lachesis-deterministic", SHORT_LIVED_TO_HBM, falls_back=True, keeps=False),
    )
}


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
    arrivals: tuple[str, int, int] | tuple[str] = ("recorded",)  # or ('closed', N, ramp_ps)


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

"""The Rust engine. Use `lachesis.simulation`; these are its raw calls.

Offsets are int64 with a leading 0; request and segment numbers are local to their session.
"""

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LIFETIME_FLOOR_S",
    "BlockPool",
    "EngineError",
    "FeatureSpec",
    "Placement",
    "PolicyNode",
    "PolicySegment",
    "Predictor",
    "SpawnFeatures",
    "StepCost",
    "Workload",
    "__version__",
    "device_years",
    "operators",
    "price",
    "replay",
    "tool_delay_ps",
    "user_delay_ps",
]

__version__: str
LIFETIME_FLOOR_S: float

class EngineError(Exception):
    """An error of the core; ``args`` are kind, message and place (session, field, row) or None."""

@final
class Workload:
    """The sessions that are replayed, validated."""

    def __new__(
        cls,
        *,
        session_request_offsets: NDArray[np.int64],
        session_segment_offsets: NDArray[np.int64],
        session_start_s: NDArray[np.float64],
        edge_offsets: NDArray[np.int64],
        edge_request: NDArray[np.int32],
        edge_kind: NDArray[np.uint8],
        edge_delay_s: NDArray[np.float64],
        use_offsets: NDArray[np.int64],
        use_segment: NDArray[np.int32],
        use_written: NDArray[np.int64],
        output_segment: NDArray[np.int32],
        output_tokens: NDArray[np.int64],
        tool_offsets: NDArray[np.int64],
        tool_class: NDArray[np.uint8],
        segment_class: NDArray[np.uint8],
        segment_prefix: NDArray[np.int32],
        segment_closed_by: NDArray[np.uint8],
        segment_closed_after: NDArray[np.int32],
    ) -> Workload: ...
    @property
    def sessions(self) -> int:
        """How many sessions."""
    @property
    def requests(self) -> int:
        """How many requests, over all sessions."""
    def mean_duration_s(
        self, tpot_s: float, ttft_s: float, tool_mean_s: Sequence[float], user_mean_s: float
    ) -> float:
        """Mean time that a session takes at these mean costs and delays."""
    def draw_order(self, seed: int, epoch: int) -> list[int]:
        """The order in which sessions are drawn in one epoch."""

@final
class StepCost:
    """What a decode step costs, in integers of picoseconds (``docs/engine.md``)."""

    def __new__(
        cls,
        *,
        local_ps: Sequence[int],
        shared_ps: Sequence[int],
        context_ps: int = 0,
        window_ps: int = 0,
        window: int = 0,
        window_kind: str = "sliding",
        flush_ps: int = 0,
        overhead_ps: int = 0,
    ) -> StepCost: ...
    @staticmethod
    def constant(step_s: float, slots: int, gpus: int) -> StepCost:
        """A step that always takes the same time."""
    def of_a_part(self, gpus: int, slowest: float) -> StepCost:
        """The price where each simulated GPU stands for `gpus` of the node.

        What all GPUs share is looked up at so many times the simulated batch, and what a GPU does
        alone takes `slowest` times as long, since the slowest of more GPUs is slower.
        """
    @property
    def local_ps(self) -> list[int]:
        """GPU-local part by batch size, from 0."""
    @property
    def shared_ps(self) -> list[int]:
        """Shared part by the node's batch size, from 0."""
    @property
    def context_ps(self) -> int:
        """Per token read by full-context layers."""
    @property
    def window_ps(self) -> int:
        """Per token read by windowed layers."""
    @property
    def window(self) -> int:
        """Tokens of the window; 0 without one."""
    @property
    def flush_ps(self) -> int:
        """Per token flushed to flash at the step's end."""
    @property
    def overhead_ps(self) -> int:
        """Fixed part of every step."""
    @property
    def tier_reads_ps(self) -> tuple[list[int], list[int]] | None:
        """(HBM, HBF) a token, of full and windowed layers, where each tier has its own stacks."""

@final
class BlockPool:
    """A two-tier pool of block ids, HBM's first. A call that fails changes nothing."""

    def __new__(cls, hbm_blocks: int, hbf_blocks: int) -> BlockPool: ...
    def alloc(
        self, tier: str, blocks: int = 1, *, falls_back: bool = True, segment: int | None = None
    ) -> list[int]:
        """Draw blocks from a tier's list, and from the other's when it is empty."""
    def free(self, blocks: Sequence[int], *, segment: int | None = None) -> None:
        """Return blocks to the lists they came from: all, or none if one cannot be freed."""
    def free_blocks(self, tier: str) -> int:
        """Blocks on a tier's free list."""
    def tier_of(self, block: int) -> str:
        """The tier of a block."""
    @property
    def fallbacks(self) -> int:
        """Blocks drawn from the other tier."""
    def check(self) -> None:
        """Count every block."""

@final
class FeatureSpec:
    """Which features of a spawn record a predictor reads (``docs/predictor.md``)."""

    def __new__(cls, *, words: bool, word_buckets: int, tool_buckets: int) -> FeatureSpec: ...
    @property
    def width(self) -> int:
        """Features that there are."""
    def extract(
        self,
        *,
        instruction: Sequence[str | None],
        context: Sequence[str | None],
        instruction_tokens: Sequence[int | None],
        context_tokens: Sequence[int | None],
        tools: Sequence[Sequence[str]],
        position: Sequence[int],
    ) -> SpawnFeatures:
        """Extract the features of records, given by columns of the spawn table."""

@final
class SpawnFeatures:
    """Sparse features of many spawn records, one row each."""

    def __len__(self) -> int: ...
    def csr(self) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64]]:
        """Offsets of the rows, indices (ascending in each row) and values."""
    def take(self, rows: Sequence[int]) -> SpawnFeatures:
        """Some rows, in the order asked for."""

@final
class Predictor:
    """Scores spawns: the lower, the shorter the worker is expected to live."""

    @staticmethod
    def linear(spec: FeatureSpec, intercept: float, weights: NDArray[np.float64]) -> Predictor:
        """Fixed weights, one a feature."""
    @staticmethod
    def online(spec: FeatureSpec, alpha: float) -> Predictor:
        """Weights that learn, from nothing."""
    @staticmethod
    def online_from(
        spec: FeatureSpec,
        intercept: tuple[float, float],
        weights: NDArray[np.float64],
        variances: NDArray[np.float64],
        workers: int,
    ) -> Predictor:
        """Weights that go on from a state (the intercept with its variance)."""
    def linear_state(self) -> tuple[float, NDArray[np.float64]] | None:
        """Intercept and weights; None for weights that learn."""
    def online_state(
        self,
    ) -> tuple[tuple[float, float], NDArray[np.float64], NDArray[np.float64], int] | None:
        """Intercept and its variance, weights, variances, workers; None for fixed weights."""
    def score(self, features: SpawnFeatures) -> NDArray[np.float64]:
        """One score a row."""
    def learn(self, features: SpawnFeatures, lifetime_s: NDArray[np.float64]) -> None:
        """Take in workers that returned, in order: all, or none if a lifetime is impossible."""

@final
class Placement:
    """The live placement layer over real block ids. Use `lachesis.placement.Placement`."""

    def __new__(
        cls,
        hbm_blocks: int,
        hbf_blocks: int,
        *,
        policy: dict[str, Any],
        turn_end_strips: bool = True,
        keeps_prompts: bool = False,
        reap_after_s: float | None = None,
    ) -> Placement: ...
    def open(
        self,
        segment: int | str,
        kind: str,
        session: int | str,
        *,
        closes: str | None = None,
        parent: int | str | None = None,
        score: float | None = None,
        is_spawn: bool = False,
        event: int | str | None = None,
        now_s: float | None = None,
    ) -> tuple[int, str, int]:
        """Generation, tier, and the sub-agents that the session had spawned before."""
    def refuse_reentry(self) -> None:
        """Raise if this thread is inside a call already."""
    def spawns(self, session: int | str) -> int:
        """Sub-agents that a session has spawned so far."""
    def plan(
        self,
        segment: int | str,
        blocks: int,
        *,
        generation: int | None = None,
        engine_free: tuple[int, int] | None = None,
    ) -> list[str]:
        """Tiers of the next blocks; `engine_free` is what the engine has of each."""
    def commit(
        self,
        segment: int | str,
        blocks: Sequence[int],
        *,
        generation: int | None = None,
        event: int | str | None = None,
        now_s: float | None = None,
    ) -> None:
        """Enter blocks that were drawn."""
    def adopt(
        self,
        segment: int | str,
        blocks: Sequence[int],
        *,
        generation: int | None = None,
        cached: bool = False,
        event: int | str | None = None,
        now_s: float | None = None,
    ) -> None:
        """Hold blocks that are written already."""
    def free(
        self,
        segment: int | str,
        blocks: Sequence[int],
        *,
        generation: int | None = None,
        now_s: float | None = None,
    ) -> dict[str, Any]:
        """Take blocks from a live segment."""
    def boundary(
        self,
        kind: str,
        session: int | str,
        *,
        segment: int | str | None = None,
        generation: int | None = None,
        event: int | str | None = None,
        now_s: float | None = None,
    ) -> dict[str, Any]:
        """Take a context boundary."""
    def start_request(
        self, request: int | str, segments: Sequence[int | str], *, now_s: float | None = None
    ) -> None:
        """A request runs on segments."""
    def finish_request(
        self, request: int | str, *, aborted: bool = False, now_s: float | None = None
    ) -> dict[str, Any]:
        """A request has ended."""
    def reap(self, *, now_s: float | None = None) -> dict[str, Any]:
        """Close what is idle."""
    def reclaim(self, blocks: int, *, tier: str | None = None) -> dict[str, Any]:
        """Free blocks of ended segments."""
    def blocks(self, segment: int | str, *, generation: int | None = None) -> list[int]:
        """Blocks of a live segment."""
    def tier_of(self, block: int) -> str:
        """The tier of a block."""
    def check(self) -> None:
        """Count every block."""
    def stats(self) -> dict[str, Any]:
        """What is held, and what happened."""
    @property
    def table_bytes(self) -> int:
        """Bytes of the segment table."""

@final
class PolicySegment:
    """What a policy in Python is told of a segment."""

    @property
    def kind(self) -> str: ...
    @property
    def gpu(self) -> int: ...
    @property
    def session(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def score(self) -> float | None: ...

@final
class PolicyNode:
    """What a policy in Python may look at."""

    @property
    def hbm_free(self) -> int: ...
    @property
    def hbf_free(self) -> int: ...
    @property
    def hbm_total(self) -> int: ...
    @property
    def hbf_total(self) -> int: ...
    @property
    def node_hbm_free(self) -> int: ...
    @property
    def node_hbf_free(self) -> int: ...
    @property
    def gpus(self) -> int: ...

def replay(
    workload: Workload,
    config: dict[str, Any],
    policy: dict[str, Any],
    stop: dict[str, Any],
    observe: Callable[[float, int, float], object] | None = None,
    journal: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Replay a workload; `observe` hears simulated seconds, requests ended and the share done.

    `journal` has `flash` (whether writes and trims of flash are told), `segments` (whether events
    of segments are), `window_s` (from when to when requests, instants and steps are told, or None)
    and `deliver`, which is called with a dict of columns for each of `flash`, `segments`, `slices`,
    `instants` and `steps`. It changes no result.
    """

def tool_delay_ps(
    seed: int, draw: int, request: int, call: int, *, mean_s: float, sigma: float | None = None
) -> int:
    """Picoseconds that a replay draws for the `call`-th tool that `request` of a draw calls.

    Exponential with this mean, or log-normal with this mean and `sigma`; at most 30 days.
    """

def user_delay_ps(seed: int, draw: int, request: int, *, median_s: float, sigma: float) -> int:
    """Picoseconds that a replay draws for the user's delay before `request` of a draw.

    Log-normal, at most 30 days.
    """

def price(model: dict[str, Any], gpu: dict[str, Any], slots: int) -> StepCost:
    """Price a model on a GPU (``docs/pricing.md``)."""

def operators(model: dict[str, Any], batch: int) -> list[tuple[str, float, float, float]]:
    """GPU-local operators of a step: name, runs, FLOPs and bytes of one run."""

def device_years(
    capacity_bytes: float, pe_cycles: float, write_amplification: float, bytes_per_second: float
) -> float:
    """Years until the flash has spent its program/erase cycles."""

"""Delays outside the engine, reference times, and the latency targets (SLOs)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lachesis.presets.base import NonNegativeFloat, Part, PositiveFloat, Preset
from lachesis.presets.loader import load_preset

#: Spread of a log-normal: at 10 its mean is e^50 times its median, past any delay that is played.
Sigma = Annotated[float, Meta(ge=0, le=10)]

DEFAULT_LATENCY = "paper"
DEFAULT_SLO = "tight"


class ToolMeans(Part, frozen=True, kw_only=True):
    """Mean duration of a call by tool class, in seconds; the fields are a trace's class names."""

    retrieval: NonNegativeFloat
    environment: NonNegativeFloat
    calculator: NonNegativeFloat
    human: NonNegativeFloat
    image: NonNegativeFloat
    speech: NonNegativeFloat
    spawn: NonNegativeFloat
    other: NonNegativeFloat


class LatencyPreset(Preset, frozen=True, kw_only=True):
    """User delay (log-normal: median and σ of its logarithm), tool latencies, reference times.

    Tool latencies are drawn around the mean of their class: exponential, or log-normal with
    `tool_sigma`, which real shell latencies resemble more.
    """

    tpot_ref_s: PositiveFloat
    ttft_ref_s: NonNegativeFloat
    user_median_s: PositiveFloat
    user_sigma: Sigma
    tool_distribution: Literal["exponential", "lognormal"]
    tool_sigma: Sigma
    tool_mean_s: ToolMeans

    def tool_means(self) -> dict[str, float]:
        """Mean seconds of a call by tool class, in the order of the fields.

        Example:
            >>> load_latency().tool_means()["retrieval"]
            0.69
        """
        return {name: getattr(self.tool_mean_s, name) for name in ToolMeans.__struct_fields__}


class SloPreset(Preset, frozen=True, kw_only=True):
    """A latency target: the 99th percentiles that a load must keep."""

    tpot_p99_ms: PositiveFloat
    ttft_p99_s: PositiveFloat

    @property
    def tpot_p99_s(self) -> float:
        """The TPOT target in seconds."""
        return self.tpot_p99_ms / 1e3


def load_latency(name: str = DEFAULT_LATENCY) -> LatencyPreset:
    """Load a latency model by name, or from a TOML file of the user's.

    Raises:
        InputError: unknown name, or a file that is missing, broken or out of range.

    Example:
        >>> load_latency().user_median_s
        120.0
    """
    return load_preset("latency", name, LatencyPreset)


def load_slo(name: str = DEFAULT_SLO) -> SloPreset:
    """Load an SLO by name, or from a TOML file of the user's.

    Raises:
        InputError: unknown name, or a file that is missing, broken or out of range.

    Example:
        >>> [load_slo(name).tpot_p99_ms for name in ("tight", "loose")]
        [60.0, 100.0]
    """
    return load_preset("slo", name, SloPreset)

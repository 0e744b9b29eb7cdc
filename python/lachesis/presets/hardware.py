"""GPUs: stacks, bandwidths, compute and the link between GPUs."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lachesis.presets.base import Efficiency, NonNegativeFloat, PositiveFloat, PositiveInt, Preset
from lachesis.presets.loader import load_preset
from lachesis.presets.memory import MemorySplit, SplitError
from lachesis.presets.sizes import GB, TB

DEFAULT_HARDWARE = "rubin-hbf"


class HardwarePreset(Preset, frozen=True, kw_only=True):
    """One GPU, with the stacks that its slots can carry.

    The three ``hbf_…`` fields are given together or not at all; a GPU without them takes splits
    without HBF only. NVLink stands for the vendor's own scale-up link. `fp8_tflops`, `fp4_tflops`
    and `tdp_w` are shown in listings and price nothing.
    """

    slots: PositiveInt
    hbm_gb_per_stack: PositiveFloat
    hbm_read_tb_per_s_per_stack: PositiveFloat
    hbf_gb_per_stack: PositiveFloat | None = None
    hbf_read_tb_per_s_per_stack: PositiveFloat | None = None
    hbf_write_gb_per_s_per_stack: PositiveFloat | None = None
    bf16_tflops: PositiveFloat
    fp8_tflops: PositiveFloat | None = None
    fp4_tflops: PositiveFloat | None = None
    nvlink_gb_per_s_per_direction: PositiveFloat
    nvlink_latency_us: NonNegativeFloat
    tdp_w: PositiveFloat | None = None
    compute_efficiency: Efficiency
    memory_efficiency: Efficiency
    step_overhead_ms: NonNegativeFloat
    max_sequences: Annotated[int, Meta(ge=1, le=65_536)]

    def __post_init__(self) -> None:
        given = [value is not None for value in self._hbf_fields()]
        if any(given) and not all(given):
            raise ValueError(
                "hbf_gb_per_stack, hbf_read_tb_per_s_per_stack and hbf_write_gb_per_s_per_stack "
                "must be given together"
            )

    def _hbf_fields(self) -> tuple[float | None, float | None, float | None]:
        return (
            self.hbf_gb_per_stack,
            self.hbf_read_tb_per_s_per_stack,
            self.hbf_write_gb_per_s_per_stack,
        )

    @property
    def has_hbf(self) -> bool:
        """Whether the preset says what a HBF stack of this GPU is."""
        return self.hbf_gb_per_stack is not None

    @property
    def bf16_flops(self) -> float:
        """Peak dense BF16 FLOP/s."""
        return self.bf16_tflops * 1e12

    @property
    def nvlink_bytes_per_s(self) -> float:
        """Scale-up link, one direction."""
        return self.nvlink_gb_per_s_per_direction * GB

    @property
    def nvlink_latency_s(self) -> float:
        """Fixed time of one exchange over the scale-up link."""
        return self.nvlink_latency_us / 1e6

    @property
    def step_overhead_s(self) -> float:
        """Fixed part of every decode step."""
        return self.step_overhead_ms / 1e3

    def check_memory(self, memory: MemorySplit) -> None:
        """Check that a split fills the slots of this GPU with stacks that it has.

        Raises:
            SplitError: the split does not add up to the slots, or needs HBF that is not defined.
        """
        memory.check_slots(self.slots)
        if memory.hbf_stacks and not self.has_hbf:
            raise SplitError(
                f"{self.name} has no HBF: use {self.slots}/0, or choose a flash preset with a "
                "stack, or set hardware.hbf_gb_per_stack, hardware.hbf_read_tb_per_s_per_stack "
                "and hardware.hbf_write_gb_per_s_per_stack",
                field="memory",
                value=str(memory),
            )

    def hbm_bytes(self, memory: MemorySplit) -> int:
        """HBM of one GPU, in bytes."""
        return memory.hbm_stacks * round(self.hbm_gb_per_stack * GB)

    def hbf_bytes(self, memory: MemorySplit) -> int:
        """HBF of one GPU, in bytes, weights area included."""
        return memory.hbf_stacks * round((self.hbf_gb_per_stack or 0.0) * GB)

    def hbm_read_bytes_per_s(self, memory: MemorySplit) -> float:
        """Read bandwidth of the HBM stacks of one GPU."""
        return memory.hbm_stacks * (self.hbm_read_tb_per_s_per_stack * TB)

    def hbf_read_bytes_per_s(self, memory: MemorySplit) -> float:
        """Read bandwidth of the HBF stacks of one GPU; 0 without HBF."""
        return memory.hbf_stacks * ((self.hbf_read_tb_per_s_per_stack or 0.0) * TB)

    def pooled_read_bytes_per_s(self, memory: MemorySplit) -> float:
        """Read bandwidth of all slots of one GPU together.

        On the daisy chain HBF is read through the HBM stack in front of it, so the slots give
        what their HBM stacks give.

        Example:
            >>> gpu = load_hardware("rubin-hbf")
            >>> [gpu.pooled_read_bytes_per_s(MemorySplit.parse(m)) / 1e12
            ...  for m in ("1/7", "4/4", "8/8*")]
            [12.8, 12.8, 12.8]
        """
        if memory.chain:
            return self.hbm_read_bytes_per_s(memory)
        return self.hbm_read_bytes_per_s(memory) + self.hbf_read_bytes_per_s(memory)

    def hbf_write_bytes_per_s(self, memory: MemorySplit) -> float:
        """Write bandwidth of the HBF stacks of one GPU; 0 without HBF."""
        return memory.hbf_stacks * ((self.hbf_write_gb_per_s_per_stack or 0.0) * GB)


def load_hardware(name: str = DEFAULT_HARDWARE) -> HardwarePreset:
    """Load a GPU by name, or from a TOML file of the user's (a path that ends in ``.toml``).

    Raises:
        InputError: unknown name, or a file that is missing, broken or out of range.

    Example:
        >>> gpu = load_hardware()
        >>> gpu.slots, gpu.hbm_gb_per_stack, gpu.hbf_gb_per_stack
        (8, 36.0, 512.0)
    """
    return load_preset("gpus", name, HardwarePreset)

"""Flash: endurance, geometry and times of a HBF stack."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lachesis.presets.base import NonNegativeFloat, Part, PositiveFloat, PositiveInt, Preset
from lachesis.presets.loader import load_preset
from lachesis.presets.sizes import GB

DEFAULT_FLASH = "hbf-slc"


class HbfStack(Part, frozen=True, kw_only=True):
    """Capacity and bandwidth of a product's stack; they replace those of the GPU preset."""

    hbf_gb_per_stack: PositiveFloat
    hbf_read_tb_per_s_per_stack: PositiveFloat
    hbf_write_gb_per_s_per_stack: PositiveFloat


class FlashPreset(Preset, frozen=True, kw_only=True):
    """The flash of one stack.

    Endurance enters device-years, and so does `refresh_hours`: every so often whatever is live in
    flash, weights included, is written anew to keep it readable (0: never). Page, erase block,
    planes and dies shape the erase-block level device; `read_us`, `program_us` and `erase_us` are
    its operation times.
    """

    pe_cycles: PositiveInt
    write_amplification: Annotated[float, Meta(ge=1, le=1e6)]
    seconds_per_year: PositiveInt
    warranty_years: PositiveFloat
    refresh_hours: NonNegativeFloat
    dies: PositiveInt
    planes_per_die: PositiveInt
    page_bytes: PositiveInt
    erase_block_bytes: PositiveInt
    read_us: PositiveFloat
    program_us: PositiveFloat
    erase_us: PositiveFloat
    stack: HbfStack | None = None

    def __post_init__(self) -> None:
        if self.erase_block_bytes % self.page_bytes:
            raise ValueError("erase_block_bytes must be a multiple of page_bytes")

    @property
    def planes(self) -> int:
        """Planes of a stack."""
        return self.dies * self.planes_per_die

    @property
    def pages_per_erase_block(self) -> int:
        """Pages in one erase block."""
        return self.erase_block_bytes // self.page_bytes

    @property
    def program_gb_per_s_per_stack(self) -> float:
        """Write bandwidth by dies x planes x page / program time (Son et al.), in GB/s.

        Example:
            >>> round(load_flash().program_gb_per_s_per_stack, 3)
            16.384
        """
        return self.planes * self.page_bytes / (self.program_us / 1e6) / GB


def load_flash(name: str = DEFAULT_FLASH) -> FlashPreset:
    """Load a flash preset by name, or from a TOML file of the user's.

    Raises:
        InputError: unknown name, or a file that is missing, broken or out of range.

    Example:
        >>> flash = load_flash()
        >>> flash.pe_cycles, flash.write_amplification, flash.pages_per_erase_block
        (100000, 1.02, 1024)
    """
    return load_preset("flash", name, FlashPreset)

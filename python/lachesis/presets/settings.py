"""One choice of everything: model, GPU, flash, memory split, latencies, SLO and node."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from lachesis.presets.base import convert_preset
from lachesis.presets.capacity import KvCapacity, kv_capacity
from lachesis.presets.flash import DEFAULT_FLASH, FlashPreset, load_flash
from lachesis.presets.hardware import DEFAULT_HARDWARE, HardwarePreset, load_hardware
from lachesis.presets.latency import (
    DEFAULT_LATENCY,
    DEFAULT_SLO,
    LatencyPreset,
    SloPreset,
    load_latency,
    load_slo,
)
from lachesis.presets.memory import MemorySplit
from lachesis.presets.model import DEFAULT_MODEL, ModelPreset, load_model
from lachesis.presets.node import DEFAULT_NODE, NodePreset, load_node

DEFAULT_MEMORY = "2/6"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The presets of one simulation. Build it with `Settings.choose`, which checks the whole."""

    model: ModelPreset
    hardware: HardwarePreset
    flash: FlashPreset
    memory: MemorySplit
    latency: LatencyPreset
    slo: SloPreset
    node: NodePreset

    @classmethod
    def choose(
        cls,
        *,
        model: str = DEFAULT_MODEL,
        hardware: str = DEFAULT_HARDWARE,
        flash: str = DEFAULT_FLASH,
        memory: str = DEFAULT_MEMORY,
        latency: str = DEFAULT_LATENCY,
        slo: str = DEFAULT_SLO,
        node: str = DEFAULT_NODE,
    ) -> Settings:
        """Load every part by name, or by the path of a TOML file.

        A flash preset that describes a product's stack replaces capacity and bandwidth of the
        GPU's HBF stacks. Whether the split suits the GPU is checked by `check`, so that overrides
        may come in between.

        Raises:
            InputError: a name is unknown, a file is broken, or the split is malformed.

        Example:
            >>> settings = Settings.choose(memory="3/5", flash="sandisk-gen2")
            >>> settings.hardware.hbf_gb_per_stack, str(settings.memory)
            (1000.0, '3/5')
        """
        gpu, chosen_flash = load_hardware(hardware), load_flash(flash)
        gpu = with_flash_stack(gpu, chosen_flash)
        return cls(
            model=load_model(model),
            hardware=gpu,
            flash=chosen_flash,
            memory=MemorySplit.parse_for_any(memory, slots=gpu.slots),
            latency=load_latency(latency),
            slo=load_slo(slo),
            node=load_node(node),
        )

    def check(self) -> None:
        """Check what several parts decide together: slots, HBF and room for the weights.

        Raises:
            InfeasibleError: the split does not suit the GPU, or the weights do not fit.
        """
        self.kv_capacity()

    def kv_capacity(self) -> KvCapacity:
        """Blocks of KV in each tier of one GPU under these settings.

        Example:
            >>> round(Settings.choose(memory="1/7").kv_capacity().hbm_share, 4)
            0.0103
        """
        return _capacity_of(self)


# A result asks some twenty times for the capacity of the same settings.
@lru_cache(maxsize=256)
def _capacity_of(settings: Settings) -> KvCapacity:
    return kv_capacity(
        settings.model,
        settings.hardware,
        settings.memory,
        block_tokens=settings.node.block_tokens,
        gpus=settings.node.gpus,
        activation_reserve_bytes=settings.node.activation_reserve_bytes_per_gpu,
        windowed_kv=settings.node.windowed_kv,
        trim_context_tokens=settings.node.trim_context_tokens,
    )


def with_flash_stack(hardware: HardwarePreset, flash: FlashPreset) -> HardwarePreset:
    """The GPU with the HBF stacks of a flash product; unchanged if the preset describes none.

    Example:
        >>> gpu = with_flash_stack(load_hardware("h200-sxm"), load_flash("sandisk-gen1"))
        >>> gpu.hbf_gb_per_stack, gpu.source_of("hbf_gb_per_stack")[:7]
        (512.0, 'Sandisk')
    """
    if flash.stack is None:
        return hardware
    stack: dict[str, float] = msgspec.to_builtins(flash.stack)
    sources = dict(hardware.sources)
    sources.update({field: flash.source_of(f"stack.{field}") for field in stack})
    values = {**msgspec.to_builtins(hardware), **stack}
    return convert_preset(values, sources.items(), HardwarePreset, path=f"{flash.name}.toml")

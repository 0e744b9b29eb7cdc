"""Hardware, model and latency values as data, each number with its source.

Presets are TOML files beside this package; `load_model`, `load_hardware` and the rest read them
strictly (unknown keys, wrong types and values out of range are errors), and hand out frozen
structures. `Settings.choose` takes one of each; `apply_overrides` changes single values.

Example:
    >>> settings = Settings.choose(model="qwen3-235b-a22b", memory="1/7", slo="loose")
    >>> settings.model.kv_bytes_per_token, settings.slo.tpot_p99_s
    (192512, 0.1)
    >>> settings.hardware.source_of("nvlink_latency_us")[:10]
    'Son et al.'
"""

from lachesis.presets.base import Preset
from lachesis.presets.capacity import KvCapacity, kv_capacity
from lachesis.presets.flash import FlashPreset, HbfStack, load_flash
from lachesis.presets.hardware import HardwarePreset, load_hardware
from lachesis.presets.latency import LatencyPreset, SloPreset, ToolMeans, load_latency, load_slo
from lachesis.presets.listing import (
    PresetListing,
    PresetRow,
    describe_memory,
    describe_preset,
    iter_presets,
)
from lachesis.presets.loader import preset_names
from lachesis.presets.memory import MemorySplit, SplitError, split_names
from lachesis.presets.model import (
    LatentAttention,
    LayerGroup,
    ModelPreset,
    SparseAttention,
    load_model,
)
from lachesis.presets.node import NodePreset, load_node
from lachesis.presets.overrides import apply_override_file, apply_overrides, override_keys
from lachesis.presets.settings import Settings
from lachesis.presets.sizes import GB, GIB, KB, KIB, MB, MIB, TB, TIB, parse_bytes

__all__ = [
    "GB",
    "GIB",
    "KB",
    "KIB",
    "MB",
    "MIB",
    "TB",
    "TIB",
    "FlashPreset",
    "HardwarePreset",
    "HbfStack",
    "KvCapacity",
    "LatencyPreset",
    "LatentAttention",
    "LayerGroup",
    "MemorySplit",
    "ModelPreset",
    "NodePreset",
    "Preset",
    "PresetListing",
    "PresetRow",
    "Settings",
    "SloPreset",
    "SparseAttention",
    "SplitError",
    "ToolMeans",
    "apply_override_file",
    "apply_overrides",
    "describe_memory",
    "describe_preset",
    "iter_presets",
    "kv_capacity",
    "load_flash",
    "load_hardware",
    "load_latency",
    "load_model",
    "load_node",
    "load_slo",
    "override_keys",
    "parse_bytes",
    "preset_names",
    "split_names",
]

"""Every preset as rows of field, value, unit and source, for people to read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from lachesis.presets.base import Preset
from lachesis.presets.flash import FlashPreset, load_flash
from lachesis.presets.hardware import HardwarePreset, load_hardware
from lachesis.presets.latency import load_latency, load_slo
from lachesis.presets.loader import Kind, preset_names
from lachesis.presets.memory import MemorySplit, memory_source, split_names
from lachesis.presets.model import ModelPreset, load_model
from lachesis.presets.node import load_node

# Longest suffix first: "_gb_per_s_per_stack" must not be read as "_gb".
_UNIT_OF_SUFFIX = (
    ("_gb_per_s_per_direction", "GB/s per direction"),
    ("_tb_per_s_per_stack", "TB/s per stack"),
    ("_gb_per_s_per_stack", "GB/s per stack"),
    ("_bytes_per_value", "B per value"),
    ("_bytes_per_token", "B per token"),
    ("_bytes_per_token_beyond_window", "B per token"),
    ("_bytes_per_gpu", "B per GPU"),
    ("_gb_per_stack", "GB per stack"),
    ("_tb_per_s", "TB/s"),
    ("_gb_per_s", "GB/s"),
    ("_tflops", "TFLOP/s"),
    ("seconds_per_year", "s"),
    ("_efficiency", "share"),
    ("_amplification", "ratio"),
    ("_share", "share"),
    ("duty_cycle", "share"),
    ("_bytes", "B"),
    ("_tokens", "tokens"),
    ("_cycles", "P/E cycles"),
    ("_years", "years"),
    ("_hours", "h"),
    ("window", "tokens"),
    ("_blocks", "blocks"),
    ("_gb", "GB"),
    ("_ms", "ms"),
    ("_us", "µs"),
    ("_s", "s"),
    ("_w", "W"),
)


class PresetRow(NamedTuple):
    """One value: dotted field, value, unit ("" for counts and texts) and where it is from."""

    field: str
    value: object
    unit: str
    source: str


class PresetListing(NamedTuple):
    """One preset with all its rows."""

    kind: str
    name: str
    title: str
    rows: tuple[PresetRow, ...]


def iter_presets() -> Iterator[PresetListing]:
    """Every shipped preset, by kind and then by name; memory splits in the order of their HBM.

    Kinds: model, hardware, memory, flash, latency, slo, node.

    Example:
        >>> sorted({listing.kind for listing in iter_presets()})
        ['flash', 'hardware', 'latency', 'memory', 'model', 'node', 'slo']
    """
    for name in preset_names("models"):
        yield describe_preset(load_model(name))
    for name in preset_names("gpus"):
        yield describe_preset(load_hardware(name))
    gpu = load_hardware()
    for split in split_names(gpu.slots):
        yield describe_memory(MemorySplit.parse(split, slots=gpu.slots), gpu)
    for name in preset_names("flash"):
        yield describe_preset(load_flash(name))
    kinds: tuple[Kind, ...] = ("latency", "slo", "node")
    for kind in kinds:
        for name in preset_names(kind):
            loader = {"latency": load_latency, "slo": load_slo, "node": load_node}[kind]
            yield describe_preset(loader(name))


def describe_preset(preset: Preset) -> PresetListing:
    """The rows of one preset, read from files first and derived after.

    Example:
        >>> listing = describe_preset(load_hardware())
        >>> [(row.field, row.value, row.unit) for row in listing.rows if row.field == "slots"]
        [('slots', 8, '')]
    """
    sources = dict(preset.sources)
    rows = [
        PresetRow(field, value, unit_of(field), sources.get(field, ""))
        for field, value in _leaves(msgspec.to_builtins(preset), "")
        if field not in ("name", "title") and not field.startswith("sources")
    ]
    rows += _derived_rows(preset)
    return PresetListing(_kind_of(preset), preset.name, preset.title, tuple(rows))


def describe_memory(memory: MemorySplit, hardware: HardwarePreset) -> PresetListing:
    """Capacity and bandwidth of one split on one GPU."""
    note = f"derived: stacks of {hardware.name} times their number"
    rows = [
        PresetRow("hbm_stacks", memory.hbm_stacks, "", memory_source()),
        PresetRow("hbf_stacks", memory.hbf_stacks, "", memory_source()),
    ]
    for field, value in (
        ("hbm_gb", hardware.hbm_bytes(memory) / 1e9),
        ("hbf_gb", hardware.hbf_bytes(memory) / 1e9),
        ("pooled_read_tb_per_s", hardware.pooled_read_bytes_per_s(memory) / 1e12),
        ("hbf_write_gb_per_s", hardware.hbf_write_bytes_per_s(memory) / 1e9),
    ):
        rows.append(PresetRow(field, round(value, 6), unit_of(field), note))
    carried = "each slot carries HBM and HBF" if memory.chain else "slots shared out"
    title = f"{memory.hbm_stacks} HBM and {memory.hbf_stacks} HBF stacks a GPU, {carried}"
    return PresetListing("memory", str(memory), title, tuple(rows))


def unit_of(field: str) -> str:
    """The unit that a field's name carries; "" for counts, ratios without unit and texts.

    Example:
        >>> unit_of("hbf_write_gb_per_s_per_stack"), unit_of("tool_mean_s.speech"), unit_of("slots")
        ('GB/s per stack', 's', '')
    """
    steps = [step for step in reversed(field.split(".")) if not step.isdecimal()]
    for step in steps:
        for suffix, unit in _UNIT_OF_SUFFIX:
            if step.endswith(suffix):
                return unit
    return ""


def _kind_of(preset: Preset) -> str:
    return type(preset).__name__.removesuffix("Preset").lower()


def _leaves(node: object, prefix: str) -> Iterator[tuple[str, object]]:
    if isinstance(node, dict):
        for name, child in node.items():
            yield from _leaves(child, f"{prefix}.{name}" if prefix else name)
    elif isinstance(node, (list, tuple)):
        for index, child in enumerate(node):
            yield from _leaves(child, f"{prefix}.{index}")
    elif node is not None:
        yield prefix, node


def _derived_rows(preset: Preset) -> list[PresetRow]:
    if isinstance(preset, ModelPreset):
        derived: list[tuple[str, object]] = [
            ("params", preset.params),
            ("active_params", preset.active_params),
            ("routed_params", preset.routed_params),
            ("non_routed_params", preset.non_routed_params),
            ("kv_bytes_per_token", preset.kv_bytes_per_token),
            ("index_key_bytes_per_token", preset.index_key_bytes_per_token),
            ("kv_bytes_per_token_beyond_window", preset.kv_bytes_per_token_beyond_window),
        ]
        note = "derived from the shape above"
    elif isinstance(preset, FlashPreset):
        derived = [("program_gb_per_s_per_stack", round(preset.program_gb_per_s_per_stack, 6))]
        note = "derived: dies x planes x page / program time"
    else:
        return []
    return [PresetRow(field, value, unit_of(field), note) for field, value in derived]

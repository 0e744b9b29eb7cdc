"""Changing single values of the settings: ``--set KEY=VALUE`` and TOML files."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from lachesis.errors import InputError, printable
from lachesis.presets.base import Preset, PresetT, convert_preset, near_matches, value_at
from lachesis.presets.flash import FlashPreset
from lachesis.presets.hardware import HardwarePreset
from lachesis.presets.latency import LatencyPreset, SloPreset
from lachesis.presets.loader import read_toml
from lachesis.presets.memory import MemorySplit
from lachesis.presets.model import ModelPreset
from lachesis.presets.node import NodePreset
from lachesis.presets.settings import Settings
from lachesis.presets.sizes import parse_bytes

USER_SOURCE = "set by user"

_PARTS: dict[str, type[Preset]] = {
    "model": ModelPreset,
    "hardware": HardwarePreset,
    "flash": FlashPreset,
    "latency": LatencyPreset,
    "slo": SloPreset,
    "node": NodePreset,
}
_IDENTITY_FIELDS = frozenset({"name", "title", "sources"})

# Values that change no result: refused, because an override without effect would mislead.
_WITHOUT_EFFECT = {
    "hardware.fp8_tflops": "it is shown in listings only",
    "hardware.fp4_tflops": "it is shown in listings only",
    "hardware.tdp_w": "it is shown in listings only",
    "flash.seconds_per_year": "a year has 31,557,600 seconds",
    **dict.fromkeys(
        (
            "flash.dies",
            "flash.planes_per_die",
            "flash.page_bytes",
            "flash.erase_block_bytes",
            "flash.read_us",
            "flash.program_us",
            "flash.erase_us",
        ),
        "wear is computed from bytes written, write_amplification and pe_cycles",
    ),
    "flash.stack.hbf_gb_per_stack": "set hardware.hbf_gb_per_stack",
    "flash.stack.hbf_read_tb_per_s_per_stack": "set hardware.hbf_read_tb_per_s_per_stack",
    "flash.stack.hbf_write_gb_per_s_per_stack": "set hardware.hbf_write_gb_per_s_per_stack",
}


def apply_overrides(
    settings: Settings, overrides: Iterable[str], *, check: bool = True
) -> Settings:
    """Settings with some values replaced, each written ``KEY=VALUE``.

    Keys are dotted: a part (model, hardware, flash, latency, slo, node), then the field; entries
    of a list go by position (``model.layer_groups.0.window``). ``memory=3/5`` sets the split.
    Values are written as in TOML; texts need no quotes, and keys that end in ``_bytes`` or
    ``_bytes_per_gpu`` also take sizes such as ``2 GB``. All are applied together, in order; for a
    key given twice the last counts. The source of what is set becomes "set by user".

    Args:
        settings: what is changed.
        overrides: the changes.
        check: look whether the settings still fit together; else `Settings.check` may come later.

    Raises:
        InputError: a key is unknown (near matches are listed) or has no effect, or a value has the
            wrong type or range.
        InfeasibleError: the settings no longer fit together.

    Example:
        >>> settings = apply_overrides(Settings.choose(), ["flash.pe_cycles=30000"])
        >>> settings.flash.pe_cycles, settings.flash.source_of("pe_cycles")
        (30000, 'set by user')
    """
    changes: dict[str, object] = {}
    for text in overrides:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key or not value.strip():
            raise InputError("must be written KEY=VALUE", field="--set", value=text)
        changes[key] = _literal(value.strip())
    changed = _apply(settings, changes, source=USER_SOURCE, path="--set")
    if check:
        changed.check()
    return changed


def apply_override_file(settings: Settings, path: str | Path, *, check: bool = True) -> Settings:
    """Settings with the values of a TOML file, keys and `check` as for `apply_overrides`.

    The file holds a table for each part (``[hardware]``, ``[model]``, …) and may hold
    ``memory = "3/5"`` at its top.

    Raises:
        InputError: as `apply_overrides`, or the file cannot be read.
    """
    file = Path(path)
    changes = dict(_flatten(read_toml(file), ""))
    changed = _apply(
        settings, changes, source=f"{USER_SOURCE} in {printable(file.name)}", path=str(file)
    )
    if check:
        changed.check()
    return changed


def override_keys(settings: Settings) -> tuple[str, ...]:
    """Every key that `apply_overrides` takes for these settings, in the order of the fields.

    Example:
        >>> keys = override_keys(Settings.choose())
        >>> keys[0], "flash.pe_cycles" in keys
        ('memory', True)
    """
    keys = ["memory"]
    for part in _PARTS:
        for key, _ in _flatten(_plain(getattr(settings, part)), f"{part}."):
            keys.append(key)
    absent_tables = {"model.mla", "model.dsa", "flash.stack"}
    return tuple(k for k in keys if k not in _WITHOUT_EFFECT and k not in absent_tables)


def _apply(
    settings: Settings, changes: Mapping[str, object], *, source: str, path: str
) -> Settings:
    known = override_keys(settings)
    trees = {part: _plain(getattr(settings, part)) for part in _PARTS}
    set_keys: dict[str, list[str]] = {part: [] for part in _PARTS}
    for key, value in changes.items():
        if key in _WITHOUT_EFFECT:
            rule = f"has no effect here: {_WITHOUT_EFFECT[key]}"
            raise InputError(rule, path=path, field=key, value=value)
        if key not in known:
            raise InputError(f"unknown key; {_hint(key, known)}", path=path, field=key)
        if key != "memory":
            part, _, field = key.partition(".")
            _put(trees[part], field, _size(key, value, path))
            set_keys[part].append(field)
    parts = {
        part: _rebuild(getattr(settings, part), trees[part], set_keys[part], source, path, part)
        for part in _PARTS
    }
    memory = settings.memory
    if "memory" in changes:
        memory = _memory(changes["memory"], parts["hardware"], path)
    return msgspec.structs.replace(settings, memory=memory, **parts)


def _rebuild(
    old: PresetT, values: dict[str, object], fields: list[str], source: str, path: str, part: str
) -> PresetT:
    if not fields:
        return old
    sources = dict(old.sources)
    sources.update(dict.fromkeys(fields, source))
    try:
        return convert_preset(values, sources.items(), type(old), path=path)
    except InputError as error:
        # The conversion knows the field inside the part; the user knows the whole key.
        field = f"{part}.{error.field}" if error.field else part
        raise InputError(error.rule, path=path, field=field, value=error.value) from error


def _memory(value: object, hardware: Preset, path: str) -> MemorySplit:
    if not isinstance(value, str) or not isinstance(hardware, HardwarePreset):
        rule = 'must be a text such as "2/6"'
        raise InputError(rule, path=path, field="memory", value=value)
    try:
        return MemorySplit.parse_for_any(value, slots=hardware.slots)
    except InputError as error:
        raise error.located(path) from error


def _plain(preset: Preset) -> dict[str, object]:
    values: dict[str, object] = msgspec.to_builtins(preset)
    return {key: value for key, value in values.items() if key != "sources"}


def _flatten(node: object, prefix: str) -> Iterable[tuple[str, object]]:
    items: Iterable[tuple[str, object]]
    if isinstance(node, Mapping):
        items = node.items()
    elif isinstance(node, (list, tuple)) and node and isinstance(node[0], Mapping):
        items = ((str(i), child) for i, child in enumerate(node))
    else:
        yield prefix.removesuffix("."), node
        return
    for name, child in items:
        # Identity is a preset's, and stands directly under its part: "hardware.name".
        if not (prefix.count(".") == 1 and name in _IDENTITY_FIELDS):
            yield from _flatten(child, f"{prefix}{name}.")


def _put(tree: dict[str, object], field: str, value: object) -> None:
    above, _, name = field.rpartition(".")
    node = value_at(tree, above) if above else tree
    if isinstance(node, dict):
        node[name] = value


def _size(key: str, value: object, path: str) -> object:
    if not isinstance(value, str) or not key.endswith(("_bytes", "_bytes_per_gpu")):
        return value
    try:
        return parse_bytes(value, field=key)
    except InputError as error:
        raise error.located(path) from error


def _hint(key: str, known: Iterable[str]) -> str:
    part, _, field = key.partition(".")
    fields = [name.removeprefix(f"{part}.") for name in known if name.startswith(f"{part}.")]
    if not fields:
        return near_matches(key, known) if "." in key else near_matches(part, ["memory", *_PARTS])
    hint = near_matches(field, fields)
    return f"keys of {part}: {', '.join(fields)}" if hint.startswith("known") else hint


def _literal(text: str) -> object:
    """A TOML value, or the text itself where it is none (so that texts need no quotes)."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    # A text with a line break could smuggle in further keys.
    return parsed["value"] if len(parsed) == 1 else text

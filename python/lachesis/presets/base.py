"""What every preset has in common, and the strict conversion from plain values into one."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, inspect

from lachesis.errors import InputError

# Upper ends keep absurd input out of the engine's 64-bit arithmetic; no real value comes near.
_INT_MAX = 2**31 - 1
_FLOAT_MAX = 1e9

Count = Annotated[int, Meta(ge=0, le=_INT_MAX)]
PositiveInt = Annotated[int, Meta(ge=1, le=_INT_MAX)]
SizeBytes = Annotated[int, Meta(ge=0, le=2**62)]
PositiveFloat = Annotated[float, Meta(gt=0, le=_FLOAT_MAX)]
NonNegativeFloat = Annotated[float, Meta(ge=0, le=_FLOAT_MAX)]
Efficiency = Annotated[float, Meta(gt=0, le=1)]

# 4 bytes (FP32) is the widest format in which weights or KV are served.
BytesPerValue = Annotated[float, Meta(gt=0, le=4)]

_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(?P<field>[^`]*)`")
_LOCATION = re.compile(r" - at `\$?\.?(?P<location>[^`]*)`$")


class Preset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named set of values, each with the source it was taken from.

    `sources` holds (dotted field, source) pairs in the order of the fields in the file.
    """

    name: str
    title: str
    sources: tuple[tuple[str, str], ...] = ()

    def source_of(self, field: str) -> str:
        """The source of one field, by its dotted name, such as ``"layer_groups.0.window"``.

        Raises:
            KeyError: the field does not exist, or takes no value from a file.
        """
        return dict(self.sources)[field]


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table inside a preset. Its sources are kept by the preset."""


PresetT = TypeVar("PresetT", bound=Preset)


def convert_preset(
    values: Mapping[str, object],
    sources: Iterable[tuple[str, str]],
    preset_type: type[PresetT],
    *,
    path: str,
) -> PresetT:
    """Build a preset from plain values; types, ranges and unknown keys are checked.

    Args:
        values: nested dicts and lists, as TOML gives them, `name` included.
        sources: (dotted field, source) pairs.
        preset_type: what to build.
        path: the file or option the values came from, for errors.

    Raises:
        InputError: names `path`, the field, its value and the rule that it breaks.
    """
    _check_finite(values, "", path)
    try:
        return msgspec.convert({**values, "sources": tuple(sources)}, preset_type)
    except msgspec.ValidationError as error:
        raise _input_error(str(error), values, preset_type, path) from error


def near_matches(word: str, known: Iterable[str]) -> str:
    """A hint that lists what may have been meant, or everything where nothing is close.

    Example:
        >>> near_matches("tigth", ["tight", "loose"])
        'did you mean tight?'
        >>> near_matches("x", ["tight", "loose"])
        'known: tight, loose'
        >>> near_matches("llama4", ["llama-4-maverick", "kimi-k2"])
        'did you mean llama-4-maverick?'
    """
    choices = list(known)
    # People leave out punctuation and endings before they misspell: "llama4", "hbf_write".
    part = _letters(word)
    close = [choice for choice in choices if len(part) > 1 and part in _letters(choice)]
    close = close or difflib.get_close_matches(word, choices, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(close[:3])}?" if close else f"known: {', '.join(choices)}"


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _check_finite(node: object, key: str, path: str) -> None:
    # A range alone lets nan through: it is neither below nor above anything.
    if isinstance(node, float) and not math.isfinite(node):
        raise InputError("must be finite", path=path, field=key, value=node)
    children: Iterable[tuple[object, object]] = ()
    if isinstance(node, Mapping):
        children = node.items()
    elif isinstance(node, (list, tuple)):
        children = enumerate(node)
    for name, child in children:
        _check_finite(child, f"{key}.{name}" if key else str(name), path)


def _input_error(
    message: str, values: Mapping[str, object], preset_type: type[Preset], path: str
) -> InputError:
    located = _LOCATION.search(message)
    location = "" if located is None else located.group("location")
    steps = _steps(location, values, preset_type)
    rule = _LOCATION.sub("", message)
    if unknown := _UNKNOWN_FIELD.search(rule):
        name = unknown.group("field")
        struct = _struct_at(preset_type, steps)
        known = [] if struct is None else [field.encode_name for field in struct.fields]
        hint = near_matches(name, [field for field in known if field not in ("name", "sources")])
        return InputError(f"unknown key; {hint}", path=path, field=".".join([*steps, name]))
    rule = _reworded(rule, preset_type, steps)
    if not steps:
        return InputError(rule, path=path)
    field = ".".join(steps)
    return InputError(rule, path=path, field=field, value=value_at(values, field))


def _reworded(rule: str, preset_type: type[Preset], steps: list[str]) -> str:
    """The library's message in the words of this project's errors."""
    if rule.startswith("Invalid enum value") and steps:
        struct = _struct_at(preset_type, steps[:-1])
        for field in struct.fields if struct is not None else ():
            if field.encode_name == steps[-1] and isinstance(field.type, inspect.LiteralType):
                return f"must be one of {', '.join(str(v) for v in field.type.values)}"
    rule = rule.replace("Object missing required field", "must hold the key")
    rule = rule.replace("Expected ", "must be ").replace(", got ", ", not ").replace("`", "")
    return rule[:1].lower() + rule[1:]


def value_at(values: object, key: str) -> object:
    """The value at a dotted key of nested dicts and lists; None where there is none.

    Example:
        >>> value_at({"layer_groups": [{"layers": 36}]}, "layer_groups.0.layers")
        36
    """
    node = values
    for step in key.split("."):
        if isinstance(node, Mapping):
            node = node.get(step)
        elif isinstance(node, (list, tuple)) and step.isdecimal() and int(step) < len(node):
            node = node[int(step)]
        else:
            return None
    return node


def _steps(location: str, values: Mapping[str, object], preset_type: type[Preset]) -> list[str]:
    """Keys down to a location such as ``layer_groups[...].layers``, with the position found.

    msgspec does not say which entry of a list is at fault: it is the first that does not convert.
    """
    steps: list[str] = []
    for word in location.split(".") if location else []:
        name, bracket, _ = word.partition("[")
        if name:
            steps.append(name)
        if not bracket:
            continue
        items = value_at(values, ".".join(steps))
        struct = _struct_at(preset_type, steps)
        for index, item in enumerate(items if isinstance(items, (list, tuple)) else ()):
            try:
                msgspec.convert(item, struct.cls if struct is not None else object)
            except msgspec.ValidationError:
                steps.append(str(index))
                break
    return steps


def _struct_at(preset_type: type[Preset], steps: Iterable[str]) -> inspect.StructType | None:
    kind: inspect.Type | None = inspect.type_info(preset_type)
    for step in steps:
        if step.isdecimal():
            continue
        if not isinstance(kind, inspect.StructType):
            return None
        kind = next((field.type for field in kind.fields if field.encode_name == step), None)
        if isinstance(kind, inspect.UnionType):
            kind = next(t for t in kind.types if not isinstance(t, inspect.NoneType))
        if isinstance(kind, inspect.VarTupleType):
            kind = kind.item_type
    return kind if isinstance(kind, inspect.StructType) else None

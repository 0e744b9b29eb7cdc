"""What a specification may vary: the options of ``lachesis run``, and any preset value.

A value is brought into the form in which `lachesis.simulation.RunOptions` takes it, so that ``100``
and ``"100"`` are one load; whether it is in range is decided there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lachesis.errors import InputError
from lachesis.presets.base import near_matches
from lachesis.results.provenance import PARTS

#: A value as a specification normalises it: plain, and able to stand in JSON.
Value = str | int | float | bool | tuple[str, ...]

RUNS_MAX = 1_000_000


def _text(value: object) -> str | None:
    return value.strip() if isinstance(value, str) and value.strip() else None


def _text_or_number(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _text(value)
    return str(value) if math.isfinite(value) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _yes_or_no(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _texts(value: object) -> tuple[str, ...] | None:
    """One name, or a list of several that are joined."""
    names = value if isinstance(value, list | tuple) else [value]
    found = [_text(name) for name in names]
    return tuple(name for name in found if name) if found and all(found) else None


def _pairs(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, Mapping) or not value:
        return None
    columns = [(_text(ours), _text(theirs)) for ours, theirs in value.items()]
    return tuple(f"{o}={t}" for o, t in columns if o and t) if all(map(all, columns)) else None


#: Every option by its key, with what its values are, in words and as a check.
_OPTIONS: dict[str, tuple[str, Callable[[object], Any]]] = {
    "trace": ("a trace, or a list of traces that are joined", _texts),
    "format": ("a format's name", _text),
    "map": ('a table such as {session = "trace_id"}', _pairs),
    "model": ("a preset's name", _text),
    "memory": ('a split such as "2/6"', _text),
    "hardware": ("a preset's name", _text),
    "flash": ("a preset's name", _text),
    "config": ("a TOML file of preset values", _text),
    "step_time": ("a time in seconds", _text_or_number),
    "step_overhead": ('a time such as "35ms"', _text),
    "policy": ("a policy's name", _text),
    "load": ("a number of sessions, or a text as --load takes it", _text_or_number),
    "slo": ("a preset's name", _text),
    "tpot": ('a time such as "60ms"', _text),
    "ttft": ('a time such as "2s"', _text),
    "turn_end": ('"last-output" or "next-message"', _text),
    "seed": ("a whole number", _whole),
    "precision": ('a share such as 0.02 or "2%"', _text_or_number),
    "turnovers": ("a number", _number),
    "horizon": ('a time such as "60d"', _text),
    "cold": ("true or false", _yes_or_no),
}
OPTIONS = tuple(_OPTIONS)
#: Options whose values may be given as a range of whole numbers.
_RANGES = ("load", "seed")
#: Options whose values may name files: those are looked for beside the specification.
_FILES = ("trace", "model", "hardware", "flash", "config", "slo")


def axis_values(key: str, written: object) -> tuple[Value, ...]:
    """The values of one axis, in the order written.

    Args:
        key: an option of ``lachesis run`` (``step_time`` for ``--step-time``), or a preset value
            such as ``flash.pe_cycles``.
        written: a value, a list of values, or ``{from = 1, to = 100}`` (and ``step``) where the
            values are loads or seeds.

    Raises:
        InputError: the key is unknown, a value has the wrong type or comes twice, or there is none.

    Example:
        >>> axis_values("load", [8, "auto"]), axis_values("seed", {"from": 1, "to": 3})
        (('8', 'auto'), (1, 2, 3))
    """
    if isinstance(written, Mapping) and key in _RANGES:
        written = _range(key, written)
    values = [
        option_value(key, value) for value in (written if isinstance(written, list) else [written])
    ]
    if not values:
        raise InputError("must hold at least one value", field=key, value="[]")
    seen: set[tuple[type, Value]] = set()
    for value in values:
        known = (type(value), value)  # 1 and true are equal to Python
        if known in seen:
            shown = ", ".join(value) if isinstance(value, tuple) else value
            raise InputError("comes twice", field=key, value=shown)
        seen.add(known)
    return tuple(values)


def flatten(table: Mapping[str, object], path: str = "") -> dict[str, object]:
    """Axes by key, where tables inside spell dotted keys: ``flash.pe_cycles = …``.

    Example:
        >>> flatten({"seed": 1, "flash": {"pe_cycles": [1, 2]}})
        {'seed': 1, 'flash.pe_cycles': [1, 2]}
    """
    axes: dict[str, object] = {}
    for name, value in table.items():
        key = f"{path}{name}"
        if isinstance(value, Mapping) and key not in (*_RANGES, "map"):
            axes |= flatten(value, f"{key}.")
        else:
            axes[key] = value
    return axes


def override(key: str, value: Value) -> str:
    """A preset value as ``--set`` takes it.

    Example:
        >>> override("flash.pe_cycles", 30000), override("node.windowed_kv", "trim")
        ('flash.pe_cycles=30000', 'node.windowed_kv="trim"')
    """
    return f"{key}={json.dumps(value)}"


def beside(folder: Path | None, key: str, name: str) -> str:
    """A name that is a file's, seen from the specification's folder; any other as it is."""
    is_file = name.endswith(".toml") if key != "trace" else "/" in name or bool(Path(name).suffix)
    if folder is None or key not in _FILES or not is_file:
        return name
    return str(folder / name)


def option_value(key: str, value: object) -> Value:
    """One value of an option or a preset value, in the form in which it is passed on.

    Raises:
        InputError: the key is unknown, or the value has the wrong type.

    Example:
        >>> option_value("load", 8)
        '8'
        >>> option_value("seed", 1.5)
        Traceback (most recent call last):
        ...
        lachesis.errors.InputError: seed = 1.5, must be a whole number
    """
    if not isinstance(key, str):
        raise InputError("unknown key; must be a text", field=repr(key))
    if key in _OPTIONS:
        words, check = _OPTIONS[key]
        found: Value | None = check(value)
        if found is None:
            raise InputError(f"must be {words}", field=key, value=_shown(value))
        return found
    part, dot, _ = key.partition(".")
    if not dot or part not in PARTS:
        hint = near_matches(key, [*_OPTIONS, *(f"{name}.KEY" for name in PARTS)])
        if key in ("set", "policies"):
            hint = (
                'write the key of a preset value itself, such as "flash.pe_cycles" = [30000]'
                if key == "set"
                else "did you mean policy?"
            )
        raise InputError(f"unknown key; {hint}", field=key)
    if not isinstance(value, str | int | float | bool):
        raise InputError("must be a number, a text, true or false", field=key, value=_shown(value))
    return value


def _range(key: str, written: Mapping[str, object]) -> list[int]:
    """``{from, to, step}``, both ends included."""
    rule = "must be {from = N, to = M} or {from = N, to = M, step = K} of whole numbers"
    ends = [_whole(written.get(name, 1 if name == "step" else None)) for name in _ENDS]
    if set(written) - set(_ENDS) or None in ends:
        raise InputError(rule, field=key, value=_shown(dict(written)))
    first, last, step = (end for end in ends if end is not None)
    if step < 1 or first > last or (last - first) // step >= RUNS_MAX:
        said = f"must go upwards, by a step of 1 or more, in fewer than {RUNS_MAX:,} values"
        raise InputError(said, field=key, value=_shown(dict(written)))
    return list(range(first, last + 1, step))


_ENDS = ("from", "to", "step")


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)

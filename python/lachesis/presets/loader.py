"""Finding and reading preset files, shipped and the user's own."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from lachesis.errors import InputError, printable
from lachesis.presets.base import PresetT, convert_preset, near_matches
from lachesis.presets.sourced import SourcedTree, overlay, split_sources

Kind = Literal["models", "gpus", "flash", "latency", "slo", "node"]

# Set by the loader, so that a file cannot disagree with its own name.
_RESERVED_KEYS = ("name", "sources")


@cache
def preset_names(kind: Kind) -> tuple[str, ...]:
    """Names of the presets of one kind that are shipped, in alphabetical order.

    Example:
        >>> preset_names("slo")
        ('loose', 'tight')
    """
    folder = resources.files("lachesis.presets").joinpath("data", kind)
    names = (entry.name for entry in folder.iterdir())
    return tuple(sorted(n.removesuffix(".toml") for n in names if n.endswith(".toml")))


def load_preset(kind: Kind, name: str, preset_type: type[PresetT]) -> PresetT:
    """Load a preset by name, or from a TOML file of the user's.

    Args:
        kind: which folder of presets the name belongs to.
        name: a shipped preset; or a path, when it ends in ``.toml``. A file may start from a
            shipped preset with ``extends = "NAME"`` and need not give sources: what it leaves
            open reads "set by user in FILE".
        preset_type: what to build.

    Raises:
        InputError: the preset is unknown, or the file is missing, broken or out of range.
    """
    if name.endswith(".toml"):
        tree, stem, path = _read_user_file(kind, Path(name)), printable(Path(name).stem), name
    else:
        tree, stem, path = _read_shipped(kind, name), name, f"{name}.toml"
    return convert_preset(
        {**tree.values, "name": stem}, tree.sources.items(), preset_type, path=path
    )


def read_toml(path: Path) -> dict[str, object]:
    """Read a TOML file of the user's.

    Raises:
        InputError: it cannot be read or is not TOML in UTF-8.
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError("cannot be read: is no regular file", path=path)
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from error
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 at byte {error.start}", path=path) from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not valid TOML: {error}", path=path) from error
    except RecursionError as error:
        raise InputError("cannot be read: nested too deeply", path=path) from error
    except ValueError as error:  # a NUL in the name, or a number of thousands of digits
        raise InputError(f"cannot be read: {error}", path=path) from error


@cache
def _read_shipped(kind: Kind, name: str) -> SourcedTree:
    if name not in preset_names(kind):
        hint = near_matches(name, preset_names(kind))
        raise InputError(f"no such preset; {hint}", field=_OPTION_OF_KIND[kind], value=name)
    file = resources.files("lachesis.presets").joinpath("data", kind, f"{name}.toml")
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    return _resolve(kind, document, path=f"{name}.toml", default_source=None)


def _read_user_file(kind: Kind, path: Path) -> SourcedTree:
    document = read_toml(path)
    return _resolve(
        kind, document, path=str(path), default_source=f"set by user in {printable(path.name)}"
    )


def _resolve(
    kind: Kind, document: dict[str, object], *, path: str, default_source: str | None
) -> SourcedTree:
    for key in _RESERVED_KEYS:
        if key in document:
            raise InputError("is set from the file's name and its sources", path=path, field=key)
    base_name = document.pop("extends", None)
    tree = split_sources(document, path=path, default_source=default_source)
    if base_name is None:
        return tree
    if not isinstance(base_name, str):
        rule = "must be the name of a preset"
        raise InputError(rule, path=path, field="extends", value=base_name)
    if base_name not in preset_names(kind):
        hint = near_matches(base_name, preset_names(kind))
        rule = f"no such preset; {hint}"
        raise InputError(rule, path=path, field="extends", value=base_name)
    return overlay(_read_shipped(kind, base_name), tree)


_OPTION_OF_KIND: dict[Kind, str] = {
    "models": "model",
    "gpus": "hardware",
    "flash": "flash",
    "latency": "latency",
    "slo": "slo",
    "node": "node",
}

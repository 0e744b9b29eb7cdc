"""Trees of values in which every number carries the source that it was taken from.

In a preset file a leaf is either a bare value, or ``{ value = 1.6, source = "…" }``. A bare
value is covered by the ``source`` key of the nearest table around it. This module splits such a
document into plain values and a flat map from dotted path to source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lachesis.errors import InputError

_LEAF_KEYS = frozenset({"value", "source"})


class SourcedTree(NamedTuple):
    """Plain values (nested dicts and lists), and the source of each leaf by its dotted path."""

    values: dict[str, object]
    sources: dict[str, str]


def split_sources(
    document: Mapping[str, object], *, path: str, default_source: str | None = None
) -> SourcedTree:
    """Separate the values of a document from their sources.

    Args:
        document: a parsed TOML document.
        path: the file it came from, for errors.
        default_source: covers leaves that nothing in the document covers; without it a number
            that has no source is an error.

    Raises:
        InputError: a number has no source, a source is not a text, or a leaf has further keys.

    Example:
        >>> document = {"source": "data sheet", "slots": 8,
        ...             "read_tb_per_s": {"value": 1.6, "source": "measured"}}
        >>> tree = split_sources(document, path="gpu.toml")
        >>> tree.values
        {'slots': 8, 'read_tb_per_s': 1.6}
        >>> tree.sources
        {'slots': 'data sheet', 'read_tb_per_s': 'measured'}
    """
    sources: dict[str, str] = {}

    def leaf(value: object, key: str, source: str | None) -> object:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if source is not None:
            sources[key] = source
        elif is_number:
            raise InputError("must carry a source", path=path, field=key, value=value)
        return value

    def walk(node: object, key: str, inherited: str | None) -> object:
        if isinstance(node, Mapping):
            source = _own_source(node, key, path) or inherited
            if "value" in node:
                if unknown := sorted(set(node) - _LEAF_KEYS):
                    rule = "unknown key in a table with a value; allowed: value, source"
                    raise InputError(rule, path=path, field=f"{key}.{unknown[0]}")
                return leaf(node["value"], key, source)
            return {
                name: walk(child, f"{key}.{name}" if key else name, source)
                for name, child in node.items()
                if name != "source"
            }
        if isinstance(node, list):
            return [walk(child, f"{key}.{i}", inherited) for i, child in enumerate(node)]
        return leaf(node, key, inherited)

    source = _own_source(document, "", path) or default_source
    values = {
        name: walk(child, name, source) for name, child in document.items() if name != "source"
    }
    return SourcedTree(values, sources)


def overlay(base: SourcedTree, changes: SourcedTree) -> SourcedTree:
    """Lay one tree over another: tables merge, everything else (lists too) is replaced whole.

    Sources follow their values: an untouched value keeps the source it had in `base`.

    Example:
        >>> base = SourcedTree({"a": 1, "t": {"b": 2}}, {"a": "old", "t.b": "old"})
        >>> overlay(base, SourcedTree({"t": {"b": 3}}, {"t.b": "new"}))
        SourcedTree(values={'a': 1, 't': {'b': 3}}, sources={'a': 'old', 't.b': 'new'})
    """
    sources = dict(base.sources)

    def merge(below: dict[str, object], above: dict[str, object], prefix: str) -> dict[str, object]:
        merged = dict(below)
        for name, value in above.items():
            key, old = f"{prefix}{name}", below.get(name)
            if isinstance(old, dict) and isinstance(value, dict):
                merged[name] = merge(old, value, f"{key}.")
                continue
            for stale in [s for s in sources if s == key or s.startswith(f"{key}.")]:
                del sources[stale]
            merged[name] = value
        return merged

    values = merge(base.values, changes.values, "")
    sources.update(changes.sources)
    return SourcedTree(values, sources)


def _own_source(node: Mapping[str, object], key: str, path: str) -> str | None:
    source = node.get("source")
    if source is None:
        return None
    if not isinstance(source, str) or not source.strip():
        field = f"{key}.source" if key else "source"
        raise InputError("must be a text that is not empty", path=path, field=field, value=source)
    return source

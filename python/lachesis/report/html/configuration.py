"""What was configured, with sources: any nested document as rows of key, value and source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

# What is told elsewhere on the page, or says nothing about the configuration.
_LEFT_OUT = ("cells", "searches", "schema", "sessions", "title")
_CHARACTERS_MAX = 400
_ROWS_MAX = 400


class Setting(NamedTuple):
    """A value with its key (dotted) and where it comes from; the source may be empty."""

    key: str
    value: str
    source: str


@dataclass(frozen=True)
class Group:
    """Settings under one heading; `more` counts those that are left out for length."""

    title: str
    settings: tuple[Setting, ...]
    more: int = 0

    @property
    def has_sources(self) -> bool:
        """Whether any of them has a source."""
        return any(setting.source for setting in self.settings)


def configuration(manifest: Mapping[str, Any]) -> list[Group]:
    """The manifest in groups: single values first, then a group for each nested part.

    Example:
        >>> flash = {"pe_cycles": {"value": 100000, "source": "paper"}, "note": "SLC"}
        >>> for group in configuration({"version": "1", "flash": flash}):
        ...     print(group.title, [tuple(setting) for setting in group.settings])
        Origin [('version', '1', '')]
        Flash [('pe_cycles', '100,000', 'paper'), ('note', 'SLC', '')]
    """
    single: list[Setting] = []
    groups = []
    for key, node in manifest.items():
        if key in _LEFT_OUT:
            continue
        rows = list(_rows("", node))
        if _is_nested(node):
            if rows:
                shown = tuple(rows[:_ROWS_MAX])
                groups.append(Group(_words(key), shown, len(rows) - len(shown)))
        else:
            single += [row._replace(key=key) for row in rows]
    return [Group("Origin", tuple(single)), *groups] if single else groups


def _is_nested(node: object) -> bool:
    if isinstance(node, list):
        return any(isinstance(each, Mapping) for each in node)
    return isinstance(node, Mapping)


def _rows(key: str, node: object) -> Iterator[Setting]:
    if isinstance(node, Mapping):
        if "value" in node and set(node) <= {"key", "value", "unit", "source"}:
            own = str(node.get("key", ""))
            name = ".".join(part for part in ((key if not own else ""), own) if part)
            value = f"{_text(node['value'])} {node.get('unit') or ''}".strip()
            yield Setting(name, value, str(node.get("source") or ""))
            return
        for name, child in node.items():
            # What only holds the values of the level above has nothing to say in a key.
            inner = key if name == "values" else f"{key}.{name}" if key else str(name)
            yield from _rows(inner, child)
    elif isinstance(node, list) and _is_nested(node):
        for number, each in enumerate(node, start=1):
            yield from _rows(f"{key}.{number}" if key else str(number), each)
    else:
        yield Setting(key, _text(node), "")


def _text(value: object) -> str:
    if isinstance(value, list):
        # A list in a list is one choice of several names, as of traces that are joined.
        text = ", ".join(
            "+".join(map(_text, each)) if isinstance(each, list) else _text(each) for each in value
        )
        text = text or "none"
    elif value is None:
        text = "none"
    elif isinstance(value, bool):
        text = "yes" if value else "no"
    else:
        text = f"{value:,}" if isinstance(value, int) and abs(value) >= 10**5 else str(value)
    return text if len(text) <= _CHARACTERS_MAX else text[: _CHARACTERS_MAX - 1] + "…"


def _words(key: str) -> str:
    words = key.replace("_", " ")
    return words[:1].upper() + words[1:]

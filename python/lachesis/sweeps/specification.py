"""What a sweep runs: grids over traces, presets, policies, loads and seeds, from TOML or a dict.

::

    title = "Endurance by split"

    [defaults]                      # of every grid below
    turnovers = 10

    [grid]                          # every combination of the values
    trace = ["tau3-airline", "swe-bench-verified"]
    memory = ["1/7", "2/6"]
    policy = ["hbm-first", "lachesis"]
    "flash.pe_cycles" = [30_000, 100_000]

    [[run]]                         # further grids, as many as wanted
    trace = [["tau3-airline", "tau3-retail"]]   # a list inside is joined to one trace
    load = { from = 8, to = 64, step = 8 }
    seed = 7
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomli_w

from lachesis.errors import InputError
from lachesis.presets.base import near_matches
from lachesis.presets.loader import read_toml
from lachesis.quantities import parse_seconds
from lachesis.simulation import DEFAULT_POLICIES
from lachesis.sweeps.axes import OPTIONS, RUNS_MAX, Value, axis_values, flatten

_TOP_LEVEL = ("title", "timeline_interval", "defaults", "grid", "run")
#: Said of how a trace is read: of one value, since no two ways of reading are compared.
_SINGLE = ("format", "map")


@dataclass(frozen=True)
class Grid:
    """Axes by key; every combination of their values is a run.

    Attributes:
        name: where it stands in the specification, for messages: ``[grid]`` or ``[[run]] 2``.
        axes: in the order written; `policy` and `trace` are always among them.
    """

    name: str
    axes: dict[str, tuple[Value, ...]]

    @property
    def runs(self) -> int:
        """How many combinations there are."""
        return math.prod(len(values) for values in self.axes.values())


@dataclass(frozen=True)
class Specification:
    """A sweep as asked for.

    Attributes:
        source: the file, or words for a specification that was given as values.
        folder: where relative paths start; None for the working directory.
        title: for people.
        timeline_interval_s: simulated seconds between two rows of the timelines; none without.
        grids: what is run, in order.
        text: the specification as TOML, for the record: the file as it stands, or as normalised.
    """

    source: str
    folder: Path | None
    title: str
    timeline_interval_s: float | None
    grids: tuple[Grid, ...]
    text: str

    @classmethod
    def load(cls, path: str | Path) -> Specification:
        """Read a TOML file.

        Raises:
            InputError: it cannot be read, or breaks a rule; names file, table, key and value.
        """
        file = Path(path)
        document = read_toml(file)
        asked = cls.parse(document, source=str(path), folder=file.parent)
        return replace(asked, text=file.read_text(encoding="utf-8"))

    @classmethod
    def parse(
        cls,
        document: Mapping[str, object],
        *,
        source: str = "specification",
        folder: Path | None = None,
    ) -> Specification:
        """Check a specification given as values, as TOML has them.

        Raises:
            InputError: as `load`.

        Example:
            >>> sweep = Specification.parse(
            ...     {"grid": {"trace": "tau3-airline", "load": [8, 16], "seed": [1, 2, 3]}}
            ... )
            >>> sweep.runs  # under both default policies
            12
        """
        try:
            return cls._checked(document, source, folder)
        except InputError as error:
            raise error.located(source) from error
        except RecursionError as error:
            raise InputError("is nested too deeply", path=source) from error

    @classmethod
    def _checked(
        cls, document: Mapping[str, object], source: str, folder: Path | None
    ) -> Specification:
        for key in document:
            if not isinstance(key, str):
                raise InputError("unknown key; must be a text", field=repr(key))
            if key not in _TOP_LEVEL:
                raise InputError(_misplaced(key), field=key)
        title = document.get("title", "")
        if not isinstance(title, str):
            raise InputError("must be a text", field="title", value=title)
        tables = _grid_tables(document)
        defaults = _table(document.get("defaults", {}), "defaults")
        if unused := [key for key in defaults if all(key in table for _, table in tables)]:
            raise InputError("has no effect: every grid sets it", row="[defaults]", field=unused[0])
        grids = tuple(_grid(name, {**defaults, **table}) for name, table in tables)
        if (runs := sum(grid.runs for grid in grids)) > RUNS_MAX:
            raise InputError(f"asks for {runs:,} runs, more than {RUNS_MAX:,}")
        text = tomli_w.dumps(document)
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as fault:
            raise InputError(f"holds what is no character: {fault}") from fault
        written = document.get("timeline_interval")
        interval = None if written is None else interval_s(written)
        return cls(source, folder, title, interval, grids, text)

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return sum(grid.runs for grid in self.grids)

    def normalised(self) -> dict[str, Any]:
        """The specification in one form, defaults put in, for the manifest."""
        return {
            "title": self.title,
            "timeline_interval_s": self.timeline_interval_s,
            "grids": [
                {key: list(values) for key, values in grid.axes.items()} for grid in self.grids
            ],
        }


def _grid_tables(document: Mapping[str, object]) -> list[tuple[str, dict[str, object]]]:
    """Every table that describes a grid, flat, with its name."""
    tables: list[tuple[str, dict[str, object]]] = []
    if "grid" in document:
        tables.append(("[grid]", _table(document["grid"], "grid")))
    runs = document.get("run", [])
    if not isinstance(runs, list):
        raise InputError("must be a list of tables: write [[run]]", field="run")
    tables += [
        (f"[[run]] {place}", _table(table, f"[[run]] {place}"))
        for place, table in enumerate(runs, start=1)
    ]
    if not tables:
        raise InputError("names nothing to run: write a table [grid], or tables [[run]]")
    return tables


def _table(value: object, name: str) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise InputError("must be a table", field=name, value=value)
    return flatten(value)


def _grid(name: str, table: Mapping[str, object]) -> Grid:
    try:
        axes = _axes(table)
    except InputError as error:
        raise InputError(error.rule, row=name, field=error.field, value=error.value) from error
    return Grid(name, axes)


def _axes(table: Mapping[str, object]) -> dict[str, tuple[Value, ...]]:
    axes = {key: axis_values(key, written) for key, written in table.items()}
    if "trace" not in axes:
        raise InputError("must hold the key trace: a file, a folder or a corpus")
    for key in _SINGLE:
        if len(axes.get(key, ())) > 1:
            raise InputError("must be one value", field=key)
    axes.setdefault("policy", DEFAULT_POLICIES)
    return axes


def interval_s(written: object) -> float:
    """Simulated seconds between two rows of a timeline, from a text such as ``60s``.

    Raises:
        InputError: it is no such text.
    """
    if not isinstance(written, str):
        rule = 'must be a time such as "60s"'
        raise InputError(rule, field="timeline_interval", value=written)
    return parse_seconds(written, "timeline_interval")


def _misplaced(key: str) -> str:
    if key in OPTIONS or "." in key:
        return "belongs into a table: [grid], [defaults] or [[run]]"
    return f"unknown key; {near_matches(key, _TOP_LEVEL)}"

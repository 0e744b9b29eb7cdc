"""The columns of a table of runs: `run_object` made flat, one row a run.

Nested values become columns of their own: bytes by class and tier, and the two ends of the
interval. Wall times are left out, so that equal runs give equal rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

from lachesis.results.measures import TIERS
from lachesis.results.schema import shipped_schema
from lachesis.traces.schema import SegmentClass

Kind = Literal["text", "integer", "number", "truth", "texts"]
INTERVAL = ("hbf_lifetime_years_low", "hbf_lifetime_years_high")

_KINDS: dict[str, Kind] = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "truth",
    "array": "texts",
}
_FRONT = {
    "run": "names the run: a digest of its cell and policy",
    "cell": "names the cell: all policies that were run on one question",
    "trace": "what was replayed; names of several joined by +",
}


class RunColumn(NamedTuple):
    """A column: its name, what it holds, whether a run may lack it, and its meaning with unit."""

    name: str
    kind: Kind
    nullable: bool
    description: str


@cache
def run_columns() -> tuple[RunColumn, ...]:
    """All columns in order; meanings are those of ``run.schema.json``.

    Example:
        >>> [column.name for column in run_columns()[:5]]
        ['run', 'cell', 'trace', 'policy', 'model']
        >>> next(column for column in run_columns() if column.name == "write_bytes_lead_hbf").kind
        'integer'
    """
    described = shipped_schema("run")["$defs"]["run"]["properties"]
    columns = [RunColumn(name, "text", False, words) for name, words in _FRONT.items()]
    tail = []
    for name, spec in described.items():
        if name.endswith("_sha256"):
            tail.append(RunColumn(name, "text", False, spec["description"]))
        else:
            columns += _flattened(name, spec)
    changes = RunColumn("overrides", "texts", False, "preset values that were changed: key=value")
    version = RunColumn("version", "text", False, "version of Lachesis that ran it")
    return (*columns, changes, *tail, version)


def flat_run(
    run: Mapping[str, Any],
    *,
    trace: str,
    overrides: list[str],
    version: str,
    identity: tuple[str, str],
) -> dict[str, Any]:
    """One object of a run's document as a row of `run_columns`.

    Args:
        run: from `lachesis.results.run_document`.
        trace: name of what was replayed.
        overrides: ``key=value`` of every preset value that was changed.
        version: of the package that ran it.
        identity: names of the run and of its cell.

    Raises:
        KeyError: a key is missing.
    """
    low, high = run["hbf_lifetime_years_ci95"] or (None, None)
    row: dict[str, Any] = {
        **run,
        "run": identity[0],
        "cell": identity[1],
        "trace": trace,
        INTERVAL[0]: low,
        INTERVAL[1]: high,
        "overrides": overrides,
        "version": version,
    }
    for name in SegmentClass:
        for tier in TIERS:
            row[bytes_column(name, tier)] = run["write_bytes_by_class"][str(name)][tier]
    return {column.name: row[column.name] for column in run_columns()}


def bytes_column(name: str, tier: str) -> str:
    """The column of the bytes that a segment class wrote to a tier.

    Example:
        >>> bytes_column("reasoning-laden", "hbf")
        'write_bytes_reasoning_laden_hbf'
    """
    return f"write_bytes_{str(name).replace('-', '_')}_{tier}"


def _flattened(name: str, spec: Mapping[str, Any]) -> Iterator[RunColumn]:
    words = spec["description"]
    if name == "wall_s":
        return
    if name == "write_bytes_by_class":
        for each in SegmentClass:
            for tier in TIERS:
                meaning = f"KV bytes that segments of class {each} wrote to {tier.upper()}"
                yield RunColumn(bytes_column(each, tier), "integer", False, meaning)
    elif name == "hbf_lifetime_years_ci95":
        for column, end in zip(INTERVAL, ("lower", "upper"), strict=True):
            yield RunColumn(column, "number", True, f"{end} end of the 95 % interval; null if none")
    else:
        given = spec.get("type", "string")
        types = given if isinstance(given, list) else [given]
        yield RunColumn(name, _KINDS[types[0]], "null" in types, words)

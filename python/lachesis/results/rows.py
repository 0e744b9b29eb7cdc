"""A run as a flat row: the columns of ``runs/*.parquet`` in a results directory.

The columns are the keys of `lachesis.results.measures.run_object`, in its order, and their types
those of the shipped ``run.schema.json``, so that JSON and Parquet cannot differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lachesis import __version__
from lachesis.results.document import run_schema
from lachesis.results.measures import TIERS
from lachesis.traces.schema import SegmentClass

#: What a row begins with: ids of run and cell, and the names of the traces joined by "+".
IDENTITY = ("run", "cell", "trace")
#: The column that says whether a run was measured, or cannot be run; and its values.
STATUS = "status"
MEASURED, INFEASIBLE = "measured", "infeasible"
_WRITES, _INTERVAL = "write_bytes_by_class", "hbf_lifetime_years_ci95"
#: Wall time is no result: it lives in the manifest.
_LEFT_OUT = "wall_s"
_TYPES = {
    "number": pa.float64(),
    "integer": pa.int64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "array": pa.list_(pa.string()),
}


def write_column(name: str, tier: str) -> str:
    """The column of the bytes that a segment class writes to a tier.

    Example:
        >>> write_column("reasoning-laden", "hbf")
        'write_bytes_reasoning_laden_hbf'
    """
    return f"write_bytes_{name.replace('-', '_')}_{tier}"


@cache
def run_columns() -> pa.Schema:
    """Name and type of every column.

    Example:
        >>> run_columns().names[:5]
        ['run', 'cell', 'trace', 'policy', 'model']
    """
    fields = [pa.field(name, pa.string(), nullable=False) for name in IDENTITY]
    for name, described in run_schema()["$defs"]["run"]["properties"].items():
        if name == _WRITES:
            fields += [
                pa.field(write_column(segment_class, tier), pa.int64())
                for segment_class in SegmentClass
                for tier in TIERS
            ]
        elif name == _INTERVAL:
            fields += [pa.field(f"hbf_lifetime_years_{end}", pa.float64()) for end in _ENDS]
        elif name == "seed":
            fields.append(pa.field(name, pa.uint64()))
        elif name not in (_LEFT_OUT, *_HASHES):
            fields.append(pa.field(name, _arrow_type(described)))
    fields += [pa.field(STATUS, pa.string(), nullable=False), pa.field("reason", pa.string())]
    fields.append(pa.field("overrides", _TYPES["array"]))
    fields += [pa.field(name, pa.string()) for name in (*_HASHES, "version")]
    return pa.schema(fields)


_ENDS = ("low", "high")
_HASHES = ("config_sha256", "trace_sha256")


@cache
def column_meanings() -> Mapping[str, str]:
    """What each column of `run_columns` holds, with its unit.

    Example:
        >>> column_meanings()["write_bytes_lead_hbf"]
        'KV bytes that segments of class lead wrote to HBF'
    """
    found = {
        "run": "names the run: a digest of its cell and policy",
        "cell": "names the cell: all policies that were run on one question",
        "trace": "what was replayed; names of several joined by +",
    }
    for name, described in run_schema()["$defs"]["run"]["properties"].items():
        if name == _WRITES:
            found |= {
                write_column(each, tier): f"KV bytes that segments of class {each} wrote to "
                f"{tier.upper()}"
                for each in SegmentClass
                for tier in TIERS
            }
        elif name == _INTERVAL:
            found |= {
                f"hbf_lifetime_years_{end}": f"{word} end of the 95 % interval; null if none"
                for end, word in zip(_ENDS, ("lower", "upper"), strict=True)
            }
        elif name != _LEFT_OUT:
            found[name] = described["description"]
    return found | {
        STATUS: f"{MEASURED}, or {INFEASIBLE}: it cannot be run, and has no measurement",
        "reason": "why it cannot be run; null if it was measured",
        "overrides": "preset values that were changed: key=value",
        "version": "version of Lachesis that ran it",
    }


@cache
def may_be_missing(name: str) -> bool:
    """Whether a run that was measured may lack a value of this column.

    Example:
        >>> may_be_missing("hbf_lifetime_years"), may_be_missing("policy")
        (True, False)
    """
    if name.startswith("hbf_lifetime_years") or name == "reason":
        return True
    described = run_schema()["$defs"]["run"]["properties"].get(name, {})
    return "null" in described.get("type", ())


def run_row(
    run: Mapping[str, Any], *, run_id: str, cell_id: str, trace: str, overrides: Sequence[str]
) -> dict[str, Any]:
    """One run's object as a flat row.

    Args:
        run: from `lachesis.results.document.run_objects`.
        run_id: stable, of cell and policy.
        cell_id: stable, of everything but the policy.
        trace: the names of the traces, joined by ``+``.
        overrides: values that were set, each ``key=value``.
    """
    row: dict[str, Any] = {"run": run_id, "cell": cell_id, "trace": trace}
    for name, value in run.items():
        if name == _WRITES:
            for segment_class, by_tier in value.items():
                row |= {write_column(segment_class, tier): by_tier[tier] for tier in TIERS}
        elif name == _INTERVAL:
            ends = value or (None, None)
            row |= {
                f"hbf_lifetime_years_{end}": years for end, years in zip(_ENDS, ends, strict=True)
            }
        elif name not in (_LEFT_OUT, *_HASHES):
            row[name] = value
    row |= {STATUS: MEASURED, "reason": None}
    row["overrides"] = list(overrides)
    row |= {name: run[name] for name in _HASHES}
    row["version"] = __version__
    return row


def run_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as a table of `run_columns`, in their order."""
    schema = run_columns()
    return pa.table(
        [pa.array([row[field.name] for row in rows], field.type) for field in schema], schema=schema
    )


def measured_runs(runs: pa.Table) -> pa.Table:
    """The rows of runs that were measured, without those that cannot be run."""
    return runs.filter(pc.equal(runs[STATUS], MEASURED))


def infeasible_runs(runs: pa.Table) -> pa.Table:
    """The rows of runs that cannot be run; the column ``reason`` says why."""
    return runs.filter(pc.equal(runs[STATUS], INFEASIBLE))


def _arrow_type(described: Mapping[str, Any]) -> pa.DataType:
    named = described.get("type", "string")
    kinds = [named] if isinstance(named, str) else [kind for kind in named if kind != "null"]
    return _TYPES[kinds[0]]

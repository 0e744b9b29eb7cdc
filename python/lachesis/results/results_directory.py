"""Reads what a sweep or a reproduction left in a folder, or the JSON of one run.

Nothing is trusted: a folder may be another program's, half written, or damaged, and every file is
checked for the columns and kinds of values that it must have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lachesis.errors import InputError
from lachesis.results.measures import TIERS
from lachesis.results.run_columns import RunColumn, flat_run, run_columns
from lachesis.traces.schema import SegmentClass

SCHEMA_VERSION = 1

_KINDS = {
    "text": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "truth": pa.bool_(),
    "texts": pa.list_(pa.string()),
}
_TIMELINE_TEXTS = ("run", "trace", "model", "memory", "slo", "policy")
_TIMELINE_NUMBERS = (
    "time_s",
    "window_s",
    *(f"{tier}_occupancy" for tier in TIERS),
    *(
        f"{tier}_write_bytes_per_s_{str(name).replace('-', '_')}"
        for tier in TIERS
        for name in SegmentClass
    ),
)
_TIMELINE = (
    *(RunColumn(name, "text", False, "") for name in _TIMELINE_TEXTS),
    *(RunColumn(name, "number", False, "") for name in _TIMELINE_NUMBERS),
)
_LIFETIMES = (
    RunColumn("trace", "text", False, ""),
    RunColumn("class", "text", False, ""),
    RunColumn("quantile", "number", False, ""),
    RunColumn("t_norm_s", "number", False, ""),
    RunColumn("tokens_per_segment", "number", False, ""),
    RunColumn("segments", "integer", False, ""),
)
_COMPARED = ("figure", "name", "published", "ours", "deviation", "within")


@dataclass(frozen=True)
class Results:
    """What was found.

    Attributes:
        runs: one row a run, with the columns of `run_columns`.
        manifest: how the runs came about; of one run's JSON its provenance.
        timelines: one row a run and window, or None.
        lifetimes: quantiles of T_norm and of tokens a segment, by trace and class, or None.
        comparison: published figures beside ours; empty without.
        cells: cells that were asked for; 0 where the manifest does not say.
        unfinished: those of them that have not been run yet.
        failures: why a policy of a cell that was run has no result, a sentence each.
    """

    runs: pa.Table
    manifest: Mapping[str, Any]
    timelines: pa.Table | None = None
    lifetimes: pa.Table | None = None
    comparison: tuple[Mapping[str, Any], ...] = field(default=())
    cells: int = 0
    unfinished: int = 0
    failures: tuple[str, ...] = ()


def read_results(path: str | Path) -> Results:
    """Everything in a results directory, or the runs in a file of ``run --json``.

    Raises:
        InputError: the place is neither, or something in it is missing, damaged or of another kind.
    """
    place = Path(path)
    if not place.exists():
        raise InputError("no such folder or file", path=path)
    return _read_folder(place) if place.is_dir() else _read_document(place)


def read_runs(folder: str | Path) -> pa.Table:
    """The runs of a results directory, shards in the order of their names.

    Raises:
        InputError: there are none, or a file is damaged, lacks a column, or names a run twice.
    """
    shards = sorted((Path(folder) / "runs").glob("*.parquet"))
    if not shards:
        raise InputError(
            "holds no runs (runs/*.parquet): a results directory is what `lachesis sweep -o` or "
            "`lachesis reproduce -o` writes",
            path=folder,
        )
    runs = pa.concat_tables([_table(shard, run_columns()) for shard in shards])
    _check_runs_once(runs["run"].to_pylist(), folder)
    return runs


def _read_folder(folder: Path) -> Results:
    comparison = _read_comparison(folder / "comparison.json")
    manifest = _read_manifest(folder / "manifest.json", required=not comparison)
    has_runs = any((folder / "runs").glob("*.parquet"))
    runs = _empty_runs() if comparison and not has_runs else read_runs(folder)
    if not (runs.num_rows or comparison):
        raise InputError("no run is finished yet", path=folder)
    cells = _cells(manifest, folder / "manifest.json")
    lifetimes = folder / "lifetimes.parquet"
    timelines = sorted((folder / "timelines").glob("*.parquet"))
    return Results(
        runs=runs,
        manifest=manifest,
        timelines=(
            pa.concat_tables([_table(shard, _TIMELINE) for shard in timelines])
            if timelines
            else None
        ),
        lifetimes=_table(lifetimes, _LIFETIMES) if lifetimes.exists() else None,
        comparison=comparison,
        cells=len(cells),
        unfinished=sum(cell.get("state") == "pending" for cell in cells),
        failures=tuple(text for cell in cells for text in _failures(cell)),
    )


def _cells(manifest: Mapping[str, Any], path: Path) -> list[Mapping[str, Any]]:
    cells = manifest.get("cells", [])
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise InputError("must be a list of objects", path=path, field="cells")
    return cells


def _failures(cell: Mapping[str, Any]) -> list[str]:
    failures = cell.get("failures") or {}
    if not isinstance(failures, Mapping):
        return []
    parts = [str(cell[name]) for name in ("trace", "model", "memory", "slo") if name in cell]
    return [f"{' · '.join((*parts, policy))}: {reason}" for policy, reason in failures.items()]


def _read_document(path: Path) -> Results:
    """One run's JSON: its policies are the runs of one cell."""
    document = _json(path)
    if not (isinstance(document, dict) and isinstance(document.get("runs"), list)):
        raise InputError("is neither a results directory nor the JSON of `lachesis run`", path=path)
    _check_schema(document, path)
    origin = document.get("provenance")
    if not isinstance(origin, dict) or not document["runs"]:
        raise InputError("holds no run with its provenance", path=path)
    rows = []
    for number, run in enumerate(document["runs"], start=1):
        try:
            overrides = [f"{each['key']}={each['value']}" for each in origin["overrides"]]
            row = flat_run(
                run,
                trace=str(origin["trace_source"]),
                overrides=overrides,
                version=str(origin["version"]),
                identity=(str(run["config_sha256"])[:16], str(origin["config_sha256"])[:16]),
            )
        except KeyError as missing:
            raise InputError(
                "is missing", path=path, row=f"run {number}", field=str(missing.args[0])
            ) from missing
        except (TypeError, ValueError) as fault:
            raise InputError(
                f"is no run of `lachesis run`: {fault}", path=path, row=f"run {number}"
            ) from fault
        rows.append(row)
    schema = pa.schema([(column.name, _KINDS[column.kind]) for column in run_columns()])
    try:
        loose = pa.Table.from_pylist(rows)
        runs = pa.table([loose[name] for name in schema.names], names=schema.names)
    except pa.ArrowInvalid as fault:
        raise InputError(f"runs do not fit together: {fault}", path=path) from fault
    runs = _as_asked(runs, run_columns(), path)
    _check_runs_once(runs["run"].to_pylist(), path)
    return Results(runs=runs, manifest=origin, cells=1)


def _table(path: Path, columns: Iterable[RunColumn]) -> pa.Table:
    """A Parquet file cut to the columns asked for, in their order."""
    try:
        whole = pq.read_table(path, page_checksum_verification=True, partitioning=None)
    except (pa.ArrowException, OSError) as fault:
        said = fault.strerror if isinstance(fault, OSError) and fault.strerror else "damaged"
        raise InputError(f"cannot be read as Parquet: {said}", path=path) from fault
    return _as_asked(whole, tuple(columns), path)


def _as_asked(table: pa.Table, columns: Iterable[RunColumn], path: Path) -> pa.Table:
    arrays, names = [], []
    for column in columns:
        if table.schema.get_field_index(column.name) < 0:
            raise InputError("column is missing", path=path, field=column.name)
        values = table[column.name]
        if not _fits(values.type, column.kind):
            raise InputError(
                f"holds {values.type}, must hold {_KINDS[column.kind]}",
                path=path,
                field=column.name,
            )
        if values.null_count and not column.nullable:
            row = values.is_null().to_pylist().index(True) + 1
            raise InputError("is empty", path=path, row=row, field=column.name)
        if pa.types.is_floating(values.type):
            _check_finite(values, column.name, path)
        # A seed may use all 64 bits; whatever holds whole numbers may stay as it is.
        stays = column.kind == "integer" and pa.types.is_integer(values.type)
        arrays.append(values if stays else values.cast(_KINDS[column.kind]))
        names.append(column.name)
    return pa.table(arrays, names=names)


def _check_finite(values: pa.ChunkedArray, name: str, path: Path) -> None:
    odd = pc.invert(pc.fill_null(pc.is_finite(values), fill_value=True)).to_pylist()
    if True in odd:
        row = odd.index(True)
        raise InputError(
            "must be a finite number", path=path, row=row + 1, field=name, value=values[row].as_py()
        )


def _fits(given: pa.DataType, kind: str) -> bool:
    if pa.types.is_null(given):
        return True
    is_text = pa.types.is_string(given) or pa.types.is_large_string(given)
    is_number = pa.types.is_integer(given) or pa.types.is_floating(given)
    match kind:
        case "text":
            return bool(is_text or pa.types.is_dictionary(given))
        case "integer":
            return bool(pa.types.is_integer(given))
        case "number":
            return bool(is_number)
        case "truth":
            return bool(pa.types.is_boolean(given))
        case _:
            return bool(pa.types.is_list(given) or pa.types.is_large_list(given))


def _check_runs_once(names: list[str], path: str | Path) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError("stands in two rows", path=path, field="run", value=twice)


def _read_manifest(path: Path, *, required: bool) -> Mapping[str, Any]:
    if not path.exists():
        if not required:
            return {}
        raise InputError(
            "holds no manifest.json: a results directory is what `lachesis sweep -o` or "
            "`lachesis reproduce -o` writes",
            path=path.parent,
        )
    manifest = _json(path)
    if not isinstance(manifest, dict):
        raise InputError("must be a JSON object", path=path)
    _check_schema(manifest, path)
    return manifest


def _read_comparison(path: Path) -> tuple[Mapping[str, Any], ...]:
    if not path.exists():
        return ()
    rows = _json(path)
    if not isinstance(rows, list):
        raise InputError("must be a JSON list", path=path)
    for number, row in enumerate(rows, start=1):
        for key in _COMPARED:
            if not isinstance(row, dict) or key not in row:
                raise InputError("is missing", path=path, row=f"entry {number}", field=key)
    return tuple(rows)


def _check_schema(document: Mapping[str, Any], path: Path) -> None:
    if document.get("schema") != SCHEMA_VERSION:
        raise InputError(
            f"must be {SCHEMA_VERSION}; other versions of Lachesis may write others",
            path=path,
            field="schema",
            value=document.get("schema", "none"),
        )


def _json(path: Path) -> Any:  # noqa: ANN401 - whatever JSON holds
    try:
        return json.loads(path.read_text("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as fault:
        raise InputError(f"is no JSON: {fault}", path=path) from fault
    except RecursionError as fault:
        raise InputError("is no JSON that can be read: nested too deeply", path=path) from fault
    except OSError as fault:
        raise InputError(f"cannot be read: {fault.strerror}", path=path) from fault


def _empty_runs() -> pa.Table:
    fields = [pa.field(column.name, _KINDS[column.kind]) for column in run_columns()]
    return pa.schema(fields).empty_table()

"""Reads what a sweep or a reproduction left in a folder, or the JSON of one run.

The one place where results are read, for the terminal, reports and notebooks.

Nothing is trusted: a folder may be another program's, half written, or damaged, and every file is
checked for the columns and kinds of values that it must have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lachesis.errors import InputError
from lachesis.results.directory import (
    LIFETIMES,
    MANIFEST,
    RUNS,
    TIMELINES,
    Manifest,
    read_manifest,
    read_shards,
    read_table,
)
from lachesis.results.document import SCHEMA_VERSION
from lachesis.results.measures import TIERS
from lachesis.results.rows import (
    INFEASIBLE,
    STATUS,
    infeasible_runs,
    may_be_missing,
    measured_runs,
    run_columns,
    run_row,
    run_table,
)
from lachesis.traces.schema import SegmentClass

#: Columns of a run that say what was asked, and which every row has.
_ASKED = (
    *("run", "cell", "trace", "policy", "model", "memory", "slo", "seed", "load", STATUS),
    *("overrides", "config_sha256", "trace_sha256", "version"),
)
_COMPARISON = "comparison.json"
_COMPARED = ("figure", "name", "published", "ours", "deviation", "within")
_TIMELINE = pa.schema(
    [
        *((name, pa.string()) for name in ("run", "policy")),
        *((name, pa.float64()) for name in ("time_s", "window_s")),
        *((f"{tier}_occupancy", pa.float64()) for tier in TIERS),
        *(
            (f"{tier}_write_bytes_per_s_{str(name).replace('-', '_')}", pa.float64())
            for tier in TIERS
            for name in SegmentClass
        ),
    ]
)
_LIFETIMES = pa.schema(
    [
        ("trace", pa.string()),
        ("class", pa.string()),
        ("quantile", pa.float64()),
        ("t_norm_s", pa.float64()),
        ("tokens_per_segment", pa.float64()),
        ("segments", pa.int64()),
    ]
)


@dataclass(frozen=True)
class StoredResults:
    """What was found.

    Attributes:
        runs: one row a run, with the columns of `lachesis.results.rows.run_columns`; among them
            those that cannot be run.
        origin: how the runs came about: the manifest as JSON has it; of one run's JSON its
            provenance.
        manifest: of a sweep; None of one run's JSON, or where there is but a comparison.
        timelines: one row a run and window, or None.
        lifetimes: quantiles of T_norm and of tokens a segment, by trace and class, or None.
        comparison: published figures beside ours; empty without.
        cells: cells that were asked for; 0 where that is not known.
        unfinished: those of them that have not been run yet.
        failures: why a policy of a cell that was run has no result, a sentence each.
    """

    runs: pa.Table
    origin: Mapping[str, Any]
    manifest: Manifest | None = None
    timelines: pa.Table | None = None
    lifetimes: pa.Table | None = None
    comparison: tuple[Mapping[str, Any], ...] = ()
    cells: int = 0
    unfinished: int = 0
    failures: tuple[str, ...] = ()

    @cached_property
    def measured(self) -> pa.Table:
        """The runs that were measured, which is what reports and figures are about."""
        return measured_runs(self.runs)

    @cached_property
    def infeasible(self) -> pa.Table:
        """The runs that cannot be run; the column ``reason`` says why."""
        return infeasible_runs(self.runs)


def read_stored_results(path: str | Path) -> StoredResults:
    """Everything in a results directory, finished or not, or the runs of ``run --json``.

    Raises:
        InputError: the place is neither, or something in it is missing, damaged or of another kind.
    """
    place = Path(path)
    try:
        place.stat()
    except (FileNotFoundError, NotADirectoryError) as fault:
        raise InputError("no such folder or file", path=path) from fault
    except ValueError as fault:  # a NUL
        raise InputError("is no name of a file", path=path) from fault
    except OSError as fault:
        raise InputError(f"cannot be read: {fault.strerror}", path=path) from fault
    return _read_folder(place) if place.is_dir() else _read_document(place)


def _read_folder(folder: Path) -> StoredResults:
    comparison = _read_comparison(folder / _COMPARISON)
    if comparison and not (folder / MANIFEST).exists():
        return StoredResults(run_columns().empty_table(), {}, comparison=comparison)
    manifest = read_manifest(folder)
    runs = read_shards(folder, RUNS, manifest, _as_runs)
    if runs is None:
        runs = run_columns().empty_table()
    _check_runs_once(runs["run"].to_pylist(), folder)
    lifetimes = folder / LIFETIMES
    return StoredResults(
        runs=runs,
        origin=msgspec.to_builtins(manifest),
        manifest=manifest,
        timelines=read_shards(
            folder, TIMELINES, manifest, lambda table, path: _checked(table, _TIMELINE, path)
        ),
        lifetimes=(
            _checked(read_table(lifetimes), _LIFETIMES, lifetimes) if lifetimes.exists() else None
        ),
        comparison=comparison,
        cells=len(manifest.cells),
        unfinished=manifest.counts()["pending"],
        failures=tuple(
            f"{cell.trace} · {cell.model} · {cell.memory} · {cell.slo} · {policy}: {reason}"
            for cell in manifest.cells
            for policy, reason in cell.failures.items()
        ),
    )


def _read_document(path: Path) -> StoredResults:
    """One run's JSON: its policies are the runs of one cell."""
    document = _json(path)
    if not (isinstance(document, dict) and isinstance(document.get("runs"), list)):
        raise InputError("is neither a results directory nor the JSON of `lachesis run`", path=path)
    if (version := document.get("schema")) != SCHEMA_VERSION:
        rule = f"this build reads version {SCHEMA_VERSION}"
        raise InputError(rule, path=path, field="schema", value=version)
    origin = document.get("provenance")
    if not isinstance(origin, dict) or not document["runs"]:
        raise InputError("holds no run with its provenance", path=path)
    rows = [
        _row_of(run, origin, path, number) for number, run in enumerate(document["runs"], start=1)
    ]
    try:
        runs = run_table(rows)
    except (pa.ArrowException, OverflowError) as fault:
        raise InputError(f"is no run of `lachesis run`: {fault}", path=path) from fault
    runs = _as_runs(runs, path)
    _check_runs_once(runs["run"].to_pylist(), path)
    return StoredResults(runs=runs, origin=origin, cells=1)


def _row_of(run: Any, origin: Mapping[str, Any], path: Path, number: int) -> dict[str, Any]:  # noqa: ANN401
    try:
        row = run_row(
            run,
            run_id=str(run["config_sha256"])[:16],
            cell_id=str(origin["config_sha256"])[:16],
            trace=str(origin["trace_source"]),
            overrides=[f"{each['key']}={each['value']}" for each in origin["overrides"]],
        )
        row["version"] = str(origin["version"])
        for name in run_columns().names:
            row[name]
    except KeyError as missing:
        raise InputError(
            "is missing", path=path, row=f"run {number}", field=str(missing.args[0])
        ) from missing
    except (TypeError, ValueError, AttributeError) as fault:
        raise InputError(
            f"is no run of `lachesis run`: {fault}", path=path, row=f"run {number}"
        ) from fault
    return row


def _as_runs(table: pa.Table, path: Path) -> pa.Table:
    """The columns of runs, in their order, checked; others are left out."""
    columns = run_columns()
    checked = _checked(table, columns, path)
    return pa.table([checked[name] for name in columns.names], schema=columns)


def _checked(table: pa.Table, columns: pa.Schema, path: Path) -> pa.Table:
    """The table with the columns that are asked for checked and of the types asked for."""
    arrays = {}
    for column in columns:
        if table.schema.get_field_index(column.name) < 0:
            raise InputError("column is missing", path=path, field=column.name)
        values = table[column.name]
        if not _fits(values.type, column.type):
            raise InputError(
                f"holds {values.type}, must hold {column.type}", path=path, field=column.name
            )
        if values.null_count and not may_be_missing(column.name):
            _check_present(table, column.name, path)
        if pa.types.is_floating(values.type):
            _check_finite(values, column.name, path)
        try:
            arrays[column.name] = values.cast(column.type)
        except pa.ArrowInvalid as fault:
            raise InputError(
                f"must hold {column.type}: {fault}", path=path, field=column.name
            ) from fault
    return pa.table({name: arrays.get(name, table[name]) for name in table.column_names})


def _check_present(table: pa.Table, name: str, path: Path) -> None:
    """Refuse a row without a value; one that cannot be run has none of what is measured."""
    missing = table[name].is_null()
    if name not in _ASKED and STATUS in table.column_names:
        measured = pc.not_equal(table[STATUS], INFEASIBLE)
        missing = pc.and_(missing, pc.fill_null(measured, fill_value=True))
    rows = missing.to_pylist()
    if True in rows:
        raise InputError("is empty", path=path, row=rows.index(True) + 1, field=name)


def _fits(given: pa.DataType, asked: pa.DataType) -> bool:
    kinds = (
        (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary),
        (pa.types.is_integer,),
        (pa.types.is_boolean,),
        (pa.types.is_list, pa.types.is_large_list),
    )
    if pa.types.is_null(given):
        return True
    if pa.types.is_floating(asked):
        return bool(pa.types.is_floating(given) or pa.types.is_integer(given))
    return any(
        any(check(given) for check in checks) and any(check(asked) for check in checks)
        for checks in kinds
    )


def _check_finite(values: pa.ChunkedArray, name: str, path: Path) -> None:
    odd = pc.invert(pc.fill_null(pc.is_finite(values), fill_value=True)).to_pylist()
    if True in odd:
        row = odd.index(True)
        raise InputError(
            "must be a finite number", path=path, row=row + 1, field=name, value=values[row].as_py()
        )


def _check_runs_once(names: Iterable[str], path: Path) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError("stands in two rows", path=path, field="run", value=name)
        seen.add(name)


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


def _json(path: Path) -> Any:  # noqa: ANN401 - whatever JSON holds
    try:
        # A named pipe ends when its writer does; a device may never.
        if path.is_char_device() or path.is_block_device():
            raise InputError("cannot be read: is a device", path=path)
        found = json.loads(path.read_text("utf-8"))
        # JSON may escape half a character, which no page and no table can hold.
        json.dumps(found, ensure_ascii=False).encode("utf-8")
        return found  # noqa: TRY300
    except UnicodeEncodeError as fault:
        raise InputError(f"holds what is no character: {fault}", path=path) from fault
    except ValueError as fault:  # no UTF-8, no JSON, or a number of thousands of digits
        raise InputError(f"is no JSON: {fault}", path=path) from fault
    except RecursionError as fault:
        raise InputError("is no JSON that can be read: nested too deeply", path=path) from fault
    except OSError as fault:
        raise InputError(f"cannot be read: {fault.strerror}", path=path) from fault

"""Small results directories, as a sweep leaves them, from rows or from replays made now."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from lachesis.presets import Settings
from lachesis.results.directory import (
    LIFETIMES,
    RUNS,
    TIMELINES,
    CellEntry,
    Manifest,
    shard_file,
    write_manifest,
    write_table,
)
from lachesis.results.document import run_document
from lachesis.results.lifetimes import lifetimes_table
from lachesis.results.rows import run_row, run_table
from lachesis.results.timeline import timeline_table
from lachesis.simulation import Load, Plan, Stopping, compare
from lachesis.traces import open_trace

POLICIES = ("hbm-first", "hbf-only", "lachesis-deterministic")


def sweep(
    place: Path,
    *,
    models: Sequence[str] = ("llama-4-maverick",),
    memories: Sequence[str] = ("2/6",),
    slos: Sequence[str] = ("tight",),
    policies: Sequence[str] = POLICIES,
    timeline_interval_s: float | None = None,
    name: str = "tau3-airline",
) -> Path:
    """Run a grid on a small corpus at a load of 8; `name` is what the rows call the corpus."""
    trace = open_trace("tau3-airline")
    rows: list[dict[str, Any]] = []
    timelines: list[pa.Table] = []
    for model in models:
        for memory in memories:
            for slo in slos:
                plan = Plan(
                    Settings.choose(model=model, memory=memory, slo=slo),
                    stopping=Stopping(turnovers=2.0),
                    timeline_interval_s=timeline_interval_s,
                )
                comparison = compare(trace, plan, policies, Load.parse("8"))
                cell = _digest(model, memory, slo)
                found = [
                    run_row(
                        run, run_id=_digest(cell, run["policy"]), cell_id=cell, trace=name,
                        overrides=[],
                    )
                    for run in run_document(comparison)["runs"]
                ]  # fmt: skip
                rows += found
                if timeline_interval_s is not None:
                    timelines.append(_with_run(timeline_table(comparison), found))
    write(place, rows, presets={"flash": {}})
    write_table(place / LIFETIMES, lifetimes_table({name: trace}))
    if timelines:
        shard_file(place, TIMELINES, 0).parent.mkdir()
        write_table(shard_file(place, TIMELINES, 0), pa.concat_tables(timelines))
    return place


def write(place: Path, rows: Sequence[dict[str, Any]], **manifest: Any) -> Path:
    """Write rows as the only shard of a results directory."""
    shard_file(place, RUNS, 0).parent.mkdir(parents=True)
    write_table(shard_file(place, RUNS, 0), run_table(rows))
    cells = [cell_entry(cell, state="done") for cell in dict.fromkeys(row["cell"] for row in rows)]
    known = {"specification": {}, "specification_sha256": "0", "shards": 1, "cells": cells}
    write_manifest(place, Manifest(**{"version": "0.1.0", **known, **manifest}))
    return place


def cell_entry(cell: str, **values: Any) -> CellEntry:
    """A cell of a manifest."""
    known = {
        "shard": 0, "trace": "t", "model": "m", "memory": "2/6", "slo": "tight", "load": "8",
        "seed": 1, "policies": ["hbm-first"], "overrides": [],
    }  # fmt: skip
    return CellEntry(cell=cell, **{**known, **values})


def _with_run(timeline: pa.Table, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """A timeline with what names the run of each row in front."""
    found = {row["policy"]: row for row in rows}
    names = timeline["policy"].to_pylist()
    keys = ("run", "trace", "model", "memory", "slo", "policy", "seed")
    front = {key: pa.array([found[name][key] for name in names]) for key in keys}
    rest = timeline.drop_columns(["policy"])
    return pa.table({**front, **{name: rest[name] for name in rest.column_names}})


def _digest(*words: str) -> str:
    return sha256("\0".join(words).encode()).hexdigest()[:16]

"""Small results directories, as a sweep leaves them, from replays made now."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lachesis.characterise.segments import segment_columns
from lachesis.presets import Settings, load_latency
from lachesis.results.document import run_document
from lachesis.results.run_columns import flat_run
from lachesis.results.timeline import timeline_table
from lachesis.simulation import Load, Plan, Stopping, compare
from lachesis.traces import open_trace

POLICIES = ("hbm-first", "hbf-only", "lachesis-deterministic")


def sweep(
    place: Path,
    *,
    traces: tuple[str, ...] = ("tau3-airline",),
    models: tuple[str, ...] = ("llama-4-maverick",),
    memories: tuple[str, ...] = ("2/6",),
    slos: tuple[str, ...] = ("tight",),
    policies: tuple[str, ...] = POLICIES,
    load: str = "8",
    turnovers: float = 2.0,
    timeline_interval_s: float | None = None,
    names: dict[str, str] | None = None,
) -> Path:
    """Run a grid and write it in the layout of a results directory; `names` renames traces."""
    rows: list[dict[str, Any]] = []
    timelines, lifetimes, cells, described = [], [], [], {}
    for corpus in traces:
        name, trace = (names or {}).get(corpus, corpus), open_trace(corpus)
        described[name] = {"sha256": trace.sha256, "requests": trace.requests.num_rows}
        lifetimes += lifetime_rows(name, trace)
        for model in models:
            for memory in memories:
                for slo in slos:
                    plan = Plan(
                        Settings.choose(model=model, memory=memory, slo=slo),
                        stopping=Stopping(turnovers=turnovers),
                        timeline_interval_s=timeline_interval_s,
                    )
                    comparison = compare(trace, plan, policies, Load.parse(load))
                    cell = digest(name, model, memory, slo)
                    cells.append({"cell": cell, "state": "done", "shard": 0})
                    document = run_document(comparison)
                    rows += [
                        flat_run(
                            run, trace=name, overrides=[], version="0.1.0",
                            identity=(digest(cell, run["policy"]), cell),
                        )
                        for run in document["runs"]
                    ]  # fmt: skip
                    if timeline_interval_s is not None:
                        timelines.append(with_run(timeline_table(comparison), rows))
    write(place, rows, timelines, lifetimes, {"traces": described, "cells": cells})
    return place


def write(
    place: Path,
    rows: list[dict[str, Any]],
    timelines: list[pa.Table],
    lifetimes: list[dict[str, Any]],
    manifest: dict[str, Any],
) -> None:
    """Write the files of a results directory."""
    (place / "runs").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), place / "runs" / "00000.parquet")
    if timelines:
        (place / "timelines").mkdir()
        pq.write_table(pa.concat_tables(timelines), place / "timelines" / "00000.parquet")
    if lifetimes:
        pq.write_table(pa.Table.from_pylist(lifetimes), place / "lifetimes.parquet")
    whole = {"schema": 1, "version": "0.1.0", **manifest}
    (place / "manifest.json").write_text(json.dumps(whole, indent=2), encoding="utf-8")


def with_run(timeline: pa.Table, rows: list[dict[str, Any]]) -> pa.Table:
    """A timeline with what names the run of each row in front."""
    found = {row["policy"]: row for row in rows[-len(set(timeline["policy"].to_pylist())) :]}
    names = timeline["policy"].to_pylist()
    keys = ("run", "trace", "model", "memory", "slo", "policy", "seed")
    front = {key: pa.array([found[name][key] for name in names]) for key in keys}
    rest = timeline.drop_columns(["policy"])
    return pa.table({**front, **{name: rest[name] for name in rest.column_names}})


def lifetime_rows(name: str, trace: Any) -> list[dict[str, Any]]:
    """Distributions of T_norm and of tokens a segment, by class, in 101 steps."""
    columns = segment_columns(trace, load_latency(), seed=0)
    quantiles = np.linspace(0.0, 1.0, 101)
    rows = []
    for kind in columns.classes():
        of_class = columns.of_class(kind)
        lives = np.quantile(of_class.t_norm_s, quantiles)
        tokens = np.quantile(of_class.tokens, quantiles)
        rows += [
            {
                "trace": name, "class": str(kind), "quantile": float(quantile),
                "t_norm_s": float(life), "tokens_per_segment": float(size),
                "segments": len(of_class),
            }
            for quantile, life, size in zip(quantiles, lives, tokens, strict=True)
        ]  # fmt: skip
    return rows


def digest(*words: str) -> str:
    return sha256("\0".join(words).encode()).hexdigest()[:16]

"""The document of ``lachesis run --json``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lachesis.results.measures import run_object
from lachesis.results.provenance import config_sha256, provenance
from lachesis.results.schema import shipped_schema
from lachesis.simulation import BASELINE, Comparison

SCHEMA_VERSION = 1


def run_document(
    comparison: Comparison, *, command: Sequence[str] = (), corpora: Sequence[str] = ()
) -> dict[str, Any]:
    """Schema version, provenance, and one object for each policy.

    Equal questions give equal documents, wall times (``wall_s``) aside.

    Args:
        comparison: from `lachesis.simulation.compare`.
        command: the arguments that decide the result.
        corpora: names of the built-in corpora among the inputs.

    Example:
        >>> from lachesis.presets import Settings
        >>> from lachesis.simulation import Load, Plan, Stopping, compare
        >>> from lachesis.traces import open_trace
        >>> plan = Plan(Settings.choose(), stopping=Stopping(turnovers=2.0))
        >>> outcome = compare(open_trace("tau3-airline"), plan, load=Load.parse("8"))
        >>> document = run_document(outcome)
        >>> document["schema"], [run["memory"] for run in document["runs"]]
        (1, ['2/6', '2/6'])
    """
    return {
        "schema": SCHEMA_VERSION,
        "provenance": provenance(comparison, command=command, corpora=corpora),
        "runs": run_objects(comparison),
    }


def run_objects(comparison: Comparison) -> list[dict[str, Any]]:
    """One object for each policy, in order, with hashes and the gain over hbm-first."""
    runs = []
    for replay in comparison.replays:
        run = run_object(comparison, replay)
        run["config_sha256"] = config_sha256(comparison, replay)
        run["trace_sha256"] = comparison.trace.sha256
        runs.append(run)
    add_gains(runs)
    return runs


def add_gains(runs: Sequence[dict[str, Any]]) -> None:
    """Fill in ``gain_over_hbm_first`` of runs that differ by policy alone."""
    baseline = next((run for run in runs if run["policy"] == BASELINE), None)
    years = None if baseline is None else baseline["hbf_lifetime_years"]
    for run in runs:
        if years is not None and run["hbf_lifetime_years"] is not None:
            run["gain_over_hbm_first"] = run["hbf_lifetime_years"] / years


def to_json(document: dict[str, Any]) -> str:
    """A document as text that ends in a newline; numbers that are not finite are a fault."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def run_schema() -> dict[str, Any]:
    """The JSON Schema of `run_document`, with the meaning and unit of every key.

    Example:
        >>> "hbf_lifetime_years" in run_schema()["$defs"]["run"]["properties"]
        True
    """
    return shipped_schema("run")

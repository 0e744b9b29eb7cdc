"""The document of ``lachesis trace stats --json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lachesis.characterise import WorkloadStats
from lachesis.characterise.bootstrap import REPLICATES
from lachesis.presets import LatencyPreset
from lachesis.results.provenance import measured_provenance
from lachesis.results.schema import shipped_schema
from lachesis.traces import Trace

SCHEMA_VERSION = 1


def stats_document(
    trace: Trace,
    stats: Sequence[WorkloadStats],
    *,
    latency: LatencyPreset,
    seed: int,
    command: Sequence[str] = (),
    corpora: Sequence[str] = (),
) -> dict[str, Any]:
    """Schema version, provenance, and one object for each workload; equal questions, equal bytes.

    Args:
        trace: what was characterised.
        stats: from `lachesis.characterise.stats` of it.
        latency: the latencies of the reference clock.
        seed: of its draws.
        command: the arguments that decide the result.
        corpora: names of the built-in corpora among the inputs.

    Example:
        >>> from lachesis.characterise import stats
        >>> from lachesis.presets import load_latency
        >>> from lachesis.traces import open_trace
        >>> trace, latency = open_trace("tau3-airline"), load_latency()
        >>> document = stats_document(trace, stats(trace, latency, 0), latency=latency, seed=0)
        >>> document["schema"], document["workloads"][0]["requests"]
        (1, 709)
    """
    return {
        "schema": SCHEMA_VERSION,
        "provenance": {
            **measured_provenance(
                trace, latency=latency, seed=seed, command=command, corpora=corpora
            ),
            "percentiles": "linear between order statistics",
            "bootstrap_replicates": REPLICATES,
        },
        "workloads": [each.to_json() for each in stats],
    }


def stats_schema() -> dict[str, Any]:
    """The JSON Schema of `stats_document`, with the meaning and unit of every key.

    Example:
        >>> "lead_waiting_share" in stats_schema()["$defs"]["workload"]["properties"]
        True
    """
    return shipped_schema("trace_stats")

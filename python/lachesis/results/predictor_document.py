"""The documents of ``lachesis predictor --json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from lachesis.predict import Evaluation, TrainedPredictor
from lachesis.predict.evaluation import REPLICATES
from lachesis.presets import LatencyPreset
from lachesis.results.provenance import measured_provenance
from lachesis.results.schema import shipped_schema
from lachesis.traces import Trace

SCHEMA_VERSION = 1


def evaluation_document(
    trace: Trace,
    evaluation: Evaluation,
    *,
    latency: LatencyPreset,
    seed: int,
    command: Sequence[str] = (),
    corpora: Sequence[str] = (),
) -> dict[str, Any]:
    """Schema version, provenance and all figures; equal questions give equal documents.

    Args:
        trace: whose workers were scored.
        evaluation: of the scores.
        latency: the latencies of the reference clock.
        seed: of its draws and of the intervals.
        command: the arguments that decide the result.
        corpora: names of the built-in corpora among the inputs.

    Example:
        >>> from lachesis.predict import Kind, evaluate
        >>> from lachesis.presets import load_latency
        >>> from lachesis.traces import open_trace
        >>> trace = open_trace("webarena")
        >>> document = evaluation_document(
        ...     trace, evaluate(trace, Kind.LENGTH), latency=load_latency(), seed=0
        ... )
        >>> document["kind"], sorted(document["top_k"])[0]
        ('instruction-length', '0.05')
    """
    origin = measured_provenance(
        trace, latency=latency, seed=seed, command=command, corpora=corpora
    )
    return {
        "schema": SCHEMA_VERSION,
        "provenance": {**origin, "bootstrap_replicates": REPLICATES},
        **evaluation.to_json(),
    }


def training_document(
    trace: Trace,
    predictor: TrainedPredictor,
    *,
    output: str,
    latency: LatencyPreset,
    seed: int,
    command: Sequence[str] = (),
    corpora: Sequence[str] = (),
) -> dict[str, Any]:
    """What was trained, on what, and where it went."""
    return {
        "schema": SCHEMA_VERSION,
        "provenance": measured_provenance(
            trace, latency=latency, seed=seed, command=command, corpora=corpora
        ),
        "output": output,
        "kind": str(predictor.kind),
        "alpha": predictor.alpha,
        "features": msgspec.to_builtins(predictor.features),
        "trained_on": msgspec.to_builtins(predictor.trained_on),
    }


def evaluation_schema() -> dict[str, Any]:
    """The JSON Schema of `evaluation_document`, with the meaning of every key.

    Example:
        >>> "kendall_tau" in evaluation_schema()["required"]
        True
    """
    return shipped_schema("predictor_evaluation")

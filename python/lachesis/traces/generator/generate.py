"""Generates a corpus from its specification."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from lachesis.errors import InputError
from lachesis.presets import load_latency
from lachesis.traces.generator import (
    specification,
    structural,
    structural_columns,
    temporal,
    temporal_columns,
)
from lachesis.traces.generator.calls import deal_classes
from lachesis.traces.generator.columns import Columns, tables
from lachesis.traces.generator.draws import Floats, group_sums, stream
from lachesis.traces.generator.spawn_text import write_texts
from lachesis.traces.generator.specification import Specification
from lachesis.traces.quality import Quality
from lachesis.traces.trace import Trace, concat

_STRUCTURAL = ("appworld", "deepsearchqa", "swe-bench-verified", "terminal-bench", "webarena")

#: Mixes and their parts, in the order of Table 3.
MIXES: dict[str, tuple[str, ...]] = {
    "tau3": ("tau3-airline", "tau3-retail", "tau3-telecom", "tau3-banking"),
    "bfclv4": ("bfclv4-base", "bfclv4-long-context"),
    "multi-agent": _STRUCTURAL,
    "multi-agent-no-reviewer": _STRUCTURAL,
}
WITHOUT_REVIEWERS = "multi-agent-no-reviewer"
#: At 1.4 kilobytes each (measured on multi-agent) some 7 gigabytes while they are generated.
_REQUESTS_MAX = 5_000_000
_TOKENIZER = "none: token counts are generated"


def generate(name: str, seed: int | None = None, scale: float = 1.0) -> Trace:
    """Generate a workload or a mix.

    Args:
        name: one of `lachesis.traces.generator.corpora.names`.
        seed: another one than the specification's; the same seed gives the same trace.
        scale: multiplies sessions, requests and tokens (rounded, each workload at least one
            session).

    Raises:
        InputError: unknown name, negative seed, or a scale that is not above 0, leaves too few
            requests for the specification's shape, or asks for more than 5,000,000.

    Example:
        >>> trace = generate("tau3-airline", scale=0.5)
        >>> len(trace), trace.requests.num_rows
        (29, 354)
    """
    if not (np.isfinite(scale) and scale > 0.0):
        raise InputError("must be above 0", field="scale", value=scale)
    if seed is not None and seed < 0:
        raise InputError("must be at least 0", field="seed", value=seed)
    specifications = [specification.load(part) for part in MIXES.get(name, (name,))]
    requests = sum(spec.counts.requests.value for spec in specifications)
    if requests * scale > _REQUESTS_MAX:
        most = math.floor(_REQUESTS_MAX / requests)
        rule = f"must be at most {most} for {name}: a trace of ours lies in memory as a whole"
        raise InputError(rule, field="scale", value=scale)
    traces = [
        _workload(spec, seed, scale, reviewers=name != WITHOUT_REVIEWERS) for spec in specifications
    ]
    return concat(traces, source=name)


def columns(
    spec: Specification, seed: int | None = None, scale: float = 1.0, *, reviewers: bool = True
) -> Columns:
    """Numpy columns of one workload; see `generate`."""
    seed = spec.seed if seed is None else seed
    if spec.temporal is not None:
        sizes = temporal.draw(spec, seed, scale)
        calls = int((sizes.rounds - 1).sum())
        tools = deal_classes(spec.temporal.tools.value, calls, stream(seed, spec.name, "tools"))
        return temporal_columns.lay_out(spec, sizes, tools)
    law = spec.structural
    assert law is not None, "Invariant: a specification has one of the two regimes"
    many = structural.draw(spec, seed, scale)
    shares = law.worker.tools.value
    lead_tools = deal_classes(
        shares, int(many.own_rounds.sum()), stream(seed, spec.name, "lead tools")
    )
    worker_tools = deal_classes(
        shares, int(many.calls.sum()), stream(seed, spec.name, "worker tools")
    )
    texts = write_texts(
        spec.name, law.task, _lifetimes_s(many), many.instruction, many.context, seed
    )
    return structural_columns.lay_out(
        spec, many, lead_tools, worker_tools, texts, reviewers=reviewers
    )


def _lifetimes_s(sizes: structural.StructuralSizes) -> Floats:
    """Each worker's life on the reference clock, tool delays left out (they are not drawn yet)."""
    clock = load_latency()
    output = group_sums(sizes.output, sizes.rounds)
    observations = group_sums(sizes.observations, sizes.rounds)
    return output * clock.tpot_ref_s + observations * clock.ttft_ref_s


def _workload(spec: Specification, seed: int | None, scale: float, *, reviewers: bool) -> Trace:
    made = tables(columns(spec, seed, scale, reviewers=reviewers))
    quality = Quality(requests=Counter({"inferred": made["requests"].num_rows}))
    return Trace(**made, source=spec.name, tokenizer=_TOKENIZER, quality=quality)

"""Measures a corpus by the figures that its specification is tuned for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lachesis.characterise.reference_clock import (
    ReferenceSchedule,
    join_rows,
    read_write_ratio,
    schedule,
    waiting_share,
    written_tokens,
)
from lachesis.presets import load_latency
from lachesis.traces.schema import SegmentClass
from lachesis.traces.trace import Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CLOCK_SEED = 0


@dataclass(frozen=True)
class Segments:
    """Per-segment columns of a trace."""

    kind: NDArray[np.object_]
    tokens: Ints
    t_norm_s: Floats
    rho: Floats


def measure(trace: Trace, seed: int = CLOCK_SEED) -> dict[str, float]:
    """Figures of one workload by name; what does not exist in it is left out."""
    clock = schedule(trace, load_latency(), seed)
    segments = Segments(
        kind=trace.segments["class"].to_numpy(),
        tokens=written_tokens(trace),
        t_norm_s=clock.t_norm_s,
        rho=read_write_ratio(trace),
    )
    figures = _totals(trace, segments)
    present = set(segments.kind.tolist())
    if SegmentClass.LADEN in present:
        figures |= _temporal(segments)
    if SegmentClass.WORKER in present:
        figures |= _structural(trace, segments, clock)
    return figures


def _totals(trace: Trace, segments: Segments) -> dict[str, float]:
    spans = trace.spans["tokens"].to_numpy()
    output = trace.requests["output_tokens"].to_numpy()
    keys = trace.segments["prefix_key"].to_pylist()
    seen: set[str] = set()
    written = 0
    for key, tokens in zip(keys, segments.tokens.tolist(), strict=True):
        if key is None or key not in seen:
            written += tokens
        if key is not None:
            seen.add(key)
    return {
        "sessions": float(len(trace)),
        "requests": float(trace.requests.num_rows),
        "tokens_processed": float(spans.sum() + output.sum()),
        "tokens_written": float(written),
        "output_share_of_writes": float(output.sum() / written),
        "output_per_request": float(output.mean()),
        "mean_context": mean_context(trace),
    }


def _temporal(segments: Segments) -> dict[str, float]:
    laden = segments.kind == SegmentClass.LADEN
    stripped = segments.kind == SegmentClass.STRIPPED
    tokens, lives = segments.tokens, segments.t_norm_s
    figures = {
        "turns": float(laden.sum()),
        "laden_tokens_median": float(np.median(tokens[laden])),
        "laden_tokens_mean": float(tokens[laden].mean()),
        "stripped_tokens_median": float(np.median(tokens[stripped])),
        "stripped_tokens_mean": float(tokens[stripped].mean()),
        "lifetime_ratio": float(np.median(lives[stripped]) / np.median(lives[laden])),
        "separability": separability(lives[stripped], lives[laden]),
    }
    means = figures["laden_tokens_mean"], figures["stripped_tokens_mean"]
    figures["laden_share"] = means[0] / sum(means)
    return figures


def _structural(trace: Trace, segments: Segments, clock: ReferenceSchedule) -> dict[str, float]:
    lead, worker, reviewer = (
        segments.kind == kind
        for kind in (SegmentClass.LEAD, SegmentClass.WORKER, SegmentClass.REVIEWER)
    )
    tokens, lives = segments.tokens, segments.t_norm_s
    median = float(np.median(lives[lead]))
    share = {
        "lead": float(tokens[lead].sum() / tokens.sum()),
        "worker": float(tokens[worker].sum() / tokens.sum()),
    }
    figures = {
        "workers_per_session": float(worker.sum() / len(trace)),
        "lead_over_worker": median / float(np.median(lives[worker])),
        "lead_waiting_share": float(np.median(waiting_share(trace, clock))),
        "rho_overlap_lead_worker": overlap(segments.rho[lead], segments.rho[worker]),
        "worker_t_norm_spread": spread(lives[worker]),
        "worker_write_spread": spread(tokens[worker]),
        "worker_tau": kendall_tau(lives[worker], tokens[worker].astype(np.float64)),
        "lead_write_share": share["lead"],
        "worker_write_share": share["worker"],
        "worker_t_norm_median_s": float(np.median(lives[worker])),
        "worker_tokens_median": float(np.median(tokens[worker])),
    }
    subagent = worker | reviewer
    figures["separability_lead"] = separability(lives[lead], lives[subagent])
    figures["separability_lead_worker"] = separability(lives[lead], lives[worker])
    if reviewer.any():
        figures["lead_over_reviewer"] = median / float(np.median(lives[reviewer]))
        figures["separability_lead_reviewer"] = separability(lives[lead], lives[reviewer])
        figures["reviewer_over_worker_tokens"] = float(
            tokens[reviewer].sum() / tokens[worker].sum()
        )
    return figures


def mean_context(trace: Trace) -> float:
    """Mean context of a running request, weighted by its output (time spent decoding)."""
    rows = join_rows(trace)
    inputs = np.bincount(rows.request_of_span, weights=trace.spans["tokens"].to_numpy())
    output = trace.requests["output_tokens"].to_numpy()
    return float(((inputs + output / 2.0) * output).sum() / output.sum())


def separability(above: Floats, below: Floats) -> float:
    """P(X > Y) + P(X = Y) / 2 for X of ``above`` and Y of ``below``, over all pairs.

    >>> separability(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
    0.875
    """
    ordered = np.sort(below)
    less = np.searchsorted(ordered, above, side="left")
    less_or_equal = np.searchsorted(ordered, above, side="right")
    return float((less + less_or_equal).mean() / (2.0 * len(ordered)))


def overlap(first: Floats, second: Floats) -> float:
    """1 - sup |F - G| of two empirical distributions.

    >>> overlap(np.array([1.0, 2.0]), np.array([1.0, 2.0])), overlap(np.zeros(2), np.ones(2))
    (1.0, 0.0)
    """
    points = np.concatenate((first, second))
    of_first = np.searchsorted(np.sort(first), points, side="right") / len(first)
    of_second = np.searchsorted(np.sort(second), points, side="right") / len(second)
    return float(1.0 - np.abs(of_first - of_second).max())


def spread(values: Floats | Ints) -> float:
    """The 90th over the 10th percentile."""
    low, high = np.percentile(values, [10, 90])
    return float(high / low)


def kendall_tau(first: Floats, second: Floats) -> float:
    """Kendall's tau-b over all pairs (quadratic; a few thousand values at most).

    >>> kendall_tau(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))
    0.3333333333333333
    """
    balance = first_untied = second_untied = 0
    for index in range(1, len(first)):
        signs = np.sign(first[:index] - first[index]), np.sign(second[:index] - second[index])
        balance += int((signs[0] * signs[1]).sum())
        first_untied += int(np.count_nonzero(signs[0]))
        second_untied += int(np.count_nonzero(signs[1]))
    return float(balance / np.sqrt(float(first_untied) * float(second_untied)))

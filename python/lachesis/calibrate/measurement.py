"""Measures a corpus by the figures that its specification is tuned for."""

from __future__ import annotations

import numpy as np

from lachesis.characterise.reference_clock import join_rows
from lachesis.characterise.segments import SegmentColumns, segment_columns
from lachesis.characterise.statistics import (
    kendall_tau,
    median,
    overlap,
    separability,
    spread,
)
from lachesis.presets import load_latency
from lachesis.traces.schema import SegmentClass
from lachesis.traces.trace import Trace

CLOCK_SEED = 0


def measure(trace: Trace, seed: int = CLOCK_SEED) -> dict[str, float]:
    """Figures of one workload by name; what does not exist in it is left out."""
    columns = segment_columns(trace, load_latency(), seed)
    figures = _totals(trace, columns)
    present = columns.classes()
    if SegmentClass.LADEN in present:
        figures |= _temporal(columns)
    if SegmentClass.WORKER in present:
        figures |= _structural(trace, columns)
    return figures


def _totals(trace: Trace, columns: SegmentColumns) -> dict[str, float]:
    spans = trace.spans["tokens"].to_numpy()
    output = trace.requests["output_tokens"].to_numpy()
    written = columns.materialised_tokens()
    return {
        "sessions": float(len(trace)),
        "requests": float(trace.requests.num_rows),
        "tokens_processed": float(spans.sum() + output.sum()),
        "tokens_written": float(written),
        "output_share_of_writes": float(output.sum() / written),
        "output_per_request": float(output.mean()),
        "mean_context": mean_context(trace),
    }


def _temporal(columns: SegmentColumns) -> dict[str, float]:
    laden = columns.of_class(SegmentClass.LADEN)
    stripped = columns.of_class(SegmentClass.STRIPPED)
    figures = {
        "turns": float(len(laden)),
        "laden_tokens_median": median(laden.tokens),
        "laden_tokens_mean": float(laden.tokens.mean()),
        "stripped_tokens_median": median(stripped.tokens),
        "stripped_tokens_mean": float(stripped.tokens.mean()),
        "lifetime_ratio": median(stripped.t_norm_s) / median(laden.t_norm_s),
        "separability": separability(stripped.t_norm_s, laden.t_norm_s),
    }
    means = figures["laden_tokens_mean"], figures["stripped_tokens_mean"]
    figures["laden_share"] = means[0] / sum(means)
    return figures


def _structural(trace: Trace, columns: SegmentColumns) -> dict[str, float]:
    lead, worker, reviewer = (
        columns.of_class(kind)
        for kind in (SegmentClass.LEAD, SegmentClass.WORKER, SegmentClass.REVIEWER)
    )
    lead_s = median(lead.t_norm_s)
    all_tokens = int(columns.tokens.sum())
    figures = {
        "workers_per_session": len(worker) / len(trace),
        "lead_over_worker": lead_s / median(worker.t_norm_s),
        "lead_waiting_share": median(columns.waiting[~np.isnan(columns.waiting)]),
        "rho_overlap_lead_worker": overlap(lead.rho, worker.rho),
        "lead_write_share": int(lead.tokens.sum()) / all_tokens,
        "worker_write_share": int(worker.tokens.sum()) / all_tokens,
        "worker_t_norm_median_s": median(worker.t_norm_s),
        "worker_tokens_median": median(worker.tokens),
        "separability_lead": separability(
            lead.t_norm_s, np.concatenate((worker.t_norm_s, reviewer.t_norm_s))
        ),
        "separability_lead_worker": separability(lead.t_norm_s, worker.t_norm_s),
    }
    # A corpus too small to have a spread or an order has no figure for it.
    optional = {
        "worker_t_norm_spread": spread(worker.t_norm_s),
        "worker_write_spread": spread(worker.tokens),
        "worker_tau": kendall_tau(worker.t_norm_s, worker.tokens),
    }
    figures |= {name: value for name, value in optional.items() if value is not None}
    if len(reviewer):
        figures["lead_over_reviewer"] = lead_s / median(reviewer.t_norm_s)
        figures["separability_lead_reviewer"] = separability(lead.t_norm_s, reviewer.t_norm_s)
        figures["reviewer_over_worker_tokens"] = int(reviewer.tokens.sum()) / int(
            worker.tokens.sum()
        )
    return figures


def mean_context(trace: Trace) -> float:
    """Mean context of a running request, weighted by its output (time spent decoding)."""
    rows = join_rows(trace)
    inputs = np.bincount(rows.request_of_span, weights=trace.spans["tokens"].to_numpy())
    output = trace.requests["output_tokens"].to_numpy()
    return float(((inputs + output / 2.0) * output).sum() / output.sum())

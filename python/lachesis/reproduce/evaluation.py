"""Figures 7 and 9 to 12: predictor and simulated runs against the published evaluation."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from lachesis.predict.evaluation import Evaluation
from lachesis.reproduce.claims import claim_rows, evaluated_row, label_rows
from lachesis.reproduce.orderings import ordering_rows
from lachesis.reproduce.published_evaluation import evaluation
from lachesis.reproduce.row import Claim, Row
from lachesis.reproduce.runs import Measured, Runs

_BETWEEN = "Figures 9 and 11"


def figure_7(found: Evaluation) -> list[Row]:
    """How well the predictor orders workers, and what its first tenth selects."""
    published = evaluation().predictor
    tolerance = evaluation().tolerance.ratio
    tau = found.order.kendall_tau
    assert tau is not None
    ci95 = found.order.kendall_tau_ci95
    error = 0.0 if ci95 is None else max(ci95[1] - tau, tau - ci95[0]) / tau
    chosen, _ = found.top_k[published.selected_share]
    subject = (published.corpus,)
    rows = [
        evaluated_row(
            Claim(figure, says, published.source, decimals), published.corpus, subject, value, ours,
            tolerance,
        )
        for figure, says, decimals, value, ours in (
            ("Figure 7", "Kendall's tau of predicted and true rank", 2, published.kendall_tau,
             Measured(tau, error)),
            ("Figure 7(b)", "shortest-lived tenth found by the first tenth", 3,
             published.shortest_found, Measured(chosen.shortest_k)),
            ("Figure 7(b)", "longest-lived tenth taken by the first tenth", 3,
             published.longest_taken, Measured(1.0 - chosen.avoids_longest_k)),
        )
    ]  # fmt: skip
    quartiles = found.quartiles or []
    apart = [later.p50 > earlier.p50 and later.p25 > earlier.p25 and later.p75 > earlier.p75
             for earlier, later in pairwise(quartiles)]  # fmt: skip
    count = sum(apart)
    rows.append(
        Row(
            Claim("Figure 7(a)", "quarters by predicted rank lie one above the other",
                  "Section 3.5"),
            "order", subject, len(apart), count, count / len(apart) - 1.0, all(apart), 0.0,
            "25th, 50th and 75th percentile of each pair of neighbours",
        )
    )  # fmt: skip
    return rows


def simulated_rows(figure: str, runs: Runs) -> list[Row]:
    """Claims, numbers over bars, and orderings that are published with a figure."""
    name = f"Figure {figure}"
    rows = [
        row for claim in evaluation().claims if claim.figure == name
        for row in claim_rows(claim, runs)
    ]  # fmt: skip
    rows += [
        row for labels in evaluation().labels if labels.figure == name
        for row in label_rows(labels, runs)
    ]  # fmt: skip
    return [*rows, *ordering_rows(figure, runs)]


def rows_over_figures(figures: Collection[str], runs: Runs) -> list[Row]:
    """What is stated of several figures at once, where all of them were asked for."""
    if not {"9", "11"} <= set(figures):
        return []
    return [
        row for claim in evaluation().claims if claim.figure == _BETWEEN
        for row in claim_rows(claim, runs)
    ]  # fmt: skip

"""What the text of the evaluation states as numbers and ranges, against what our runs give."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

from lachesis.reproduce.cells import SINGLE_AGENT, SLOS, Cell
from lachesis.reproduce.published_evaluation import EvaluationClaim, Labels, evaluation
from lachesis.reproduce.row import Claim, Row
from lachesis.reproduce.runs import Measured, Runs

#: Quantities in device-years, whose tolerance is the wider one.
_IN_YEARS = frozenset({"years"})


class _Measure(Protocol):
    def __call__(self, claim: EvaluationClaim, runs: Runs) -> dict[str, Measured]: ...


def claim_rows(claim: EvaluationClaim, runs: Runs) -> list[Row]:
    """A range against the lowest and the highest of our cells; a number against each of ours.

    Both ends of ours must lie inside the published range, widened by the tolerance.
    """
    ours = _MEASURES[claim.quantity](claim, runs)
    published = evaluation().tolerance
    tolerance = published.years if claim.quantity in _IN_YEARS else published.ratio
    head = Claim(claim.figure, claim.says, claim.source, claim.decimals)
    if claim.value is not None:
        return [
            evaluated_row(head, subject, claim.traces, claim.value, found, tolerance, claim.reading)
            for subject, found in ours.items()
        ]
    assert claim.range is not None
    by_value = sorted(ours, key=lambda subject: (ours[subject].value, subject))
    return [
        evaluated_row(
            head, subject, claim.traces, claim.range, ours[place], tolerance,
            "; ".join(part for part in (f"at {place}", claim.reading) if part),
        )
        for subject, place in (("lowest", by_value[0]), ("highest", by_value[-1]))
    ]  # fmt: skip


def label_rows(labels: Labels, runs: Runs) -> list[Row]:
    """The numbers written over cut-off bars against ours."""
    claim = Claim(labels.figure, labels.says, labels.source, labels.decimals)
    return [
        evaluated_row(
            claim,
            f"{bar.trace}, {bar.model}, {bar.policy}",
            (bar.trace,),
            bar.years,
            runs.of(Cell(bar.trace, bar.model, labels.memory, labels.slo), bar.policy).years,
            evaluation().tolerance.years,
            labels.reading,
        )
        for bar in labels.bars
    ]


def evaluated_row(
    claim: Claim,
    subject: str,
    workloads: tuple[str, ...],
    published: float | tuple[float, float],
    ours: Measured,
    tolerance: float,
    note: str = "",
) -> Row:
    """A measured value against a number, or against a range that is widened by the tolerance.

    The deviation is from the number, or from the nearer end of the range as it is published (0
    inside). From a published 0 it is the difference.

    Example:
        >>> claim = Claim("Figure 9", "gain", "Section 5.3", decimals=2)
        >>> row = evaluated_row(claim, "highest", ("w",), (1.5, 2.0), Measured(2.1, 0.01), 0.1)
        >>> row.within, round(row.deviation, 4), row.interval
        (True, 0.05, (2.079, 2.121))
    """
    low, high = published if isinstance(published, tuple) else (published, published)
    end = min(max(ours.value, low), high)
    off = (ours.value - end) / end if end else ours.value
    # A run that is too short to tell its error has no interval.
    interval = ours.interval if math.isfinite(ours.relative) else None
    return Row(
        claim, subject, workloads, published, ours.value, off, abs(off) <= tolerance, tolerance,
        note, interval,
    )  # fmt: skip


def claim_cells(claim: EvaluationClaim) -> list[Cell]:
    """The cells that a claim is made of, of those that the paper ran."""
    cells = evaluation().cells
    memories = {"divided": cells.divided, "chain": (cells.chain,), "all": cells.memories}
    return [
        Cell(trace, model, memory, slo)
        for trace in claim.traces
        for model in claim.models or cells.models
        for slo in claim.slos
        for memory in memories[claim.splits]
        if slo == SLOS[0] or trace not in SINGLE_AGENT
    ]


def _by_cell(claim: EvaluationClaim, runs: Runs) -> dict[str, Measured]:
    found = {}
    for cell in claim_cells(claim):
        run = runs.of(cell, claim.policy)
        if claim.quantity == "years":
            found[str(cell)] = run.years
        elif claim.quantity == "hbm_share":
            found[str(cell)] = run.hbm_share
        else:
            assert claim.segment_class is not None
            found[str(cell)] = run.to_flash(claim.segment_class)
    return found


def _between_policies(claim: EvaluationClaim, runs: Runs) -> dict[str, Measured]:
    assert claim.over is not None
    found = {}
    for cell in claim_cells(claim):
        ours, theirs = runs.of(cell, claim.policy), runs.of(cell, claim.over)
        if claim.quantity == "gain":
            found[str(cell)] = ours.years.over(theirs.years)
        else:
            found[str(cell)] = ours.hbm_share.over(theirs.hbm_share)
    return found


def _between_splits(claim: EvaluationClaim, runs: Runs) -> dict[str, Measured]:
    """From the split with the least HBM to the one with the most, a model and trace each."""
    found = {}
    for subject, cells in _groups(claim).items():
        first, last = (runs.of(cell, claim.policy) for cell in (cells[0], cells[-1]))
        if claim.quantity == "absorbed":
            found[subject] = last.flash_rate.over(first.flash_rate).below_one()
        else:
            found[subject] = last.years.over(first.years).below_one()
    return found


def _peak_slots(claim: EvaluationClaim, runs: Runs) -> dict[str, Measured]:
    found = {}
    for subject, cells in _groups(claim).items():
        best = max(cells, key=lambda cell: runs.of(cell, claim.policy).years.value)
        found[subject] = Measured(float(best.memory.partition("/")[0]))
    return found


def _groups(claim: EvaluationClaim) -> dict[str, list[Cell]]:
    groups: dict[str, list[Cell]] = {}
    for cell in claim_cells(claim):
        named = [cell.trace] if len(claim.traces) > 1 else []
        groups.setdefault(", ".join([*named, cell.model]), []).append(cell)
    return groups


_MEASURES: Mapping[str, _Measure] = {
    "years": _by_cell,
    "hbm_share": _by_cell,
    "class_to_flash": _by_cell,
    "gain": _between_policies,
    "hbm_share_ratio": _between_policies,
    "absorbed": _between_splits,
    "years_lost": _between_splits,
    "peak_slots": _peak_slots,
}

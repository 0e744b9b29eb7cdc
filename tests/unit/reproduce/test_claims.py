"""Claims of the evaluation, on rows of runs that are worked by hand."""

import math

import msgspec
import pytest

from lachesis.errors import InternalError
from lachesis.reproduce.cells import Cell
from lachesis.reproduce.claims import claim_cells, claim_rows, evaluated_row, label_rows
from lachesis.reproduce.evaluation import rows_over_figures, simulated_rows
from lachesis.reproduce.published_evaluation import EvaluationClaim, evaluation
from lachesis.reproduce.row import Claim
from lachesis.reproduce.runs import Measured, Run, Runs

from .hand_made_runs import evaluation_runs, row

LLAMA, QWEN = evaluation().cells.models
CELL = Cell("multi-agent", LLAMA, "2/6", "tight")


def claim(says, figure="Figure 9"):
    (found,) = [each for each in evaluation().claims if (each.figure, each.says) == (figure, says)]
    return found


def by_memory(years):
    """HBM-first lives one year less than Lachesis, whose years are given by split."""

    def of(cell, policy):
        return years[cell.memory] - (policy == "hbm-first")

    return evaluation_runs(of)


@pytest.mark.parametrize(
    ("ours", "within", "off"),
    [
        (1.5, True, 0.0),
        (1.36, True, 1.36 / 1.5 - 1),
        (1.34, False, 1.34 / 1.5 - 1),
        (3.24, True, 3.24 / 2.95 - 1),
        (3.25, False, 3.25 / 2.95 - 1),
    ],
)
def test_a_range_is_widened_by_the_tolerance_at_each_end(ours, within, off):
    head = Claim("Figure 9", "gain", "Section 5.3", decimals=2)
    found = evaluated_row(head, "lowest", ("w",), (1.5, 2.95), Measured(ours), 0.1)
    assert found.within is within
    assert found.deviation == pytest.approx(off)


def test_a_published_nothing_is_held_to_nothing():
    head = Claim("Figure 7", "taken", "Section 3.5", decimals=2)
    assert evaluated_row(head, "w", ("w",), 0.0, Measured(0.0), 0.1).within
    assert not evaluated_row(head, "w", ("w",), 0.0, Measured(0.2), 0.1).within


def test_ends_of_a_range_are_our_lowest_and_highest_cell():
    runs = by_memory({"1/7": 2.0, "2/6": 3.0, "3/5": 4.0, "4/4": 5.0, "8/8*": 50.0})
    lowest, highest = claim_rows(claim("gain over HBM-first, tight SLO"), runs)
    assert lowest.ours == pytest.approx(5 / 4)
    assert highest.ours == pytest.approx(2 / 1)
    assert lowest.note.startswith(f"at multi-agent, {LLAMA}, 4/4, tight")
    assert highest.note.startswith(f"at multi-agent, {QWEN}, 1/7, tight")


def test_errors_of_a_ratio_add_in_quadrature_and_reach_the_row():
    runs = by_memory({"1/7": 2.0, "2/6": 3.0, "3/5": 4.0, "4/4": 5.0, "8/8*": 50.0})
    lowest, _ = claim_rows(claim("gain over HBM-first, tight SLO"), runs)
    half = 1.25 * math.hypot(0.02, 0.02)
    assert lowest.interval == pytest.approx((1.25 - half, 1.25 + half))


def test_the_daisy_chain_has_a_row_a_model_where_one_number_is_published():
    runs = by_memory({"1/7": 2.0, "2/6": 3.0, "3/5": 4.0, "4/4": 5.0, "8/8*": 50.0})
    rows = claim_rows(claim("gain on the daisy chain, loose SLO"), runs)
    assert [each.ours for each in rows] == pytest.approx([50 / 49] * 2)
    assert {each.published for each in rows} == {2.53}


def test_what_a_larger_hbm_absorbs_is_told_by_rates_not_by_years():
    cells = [Cell("multi-agent", model, memory, "tight") for model in (LLAMA, QWEN)
             for memory in ("1/7", "4/4")]  # fmt: skip
    rates = [100.0, 88.0, 100.0, 60.0]
    runs = Runs(row(cell, "hbm-first", rate=rate) for cell, rate in zip(cells, rates, strict=True))
    llama, qwen = claim_rows(claim("HBM-first's flash writes that 4/4 saves over 1/7"), runs)
    assert (llama.ours, qwen.ours) == pytest.approx((0.12, 0.40))
    assert (llama.within, qwen.within) == (True, False)


def test_shares_err_by_what_reaches_flash():
    run = Run(row(CELL, "lachesis", share=0.25, error=0.04))
    assert run.hbm_share.value == 0.25
    assert run.hbm_share.interval == pytest.approx((0.25 - 0.04 * 0.75 * 0.25, 0.2575))
    assert run.years.relative == pytest.approx(0.04)


def test_a_class_that_reaches_flash_is_counted_in_bytes():
    written = {("reviewer", "hbm"): 3, ("reviewer", "hbf"): 1, ("lead", "hbf"): 96}
    run = Run(row(CELL, "lachesis", written=written))
    assert run.to_flash("reviewer").value == pytest.approx(0.25)
    assert run.composition()["lead", "hbf"] == 0.96
    with pytest.raises(InternalError, match="no worker was written"):
        run.to_flash("worker")


def test_the_peak_is_the_split_that_lives_longest():
    runs = by_memory({"1/7": 2.0, "2/6": 3.0, "3/5": 6.0, "4/4": 5.0, "8/8*": 50.0})
    lowest, highest = claim_rows(claim("HBM slots of the longest-lived split", "Figure 11"), runs)
    assert (lowest.ours, highest.ours) == (3, 3)
    assert lowest.within


def test_years_lost_against_the_smallest_hbm():
    runs = by_memory({"1/7": 10.0, "2/6": 3.0, "3/5": 4.0, "4/4": 7.0, "8/8*": 50.0})
    says = "device-years lost by 4/4 against 1/7, BFCLv4"
    assert [each.ours for each in claim_rows(claim(says, "Figure 11"), runs)] == pytest.approx(
        [0.3, 0.3]
    )


def test_a_single_agent_is_run_at_the_tight_slo_alone():
    everywhere = claim("device-years under Lachesis, all traces", "Figures 9 and 11")
    slos = {(cell.trace, cell.slo) for cell in claim_cells(everywhere)}
    assert slos == {
        ("multi-agent", "tight"), ("multi-agent", "loose"), ("tau3", "tight"), ("bfclv4", "tight")
    }  # fmt: skip


def test_labels_are_held_to_the_bar_they_stand_on():
    labels = evaluation().labels[0]
    runs = evaluation_runs(lambda cell, policy: 43.0)
    rows = label_rows(labels, runs)
    assert [row.within for row in rows] == [True, True, True, True, True, True, True, False]
    assert rows[-1].deviation == pytest.approx(43.0 / 54.3 - 1)


def test_claims_over_two_figures_need_both():
    runs = evaluation_runs(lambda cell, policy: 5.0)
    assert rows_over_figures(["9"], runs) == []
    assert len(rows_over_figures(["9", "11", "7"], runs)) == 4


def test_every_claim_has_rows_and_each_is_one_figure():
    runs = evaluation_runs(lambda cell, policy: 5.0)
    rows = [row for figure in ("9", "10", "11", "12") for row in simulated_rows(figure, runs)]
    rows += rows_over_figures(["9", "11"], runs)
    names = [(row.claim.figure, row.name) for row in rows]
    assert len(names) == len(set(names))
    said = {row.claim.statistic for row in rows}
    assert {each.says for each in evaluation().claims} <= said


def test_what_was_not_run_is_a_fault_of_ours():
    with pytest.raises(InternalError, match="no run of lachesis in multi-agent"):
        Runs([]).of(CELL, "lachesis")


def test_a_run_without_device_years_is_a_fault_of_ours():
    stuck = {**row(CELL, "lachesis"), "hbf_lifetime_years": None, "hbf_lifetime_years_low": None}
    with pytest.raises(InternalError, match="has no device-years"):
        Run(stuck).years  # noqa: B018


def test_a_claim_publishes_a_range_or_a_number():
    values = msgspec.to_builtins(evaluation().claims[0])
    with pytest.raises(msgspec.ValidationError, match="publishes a range or a value"):
        msgspec.convert({**values, "value": 1.0}, EvaluationClaim)

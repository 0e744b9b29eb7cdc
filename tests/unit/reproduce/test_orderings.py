"""Orderings of the evaluation, on rows of runs that are worked by hand."""

import pytest

from lachesis.reproduce.orderings import ORDERINGS, ordering_rows
from lachesis.reproduce.published_evaluation import evaluation

from .hand_made_runs import evaluation_runs

SPLITS = evaluation().cells.memories


def as_published(cell, policy):
    """Years in which every ordering holds."""
    place = SPLITS.index(cell.memory)
    chain = cell.memory == "8/8*"
    qwen = cell.model.startswith("qwen")
    if cell.trace in ("tau3", "bfclv4"):
        tau3 = cell.trace == "tau3"
        if policy == "hbm-first":
            return (6.0 if tau3 else 3.0) - 0.6 * (0 if chain else place)
        if chain:
            return 17.0
        lost = (1.0, 1.1, 1.0, 0.9)[place]
        worst = not tau3 and not qwen and cell.memory == "4/4"
        return 4.6 if worst else (9.0 if tau3 else 6.0) * lost
    loose, reviewed = cell.slo == "loose", cell.trace == "multi-agent"
    first = (3.8 - 0.5 * place) * (0.75 if loose else 1.0) * (0.9 if reviewed else 1.0)
    if chain:
        first = 4.0 * (1.4 if qwen and not loose else 1.0) * (0.7 if loose else 1.0)
    if policy == "hbm-first":
        return first
    gain = (1.6, 2.1, 2.7, 3.9)[place] if not chain else (10.0 if reviewed else 8.0)
    if loose:
        gain = (1.2, 1.6, 1.8, 1.95)[place] if not chain else 2.5
    if not reviewed:
        gain *= 0.95
    if policy == "lachesis-deterministic":
        gain = 1.0 + (gain - 1.0) * (0.5 if reviewed else 0.9)
    return first * gain


def rows(years):
    runs = evaluation_runs(years)
    return [row for figure in ("9", "11") for row in ordering_rows(figure, runs)]


def test_all_hold_where_the_years_are_the_published_ones():
    missed = [(row.name, row.note) for row in rows(as_published) if not row.within]
    assert missed == []


def test_all_are_of_a_figure_and_stated_once():
    assert {each.figure for each in ORDERINGS} == {f"Figure {n}" for n in (9, 10, 11, 12)}
    assert len({(each.figure, each.says) for each in ORDERINGS}) == len(ORDERINGS)


@pytest.mark.parametrize(
    ("says", "changed", "held"),
    [
        ("Lachesis outlives HBM-first at every model, SLO and split",
         lambda cell, policy, years: 0.1 if policy == "lachesis" and cell.memory == "1/7"
         and cell.trace == "multi-agent" else years, 16),
        ("tight: Lachesis passes five years everywhere",
         lambda cell, policy, years: min(years, 4.9) if cell.memory == "3/5" else years, 8),
        ("tight: HBM-first passes five years only with Qwen on 8/8*",
         lambda cell, policy, years: min(years, 4.9) if policy == "hbm-first" else years, 9),
        ("tight: HBM-first's lifetime falls with each HBM slot",
         lambda cell, policy, years: 9.0 if cell.memory == "2/6" and policy == "hbm-first"
         else years, 4),
        ("loose: 2/6 or 3/5 is the longest-lived divided split",
         lambda cell, policy, years: 20.0 if cell.memory == "1/7" else years, 0),
        ("the reviewer shortens the flash's life, under both policies",
         lambda cell, policy, years: 3.0 * years
         if (cell.trace, cell.memory, policy) == ("multi-agent", "1/7", "hbm-first") else years,
         28),
        ("Lachesis passes five years everywhere but in one cell",
         lambda cell, policy, years: min(years, 4.7) if cell.memory == "1/7" else years, 16),
        ("Lachesis's lifetime falls with every HBM slot past its peak",
         lambda cell, policy, years: 40.0 if (cell.trace, cell.memory) == ("tau3", "4/4")
         else years, 6),
        ("HBM-first passes five years on none of BFCLv4's",
         lambda cell, policy, years: 5.5 if cell.trace == "bfclv4" else years, 0),
    ],
)  # fmt: skip
def test_a_changed_year_is_counted_where_it_breaks_the_order(says, changed, held):
    found = {
        row.claim.statistic: row
        for row in rows(lambda cell, policy: changed(cell, policy, as_published(cell, policy)))
    }
    row = found[says]
    assert not row.within
    assert row.ours == held
    assert row.note.startswith("not at ")


def test_the_interval_counts_what_is_sure_and_what_may_be():
    def years(cell, policy):
        # Within one per cent of each other, where the rows' errors are two.
        return 5.0 if policy == "hbm-first" else 5.05

    (row,) = [
        each for each in rows(years)
        if each.claim.statistic.startswith("Lachesis outlives HBM-first at every model, SLO")
    ]  # fmt: skip
    assert row.ours == 20
    assert row.interval == (0.0, 20.0)

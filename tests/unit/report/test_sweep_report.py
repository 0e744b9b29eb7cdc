"""What a sweep's summary says, from rows written by hand."""

import io

import pyarrow as pa
from rich.console import Console

from lachesis.report.html.words import answer
from lachesis.report.sweep_summary import longest_lives, print_sweep, summary
from lachesis.results.directory import CellEntry, Manifest, Session
from lachesis.results.rows import run_table
from report_rows import LOOSE, row


def manifest(*cells: CellEntry) -> Manifest:
    return Manifest(
        version="0", specification={}, specification_sha256="", shards=1, cells=list(cells),
        sessions=[Session(started="", wall_s=135.0, workers="2 threads", cells=len(cells))],
    )  # fmt: skip


def cell(name: str, **more) -> CellEntry:
    return CellEntry(
        cell=name, shard=0, trace="t", model="m", memory="1/7", slo="tight", load="8", seed=1,
        policies=["hbm-first"], overrides=[], **more,
    )  # fmt: skip


def printed(table: pa.Table, width: int = 80) -> str:
    screen = io.StringIO()
    print_sweep(Console(file=screen, width=width), manifest(cell("a", state="done")), table, 1)
    return screen.getvalue()


def test_the_longest_life_and_what_misses_the_warranty_are_said_as_on_the_page():
    rows = [
        row(memory="1/7", policy="hbm-first", years=(4.0, 3.9, 4.1)),
        row(memory="1/7", years=(8.0, 7.9, 8.1)),
        row(memory="2/6", policy="hbm-first", years=(3.0, 2.9, 3.1)),
        row(memory="2/6", years=(4.9, 4.8, 5.1)),
    ]
    said = summary(manifest(cell("a", state="done"), cell("b", state="done")), run_table(rows), 2)
    assert said == [
        "4 runs in 2 cells; 2 cells run now in 2 min 15 s.",
        "The flash lasts longest at memory 1/7 under lachesis: 8.00 years (95 % interval 7.90 to "
        "8.10).",
        "1 of 4 runs passes the 5-year warranty: lachesis at 1/7.",
        "1 is undecided, as the interval reaches to both sides of it: lachesis at 2/6.",
        "The other 2 fall short.",
        "All 4 runs have settled.",
        "All 4 runs meet their SLO.",
        "No warnings.",
    ]
    assert said[1:5] == list(answer(rows).by_question[0].sentences)
    assert longest_lives(run_table(rows)) is None


def test_intervals_that_overlap_name_no_winner_and_a_missed_slo_wins_nothing():
    rows = [
        row(policy="hbm-first", years=(5.0, 4.5, 5.5)),
        row(years=(5.2, 4.7, 5.7)),
        row(policy="hbf-only", years=(9.0, 8.9, 9.1), meets_slo=False, tpot_p99_s=0.09),
    ]
    said = summary(manifest(cell("a", state="done")), run_table(rows))
    assert said[1].startswith("All runs tie, as their 95 % intervals overlap: 5.20 years")
    assert "Not counted: 1 run that misses the SLO" in said[-4]
    assert not any("longest at" in sentence for sentence in said)


def test_of_several_questions_each_has_its_own_row():
    rows = [
        row(memory="1/7", policy="hbm-first", years=(4.0, 3.9, 4.1)),
        row(memory="2/6", years=(8.0, 7.9, 8.1)),
        row(memory="1/7", policy="hbm-first", years=(3.0, 2.9, 3.1), **LOOSE),
        row(memory="2/6", years=(3.1, 3.0, 3.2), **LOOSE),
    ]
    shown = " ".join(printed(run_table(rows), width=200).split())
    assert "2 questions in which several policies compete" in shown
    assert "lachesis at 2/6 8.00 7.90 to 8.10" in shown
    assert "not told apart: hbm-first at 1/7; lachesis at 2/6 3.10 3.00 to 3.20" in shown
    assert all(len(line) <= 80 for line in printed(run_table(rows)).splitlines())


def test_a_bound_wins_nothing_and_failures_are_counted():
    rows = [
        row(policy="lachesis-oracle", years=(9.0, 8.9, 9.1)),
        row(policy="hbm-first", years=(6.0, 5.9, 6.1)),
    ]
    failed = cell("b", state="failed", failures={"hbm-only": "too large"})
    said = summary(manifest(cell("a", state="done"), failed), run_table(rows), 1)
    assert said[0] == "2 runs in 2 cells; 1 cell run now in 2 min 15 s, 1 were there."
    assert said[1:3] == ["1 run has failed, and no result.", "The manifest says why."]
    assert said[3].startswith("The flash lasts 6.00 years at memory 2/6 under hbm-first")
    assert "A bound that nobody can build reaches 9.00 years" in said[5]


def test_without_a_life_nothing_is_named():
    slos = ({}, LOOSE)
    rows = [row(memory=memory, years=None, **slo) for memory in ("8/0", "2/6") for slo in slos]
    shown = " ".join(printed(run_table(rows), width=200).split())
    assert shown.count("none with device-years – –") == 2


def test_cells_that_are_still_to_be_run_are_counted():
    said = summary(manifest(cell("a", state="done"), cell("b")), run_table([row()]))
    assert said[1].startswith("Not finished: 1 of 2 cells has no runs yet")
    assert summary(manifest(cell("a")), run_table([]))[1].startswith("Not finished: 1 of 1 cell")

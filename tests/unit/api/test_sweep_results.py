"""`lachesis.sweep` and `lachesis.read_results`."""

from pathlib import Path

import numpy as np
import pytest

import lachesis
from lachesis.errors import InputError
from lachesis.results.rows import run_columns
from lachesis.sweeps import SweepWatcher

GRID = {"trace": "tau3-airline", "memory": ["1/7", "2/6"], "load": [4, 8], "turnovers": 2}


@pytest.fixture(scope="module")
def results() -> lachesis.Results:
    return lachesis.sweep({"title": "small", "timeline_interval": "600s", "grid": GRID})


def test_results_hold_one_run_a_row(results: lachesis.Results) -> None:
    assert len(results) == 8
    assert results.to_arrow().schema.equals(run_columns())
    assert results.to_polars().shape == results.to_pandas().shape == (8, len(run_columns()))
    assert results.failures == {}
    assert results.lifetimes().num_rows == 303
    assert results.timelines().num_rows > 8
    assert (
        repr(results) == "Results('small', 8 runs, 4 cells done, 0 infeasible, 0 failed, 0 pending)"
    )
    assert "questions in which several policies compete" in results.summary()


def test_html_says_once_what_does_not_vary(results: lachesis.Results) -> None:
    html = results._repr_html_()
    assert "trace tau3-airline, model llama-4-maverick, SLO tight, seed 1" in html
    assert html.count("<tr>") == 1 + 8


@pytest.mark.parametrize("what", ["device_years", "writes"])
def test_plots_are_figures_with_every_policy(results: lachesis.Results, what, tmp_path) -> None:
    figure = getattr(results, f"plot_{what}")()
    figure.savefig(tmp_path / "plot.svg", metadata={"Date": None})
    text = " ".join((tmp_path / "plot.svg").read_text().split())
    # A panel a load, which its title says.
    for load in (4, 8):
        assert "tau3-airline · llama-4-maverick" in text
        assert f"load {load} sessions" in text
    assert "lachesis-deterministic" in text
    with pytest.raises(InputError, match="every load was given"):
        results.plot_load()


def test_plots_of_what_is_not_there_are_refused() -> None:
    nothing = lachesis.sweep(trace="tau3-airline", load=4, turnovers=2, memory="8/0",
                             policy="hbm-only")  # fmt: skip
    with pytest.raises(InputError, match="no run has device-years"):
        nothing.plot_device_years()


def test_the_manifest_names_an_slo_as_the_rows_do() -> None:
    results = lachesis.sweep(
        trace="tau3-airline", policy="hbf-only", load=4, turnovers=2, tpot="70ms"
    )
    (entry,) = results.manifest.cells
    assert [entry.slo] == results.to_arrow()["slo"].to_pylist() == ["custom"]


def test_axes_may_be_arrays_ranges_and_tuples() -> None:
    axes = {"trace": "tau3-airline", "policy": "hbf-only", "turnovers": 2}
    results = lachesis.sweep(
        load=np.array([4, 8]), seed=range(1, 3), memory=("1/7", "2/6"),
        set={"flash.pe_cycles": (3, 4)}, **axes,
    )  # fmt: skip
    assert len(results) == 16
    assert set(results.to_arrow()["pe_cycles"].to_pylist()) == {3, 4}


def test_a_directory_is_gone_on_with_and_read(tmp_path: Path, results: lachesis.Results) -> None:
    class Stops(SweepWatcher):
        def cell_ended(self, cell, outcome):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lachesis.sweep(**GRID, directory=tmp_path / "out", jobs=1, watcher=Stops())
    begun = lachesis.read_results(tmp_path / "out")
    assert 1 <= len(begun) < 8
    assert begun.manifest.counts()["pending"] > 0
    whole = lachesis.sweep(**GRID, directory=tmp_path / "out")
    assert len(whole) == 8
    first = whole.to_arrow().drop_columns(["run", "cell"])
    # A timeline changes no result.
    assert first.equals(results.to_arrow().drop_columns(["run", "cell"]))
    assert lachesis.read_results(tmp_path / "out").to_arrow().equals(whole.to_arrow())


def test_mistakes_are_told_in_one_line(tmp_path: Path) -> None:
    for wrong, said in (
        ({}, "name a specification, or axes"),
        ({"specification": {"grid": GRID}, "load": 8}, "load, has no effect beside a specif"),
        ({**GRID, "polcy": "x"}, "did you mean policy?"),
        ({**GRID, "jobs": 0}, "jobs = 0, must be at least 1"),
        ({**GRID, "jobs": 2, "ray": "local"}, "has no effect beside ray"),
    ):
        with pytest.raises(InputError, match=said):
            lachesis.sweep(**wrong)
    with pytest.raises(InputError, match="holds no results"):
        lachesis.read_results(tmp_path)

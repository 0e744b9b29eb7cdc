"""What notebooks draw of many runs: every question apart, and seeds as repetitions of one."""

from typing import Any

import pyarrow as pa
import pytest
from matplotlib.figure import Figure

from lachesis.errors import InputError
from lachesis.report.questions import questions
from lachesis.report.repetitions import over_seeds
from lachesis.report.sweep_plot import device_years_figure, load_figure, writes_figure
from lachesis.results.rows import run_table
from report_rows import LOOSE, row


def table(*rows: dict[str, Any]) -> pa.Table:
    return run_table(rows)


def panels(figure: Figure) -> dict[str, Any]:
    """The panels that are shown, by title on one line."""
    return {
        axes.get_title().replace("\n", " · "): axes for axes in figure.axes if axes.get_visible()
    }


def symbols(axes: Any) -> list[tuple[float, float]]:
    """Where a panel's symbols stand: points that are no line and no end of a whisker."""
    return [
        (float(line.get_xdata()[0]), float(line.get_ydata()[0]))
        for line in axes.lines
        if len(line.get_xdata()) == 1 and line.get_marker() not in ("_", "None")
    ]


def whiskers(axes: Any) -> list[tuple[float, float]]:
    """Lower and upper ends of what is drawn around symbols."""
    return [
        (float(segment[0][1]), float(segment[1][1]))
        for lines in axes.collections
        for segment in lines.get_segments()
    ]


def test_seeds_are_a_mean_with_the_range_and_loads_stand_apart() -> None:
    rows = [
        row(seed=seed, load_sessions=load, memory=memory, years=(years, years - 0.1, years + 0.1))
        for load, memory, lives in (
            (8, "1/7", (4.0, 5.0, 9.0)), (8, "2/6", (3.0, 3.0, 3.0)), (64, "1/7", (1.0, 2.0, 3.0)),
        )
        for seed, years in enumerate(lives, start=1)
    ]  # fmt: skip
    figure = device_years_figure(table(*rows))
    shown = panels(figure)
    assert list(shown) == [
        "corpus · model-a · tight · load 8 sessions", "corpus · model-a · tight · load 64 sessions",
    ]  # fmt: skip
    first, second = shown.values()
    assert symbols(first) == [(0.0, 6.0), (1.0, 3.0)]
    assert whiskers(first) == [(4.0, 9.0), (3.0, 3.0)]
    assert symbols(second) == [(0.0, 2.0)]
    assert whiskers(second) == [(1.0, 3.0)]
    assert "Means over the seeds; whiskers reach from the least to the greatest." in (
        figure.get_suptitle()
    )


def test_one_seed_keeps_its_interval_and_nothing_is_said_of_seeds() -> None:
    figure = device_years_figure(table(row(years=(6.0, 5.5, 6.7)), row(policy="hbm-first")))
    (axes,) = panels(figure).values()
    assert whiskers(axes)[1] == pytest.approx((5.5, 6.7))
    assert figure.get_suptitle() == ""


def test_a_seed_that_misses_the_slo_makes_the_symbol_hollow() -> None:
    for missed in (False, True):
        rows = (row(seed=1), row(seed=2, meets_slo=not missed))
        (axes,) = panels(device_years_figure(table(*rows))).values()
        (symbol,) = [line for line in axes.lines if line.get_marker() == "o"]
        assert (symbol.get_color() == "white") == missed


def test_slos_and_changed_values_are_never_joined() -> None:
    rows = [
        row(overrides=[f"flash.pe_cycles={cycles}"], years=(years, years, years), **slo)
        for cycles, years in ((10, 1.0), (20, 2.0))
        for slo in ({}, LOOSE)
    ]
    shown = panels(device_years_figure(table(*rows)))
    assert [symbols(axes)[0][1] for axes in shown.values()] == [1.0, 1.0, 2.0, 2.0]
    assert list(shown)[1] == (
        "corpus · model-a · loose · load 100 sessions · Changed values: flash.pe_cycles=10"
    )


def test_more_loads_than_splits_stand_along_the_axis() -> None:
    rows = [
        row(seed=seed, load_sessions=load, memory=memory, years=(80.0 / load + seed,) * 3)
        for memory in ("1/7", "2/6")
        for load in (8, 16, 32)
        for seed in (1, 3)
    ]
    shown = panels(device_years_figure(table(*rows)))
    assert list(shown) == [
        "corpus · model-a · tight · memory 1/7", "corpus · model-a · tight · memory 2/6",
    ]  # fmt: skip
    for axes in shown.values():
        assert symbols(axes) == [(8.0, 12.0), (16.0, 7.0), (32.0, 4.5)]


def test_loads_that_were_searched_for_are_drawn_with_their_range() -> None:
    rows = [
        row(seed=seed, policy=policy, load_sessions=load, admitted_sessions=load)
        for seed, load in ((1, 90), (2, 110))
        for policy in ("hbm-first", "lachesis")
    ]
    (axes,) = panels(load_figure(table(*rows))).values()
    assert [bar.get_height() for bar in axes.patches] == [100.0]
    assert set(whiskers(axes)) == {(90.0, 110.0)}
    # Searched for under each policy, the loads differ.
    rows[2] |= {"load_sessions": 70, "admitted_sessions": 70}
    (axes,) = panels(load_figure(table(*rows))).values()
    assert sorted(line.get_ydata()[0] for line in axes.lines) == [80.0, 100.0]
    with pytest.raises(InputError, match="every load was given"):
        load_figure(table(row()))


def test_what_seeds_write_is_summed() -> None:
    rows = (
        row(seed=1, write_bytes_lead_hbf=30, write_bytes_worker_hbm=0),
        row(seed=2, write_bytes_lead_hbf=30, write_bytes_worker_hbm=40),
    )
    (axes,) = panels(writes_figure(table(*rows))).values()
    assert sorted(bar.get_width() for bar in axes.patches) == pytest.approx([-40.0, 60.0])
    with pytest.raises(InputError, match="nothing was written"):
        writes_figure(table(row()))


def test_panels_beyond_the_most_are_counted() -> None:
    rows = [row(trace=f"corpus-{number}") for number in range(15)]
    figure = device_years_figure(table(*rows))
    assert len(panels(figure)) == 12
    assert figure.get_suptitle() == "3 more panels are not drawn."


def test_runs_that_cannot_be_run_are_not_drawn() -> None:
    cannot = row(memory="8/0", status="infeasible", reason="too large", years=None)
    written = row(write_bytes_lead_hbf=30)
    searched = row(admitted_sessions=8, load_sessions=8)
    for draw, measured in (
        (device_years_figure, row()), (writes_figure, written), (load_figure, searched),
    ):  # fmt: skip
        figure = draw(table(measured, cannot))
        (axes,) = panels(figure).values()
        assert not any("8/0" in label.get_text() for label in axes.get_xticklabels())
        assert not any("8/0" in label.get_text() for label in axes.get_yticklabels())
        said = "1 run cannot be run, and is left out: too large."
        assert figure.get_suptitle() == said


def test_a_life_that_one_seed_lacks_is_left_out_of_the_mean() -> None:
    (question,) = over_seeds(
        questions([row(seed=1, years=None), row(seed=2, years=(4.0, 3.0, 5.0))])
    )
    (run,) = question.runs
    assert (run["hbf_lifetime_years"], run["repetitions"]) == (4.0, 2)
    assert question.asked["seed"] == "1 and 2"

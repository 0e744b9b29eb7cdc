"""One cell of a sweep: how finely its load is searched for, and where the search starts."""

from typing import Any

import pytest

from lachesis.simulation import LoadedTrace, SearchPrecision, compare
from lachesis.sweeps import Specification, execution
from lachesis.sweeps.cells import expand
from lachesis.sweeps.execution import Guesses, run_cell
from lachesis.traces import open_trace

SHORT = SearchPrecision(turnovers=1.0, requests=100.0, most_requests=300.0, coarse=True)
SPECIFICATION = {
    "grid": {
        "trace": "tau3-airline", "memory": ["1/7", "2/6"], "load": "auto", "turnovers": 2,
        "policy": ["hbm-first", "lachesis-deterministic"],
    }
}  # fmt: skip


@pytest.fixture(scope="module")
def loaded() -> LoadedTrace:
    return LoadedTrace(open_trace("tau3-airline"))


def test_a_search_is_as_fine_as_the_cell_says_and_starts_where_a_neighbour_ended(
    loaded: LoadedTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def heard(*arguments: Any, **options: Any) -> Any:
        asked.append(options)
        return compare(*arguments, **options)

    monkeypatch.setattr(execution, "compare", heard)
    first, second = expand(Specification.parse(SPECIFICATION), SHORT)
    guesses = Guesses()
    found = run_cell(first, loaded, guesses=guesses).rows[0]["admitted_sessions"]
    warm = run_cell(second, loaded, guesses=guesses)

    assert [options["guess"] for options in asked] == [None, found]
    assert all(options["search"] == SHORT for options in asked)
    cold = run_cell(second, loaded)
    assert [without_time(row) for row in warm.rows] == [without_time(row) for row in cold.rows]


def without_time(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "wall_s"}


def test_neighbours_are_cells_of_one_trace_model_and_slo() -> None:
    grid = SPECIFICATION["grid"] | {"slo": ["tight", "loose"], "model": ["llama-4-maverick"]}
    cells = expand(Specification.parse({"grid": grid}))
    guesses = Guesses()
    guesses._found[guesses._key(cells[0])] = 40
    near = {
        (str(cell.plan.settings.memory), cell.plan.settings.slo.name): guesses.near(cell)
        for cell in cells
    }
    assert near == {
        ("1/7", "tight"): 40, ("2/6", "tight"): 40, ("1/7", "loose"): None, ("2/6", "loose"): None,
    }  # fmt: skip


def test_how_finely_a_load_is_searched_for_is_part_of_a_cell() -> None:
    asked = Specification.parse(SPECIFICATION)
    assert {cell.id for cell in expand(asked)}.isdisjoint(cell.id for cell in expand(asked, SHORT))

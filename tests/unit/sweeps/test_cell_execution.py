"""One cell of a sweep: how finely its load is searched for, and where the search starts."""

from typing import Any

import pytest

from lachesis.simulation import LoadedTrace, SearchPrecision, approximate_load, compare
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


def test_a_search_is_as_fine_as_the_cell_says_and_starts_where_the_first_alike_ends(
    loaded: LoadedTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def heard(*arguments: Any, **options: Any) -> Any:
        asked.append(options)
        return compare(*arguments, **options)

    monkeypatch.setattr(execution, "compare", heard)
    first, second = expand(Specification.parse(SPECIFICATION), SHORT)
    about = approximate_load(loaded, first.plan, search=SHORT)
    # Whichever cell comes first, and in a process of its own or not.
    warm = [run_cell(cell, loaded, guesses=Guesses()) for cell in (second, first)]

    assert [options["guess"] for options in asked] == [about, about]
    assert all(options["search"] == SHORT for options in asked)
    cold = compare(loaded, second.plan, second.policies, second.load, search=SHORT)
    found = [row["admitted_sessions"] for row in warm[0].rows]
    assert found == [cold.searches[0].sessions] * 2


def test_alike_are_cells_of_one_trace_model_and_slo_whose_loads_are_searched_for() -> None:
    grid = SPECIFICATION["grid"] | {"slo": ["tight", "loose"], "load": ["auto", 8]}
    cells = expand(Specification.parse({"grid": grid}))
    first: dict[tuple[str, str], Any] = {}
    for cell in cells:
        first.setdefault((cell.plan.settings.slo.name, cell.load.kind), cell.plan)
    for cell in cells:
        alike = first[(cell.plan.settings.slo.name, cell.load.kind)]
        assert cell.first_alike == (alike if cell.load.kind == "auto" else None)


def test_how_finely_a_load_is_searched_for_is_part_of_a_cell() -> None:
    asked = Specification.parse(SPECIFICATION)
    assert {cell.id for cell in expand(asked)}.isdisjoint(cell.id for cell in expand(asked, SHORT))

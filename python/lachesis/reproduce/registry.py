"""Which published figures can be compared, and with what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lachesis.errors import InputError
from lachesis.reproduce import characterisation, evaluation
from lachesis.reproduce.cells import (
    Cell,
    composition_cells,
    multi_agent_cells,
    single_agent_cells,
    single_agent_composition_cells,
)
from lachesis.reproduce.evidence import Evidence
from lachesis.reproduce.row import Row


@dataclass(frozen=True)
class Published:
    """A figure or a table of the paper.

    Attributes:
        kind, number: ``figure`` and ``4``.
        title: what it shows.
        compare: from measurements to rows.
        cells: simulated for it; none for what is measured of the corpora alone.
        quick_saves: whether a lower precision changes it.
    """

    kind: str
    number: str
    title: str
    compare: Callable[[Evidence], list[Row]]
    cells: Callable[[], list[Cell]] = list
    quick_saves: bool = True

    @property
    def name(self) -> str:
        """``Figure 4``."""
        return f"{self.kind.capitalize()} {self.number}"


_ALL = (
    Published("table", "3", "Corpus scale per workload", characterisation.table_3,
              quick_saves=False),
    Published("figure", "4", "Temporal axis: lifetimes and writes", characterisation.figure_4),
    Published("figure", "5", "Structural axis: lifetimes and reuse", characterisation.figure_5),
    Published("figure", "6", "Worker heterogeneity", characterisation.figure_6,
              quick_saves=False),
    Published(
        "figure", "7", "Spawn-time lifetime prediction",
        lambda evidence: evaluation.figure_7(evidence.predictor().evaluation),
    ),
    Published(
        "figure", "9", "Device-years, multi-agent",
        lambda evidence: evaluation.simulated_rows("9", evidence.runs), multi_agent_cells,
    ),
    Published(
        "figure", "10", "Write composition, multi-agent",
        lambda evidence: evaluation.simulated_rows("10", evidence.runs), composition_cells,
    ),
    Published(
        "figure", "11", "Device-years, single agent",
        lambda evidence: evaluation.simulated_rows("11", evidence.runs), single_agent_cells,
    ),
    Published(
        "figure", "12", "Write composition, single agent",
        lambda evidence: evaluation.simulated_rows("12", evidence.runs),
        single_agent_composition_cells,
    ),
)  # fmt: skip


def names(kind: str) -> list[str]:
    """Numbers of the figures or tables that can be compared.

    Example:
        >>> names("table"), names("figure")
        (['3'], ['4', '5', '6', '7', '9', '10', '11', '12'])
    """
    return [each.number for each in _ALL if each.kind == kind]


def choose(
    figures: Sequence[str] = (), tables: Sequence[str] = (), *, quick: bool = False
) -> list[Published]:
    """The figures and tables with these numbers, in the paper's order; all of them without any.

    Raises:
        InputError: an unknown number, or `quick` where it would change nothing.

    Example:
        >>> [each.name for each in choose(figures=["6", "4"])]
        ['Figure 4', 'Figure 6']
    """
    wanted = {"figure": figures, "table": tables}
    for kind, numbers in wanted.items():
        for number in numbers:
            if number not in names(kind):
                raise InputError(
                    f"must be one of {', '.join(names(kind))}", field=f"--{kind}", value=number
                )
    everything = not figures and not tables
    chosen = [each for each in _ALL if everything or each.number in wanted[each.kind]]
    if quick and not any(each.quick_saves for each in chosen):
        told = ", ".join(each.name for each in chosen)
        raise InputError(f"changes nothing about {told}: leave it out", field="--quick")
    return chosen


def cells_of(chosen: Sequence[Published]) -> list[Cell]:
    """Every cell that the chosen figures need, once, in the order of the figures.

    Example:
        >>> len(cells_of(choose())), len(cells_of(choose(["10"])))
        (60, 10)
    """
    return list(dict.fromkeys(cell for published in chosen for cell in published.cells()))


def compare(chosen: Sequence[Published], evidence: Evidence) -> list[Row]:
    """All rows of the chosen figures, in their order, then what is stated of several at once."""
    rows = [row for published in chosen for row in published.compare(evidence)]
    figures = [published.number for published in chosen if published.kind == "figure"]
    if cells_of(chosen):
        rows += evaluation.rows_over_figures(figures, evidence.runs)
    return rows

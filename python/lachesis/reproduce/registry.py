"""Which published figures can be compared, and with what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lachesis.errors import InputError
from lachesis.reproduce import characterisation
from lachesis.reproduce.evidence import Evidence
from lachesis.reproduce.row import Row


@dataclass(frozen=True)
class Published:
    """A figure or a table of the paper.

    Attributes:
        kind, number: ``figure`` and ``4``.
        title: what it shows.
        compare: from measurements to rows.
        quick_saves: whether a shorter measurement is to be had, and worth it.
    """

    kind: str
    number: str
    title: str
    compare: Callable[[Evidence], list[Row]]
    quick_saves: bool = False

    @property
    def name(self) -> str:
        """``Figure 4``."""
        return f"{self.kind.capitalize()} {self.number}"


_ALL = (
    Published("table", "3", "Corpus scale per workload", characterisation.table_3),
    Published("figure", "4", "Temporal axis: lifetimes and writes", characterisation.figure_4),
    Published("figure", "5", "Structural axis: lifetimes and reuse", characterisation.figure_5),
    Published("figure", "6", "Worker heterogeneity", characterisation.figure_6),
)


def names(kind: str) -> list[str]:
    """Numbers of the figures or tables that can be compared.

    Example:
        >>> names("table"), names("figure")
        (['3'], ['4', '5', '6'])
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


def compare(chosen: Sequence[Published], evidence: Evidence) -> list[Row]:
    """All rows of the chosen figures, in their order."""
    return [row for published in chosen for row in published.compare(evidence)]

"""What the evaluation says about order: which policy, split, SLO or trace lives longer.

An ordering is stated of several cells or pairs of them; a row counts in how many of them it holds.
The interval of the count is from those in which it holds beyond the error of ours to those in which
it may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from lachesis.reproduce.cells import (
    BASELINE,
    LACHESIS,
    LOOSE,
    MULTI_AGENT,
    SINGLE_AGENT,
    SLOS,
    TIGHT,
    WITH_REVIEWER,
    WITHOUT_RANKING,
    WITHOUT_REVIEWER,
    Cell,
)
from lachesis.reproduce.published_evaluation import evaluation
from lachesis.reproduce.row import Claim, Row
from lachesis.reproduce.runs import Measured, Runs

_NAMED_MAX = 4


@dataclass(frozen=True)
class Held:
    """Whether an ordering holds in one place.

    Attributes:
        place: the cell, or the pair.
        ratio: above 1 where it holds; its error says how surely.
    """

    place: str
    ratio: Measured

    @property
    def holds(self) -> bool:
        """By the values alone."""
        return self.ratio.value > 1.0

    @property
    def sure(self) -> bool:
        """Whether the interval says the same as the value."""
        low, high = self.ratio.interval
        return low > 1.0 or high <= 1.0


@dataclass(frozen=True)
class Ordering:
    """A statement about order.

    Attributes:
        figure, says, source: as in a claim.
        places: looks at every place that it is stated of.
    """

    figure: str
    says: str
    source: str
    places: Callable[[Runs], Iterable[Held]]

    def row(self, runs: Runs) -> Row:
        """In how many places it holds, of those that it is stated of."""
        places = list(self.places(runs))
        missed = [held for held in places if not held.holds]
        count = len(places) - len(missed)
        sure = sum(held.holds and held.sure for held in places)
        possible = sum(held.holds or not held.sure for held in places)
        note = ""
        if missed:
            named = [f"{held.place} ({held.ratio.value:.2f})" for held in missed[:_NAMED_MAX]]
            more = len(missed) - len(named)
            note = "not at " + "; ".join(named) + (f"; and {more} more" if more else "")
        return Row(
            Claim(self.figure, self.says, self.source), "order", MULTI_AGENT, len(places), count,
            count / len(places) - 1.0, not missed, 0.0, note, (float(sure), float(possible)),
        )  # fmt: skip


def _cells(traces: Iterable[str], slos: Iterable[str], *, chain: bool) -> list[Cell]:
    """With or without the daisy chain."""
    cells = evaluation().cells
    memories = cells.memories if chain else cells.divided
    return [
        Cell(trace, model, memory, slo)
        for trace in traces
        for model in cells.models
        for slo in slos
        for memory in memories
    ]


def _years(runs: Runs, cell: Cell, policy: str) -> Measured:
    return runs.of(cell, policy).years


def _gain(runs: Runs, cell: Cell, policy: str = LACHESIS, over: str = BASELINE) -> Measured:
    return _years(runs, cell, policy).over(_years(runs, cell, over))


def _moved(cell: Cell, **changed: str) -> Cell:
    values = {"trace": cell.trace, "model": cell.model, "memory": cell.memory, "slo": cell.slo}
    return Cell(**{**values, **changed})


def _outlives(policy: str, over: str, traces: tuple[str, ...], slos: tuple[str, ...], *,
              chain: bool) -> Callable[[Runs], list[Held]]:  # fmt: skip
    def places(runs: Runs) -> list[Held]:
        return [
            Held(str(cell), _gain(runs, cell, policy, over))
            for cell in _cells(traces, slos, chain=chain)
        ]

    return places


def _warranty(
    policy: str, traces: tuple[str, ...], passes: Callable[[Cell], bool]
) -> Callable[[Runs], list[Held]]:
    """Five years are passed exactly where the paper says so."""

    def places(runs: Runs) -> list[Held]:
        warranty = Measured(evaluation().cells.warranty_years)
        found = []
        for cell in _cells(traces, (TIGHT,), chain=True):
            years = _years(runs, cell, policy)
            ratio = years.over(warranty) if passes(cell) else warranty.over(years)
            found.append(Held(f"{cell}: {years.value:.1f} years", ratio))
        return found

    return places


def _warranty_but_one(runs: Runs) -> list[Held]:
    """Single agent under Lachesis: all configurations but one; the paper's bars do not say which.

    Counted as ten statements a trace of which the one that fails is free: the lowest cell must be
    below five years, every other above.
    """
    warranty = Measured(evaluation().cells.warranty_years)
    cells = _cells(SINGLE_AGENT, (TIGHT,), chain=True)
    lowest = min(cells, key=lambda cell: _years(runs, cell, LACHESIS).value)
    found = []
    for cell in cells:
        years = _years(runs, cell, LACHESIS)
        ratio = warranty.over(years) if cell == lowest else years.over(warranty)
        found.append(Held(f"{cell}: {years.value:.1f} years", ratio))
    return found


def _some_pass(runs: Runs) -> list[Held]:
    """Under HBM-first some of tau3's configurations pass, and not all."""
    warranty = Measured(evaluation().cells.warranty_years)
    years = [
        _years(runs, cell, BASELINE) for cell in _cells(SINGLE_AGENT[:1], (TIGHT,), chain=True)
    ]
    by_value = sorted(years, key=lambda each: each.value)
    return [
        Held("the longest-lived of tau3", by_value[-1].over(warranty)),
        Held("the shortest-lived of tau3", warranty.over(by_value[0])),
    ]


def _with_each_slot(policy: str, *, rises: bool) -> Callable[[Runs], list[Held]]:
    def places(runs: Runs) -> list[Held]:
        found = []
        for cells in _by_model(WITH_REVIEWER, TIGHT):
            for fewer, more in pairwise(cells):
                ratio = _years(runs, more, policy).over(_years(runs, fewer, policy))
                turned = ratio if rises else Measured(1.0 / ratio.value, ratio.relative)
                found.append(Held(f"{fewer.model}, {fewer.memory} to {more.memory}", turned))
        return found

    return places


def _by_model(trace: str, slo: str) -> list[list[Cell]]:
    """The splits that divide the slots, a list for each model."""
    cells = evaluation().cells
    return [[Cell(trace, model, memory, slo) for memory in cells.divided] for model in cells.models]


def _longest_lived(trace: str, slo: str, splits: tuple[str, ...]) -> Callable[[Runs], list[Held]]:
    """The longest-lived of the divided splits is one of `splits`, for each model."""

    def places(runs: Runs) -> list[Held]:
        found = []
        for cells in _by_model(trace, slo):
            inside, outside = (
                max(
                    (cell for cell in cells if (cell.memory in splits) is wanted),
                    key=lambda cell: _years(runs, cell, LACHESIS).value,
                )
                for wanted in (True, False)
            )
            ratio = _years(runs, inside, LACHESIS).over(_years(runs, outside, LACHESIS))
            best = inside if ratio.value > 1.0 else outside
            found.append(Held(f"{trace}, {best.model}: {best.memory}", ratio))
        return found

    return places


def _falls_past_the_peak(runs: Runs) -> list[Held]:
    found = []
    for trace in SINGLE_AGENT:
        for cells in _by_model(trace, TIGHT):
            years = [_years(runs, cell, LACHESIS) for cell in cells]
            # The peak is published to lie below the last split, so that something lies past it.
            peak = max(range(len(years) - 1), key=lambda place: years[place].value)
            found += [
                Held(f"{cells[0].trace}, {cells[0].model}, {cells[place].memory} to "
                     f"{cells[place + 1].memory}", years[place].over(years[place + 1]))
                for place in range(peak, len(years) - 1)
            ]  # fmt: skip
    return found


def _narrower_at_loose(runs: Runs) -> list[Held]:
    return [
        Held(f"{cell.model}, {cell.memory}", _gain(runs, cell).over(
            _gain(runs, _moved(cell, slo=LOOSE))))
        for cell in _cells((WITH_REVIEWER,), (TIGHT,), chain=True)
    ]  # fmt: skip


def _shorter_at_loose(runs: Runs) -> list[Held]:
    return [
        Held(f"{cell.model}, {cell.memory}, {policy}", _years(runs, cell, policy).over(
            _years(runs, _moved(cell, slo=LOOSE), policy)))
        for cell in _cells((WITH_REVIEWER,), (TIGHT,), chain=False)
        for policy in (BASELINE, LACHESIS)
    ]  # fmt: skip


def _reviewer_shortens(runs: Runs) -> list[Held]:
    return [
        Held(f"{cell.model}, {cell.memory}, {cell.slo}, {policy}", _years(
            runs, _moved(cell, trace=WITHOUT_REVIEWER), policy).over(_years(runs, cell, policy)))
        for cell in _cells((WITH_REVIEWER,), SLOS, chain=False)
        for policy in (BASELINE, LACHESIS)
    ]  # fmt: skip


def _reviewer_shortens_less(runs: Runs) -> list[Held]:
    return [
        Held(f"{cell.model}, {cell.memory}, {cell.slo}", _gain(runs, cell).over(
            _gain(runs, _moved(cell, trace=WITHOUT_REVIEWER))))
        for cell in _cells((WITH_REVIEWER,), SLOS, chain=False)
    ]  # fmt: skip


def _reviewer_lengthens_on_the_chain(runs: Runs) -> list[Held]:
    chain = evaluation().cells.chain
    found = []
    for model in evaluation().cells.models:
        without = Cell(WITHOUT_REVIEWER, model, chain, TIGHT)
        ratio = _years(runs, _moved(without, trace=WITH_REVIEWER), LACHESIS).over(
            _years(runs, without, LACHESIS)
        )
        found.append(Held(model, ratio))
    return found


def _chain_gains_most(runs: Runs) -> list[Held]:
    found = []
    for slo in SLOS:
        for cells in _by_model(WITH_REVIEWER, slo):
            chain = _gain(runs, _moved(cells[0], memory=evaluation().cells.chain))
            best = max((_gain(runs, cell) for cell in cells), key=lambda gain: gain.value)
            found.append(Held(f"{cells[0].model}, {slo}", chain.over(best)))
    return found


def _ranking_adds_more_with_reviewer(runs: Runs) -> list[Held]:
    return [
        Held(f"{cell.model}, {cell.memory}", _gain(runs, cell, LACHESIS, WITHOUT_RANKING).over(
            _gain(runs, _moved(cell, trace=WITHOUT_REVIEWER), LACHESIS, WITHOUT_RANKING)))
        for cell in _cells((WITH_REVIEWER,), (TIGHT,), chain=False)
    ]  # fmt: skip


def _chain_lives_longest(runs: Runs) -> list[Held]:
    found = []
    for trace in SINGLE_AGENT:
        for cells in _by_model(trace, TIGHT):
            chain = _years(runs, _moved(cells[0], memory=evaluation().cells.chain), LACHESIS)
            best = max(_years(runs, cell, LACHESIS).value for cell in cells)
            found.append(Held(f"{trace}, {cells[0].model}", chain.over(Measured(best))))
    return found


def _reviewer_reaches_flash_less(runs: Runs) -> list[Held]:
    model = evaluation().cells.models[0]
    return [
        Held(f"{cell.memory}", runs.of(cell, WITHOUT_RANKING).to_flash("reviewer").over(
            runs.of(cell, LACHESIS).to_flash("reviewer")))
        for cell in _cells((WITH_REVIEWER,), (LOOSE,), chain=False)
        if cell.model == model
    ]  # fmt: skip


def _only_qwen_on_the_chain(cell: Cell) -> bool:
    cells = evaluation().cells
    return (cell.model, cell.memory) == (cells.models[1], cells.chain)


def _share_flattens(runs: Runs) -> list[Held]:
    """What a slot adds to HBM's share: from one to two more than from three to four."""
    model = evaluation().cells.models[1]
    found = []
    for trace in SINGLE_AGENT:
        shares = [
            runs.of(Cell(trace, model, memory, TIGHT), LACHESIS).hbm_share
            for memory in evaluation().cells.divided
        ]
        first, last = shares[1].value - shares[0].value, shares[-1].value - shares[-2].value
        error = max(share.value * share.relative for share in shares)
        ratio = first / last if last > 0.0 else 1.0 + first
        found.append(Held(trace, Measured(ratio, 2.0 * error / max(first, error))))
    return found


ORDERINGS = (
    Ordering("Figure 9", "Lachesis outlives HBM-first at every model, SLO and split",
             "Section 5.3", _outlives(LACHESIS, BASELINE, (WITH_REVIEWER,), SLOS, chain=True)),
    Ordering("Figure 9", "without ranking it still does, at every divided split",
             "Section 5.4",
             _outlives(WITHOUT_RANKING, BASELINE, (WITH_REVIEWER,), SLOS, chain=False)),
    Ordering("Figure 9", "ranking adds to it, at every divided split", "Section 5.4",
             _outlives(LACHESIS, WITHOUT_RANKING, (WITH_REVIEWER,), SLOS, chain=False)),
    Ordering("Figure 9", "tight: Lachesis passes five years everywhere", "Section 5.3",
             _warranty(LACHESIS, (WITH_REVIEWER,), lambda cell: True)),
    Ordering("Figure 9", "tight: HBM-first passes five years only with Qwen on 8/8*",
             "Section 5.3", _warranty(BASELINE, (WITH_REVIEWER,), _only_qwen_on_the_chain)),
    Ordering("Figure 9", "tight: HBM-first's lifetime falls with each HBM slot",
             "Section 5.3", _with_each_slot(BASELINE, rises=False)),
    Ordering("Figure 9", "tight: Lachesis's lifetime rises with each HBM slot",
             "Section 5.3", _with_each_slot(LACHESIS, rises=True)),
    Ordering("Figure 9", "tight: 4/4 is the longest-lived divided split",
             "Section 5.3, from its rise with each slot",
             _longest_lived(WITH_REVIEWER, TIGHT, ("4/4",))),
    Ordering("Figure 9", "loose: 2/6 or 3/5 is the longest-lived divided split",
             "Section 5.3", _longest_lived(WITH_REVIEWER, LOOSE, ("2/6", "3/5"))),
    Ordering("Figure 9", "the gain is narrower at the loose SLO", "Section 5.3",
             _narrower_at_loose),
    Ordering("Figure 9", "the flash lives shorter at the loose SLO",
             "Figure 9, top against bottom row", _shorter_at_loose),
    Ordering("Figure 9", "the reviewer shortens the flash's life, under both policies",
             "Section 5.3", _reviewer_shortens),
    Ordering("Figure 9", "and less so under Lachesis", "Section 5.3",
             _reviewer_shortens_less),
    Ordering("Figure 9", "tight, on 8/8*: it lengthens it under Lachesis",
             "Figure 9, numbers over the bars", _reviewer_lengthens_on_the_chain),
    Ordering("Figure 9", "the gain on 8/8* is the largest of any split", "Section 5.3",
             _chain_gains_most),
    Ordering("Figure 9", "tight: ranking adds more with reviewer than without",
             "Section 5.4", _ranking_adds_more_with_reviewer),
    Ordering("Figure 10", "ranking lets less of the reviewers' writes reach flash",
             "Section 5.4", _reviewer_reaches_flash_less),
    Ordering("Figure 11", "Lachesis outlives HBM-first at every model, trace and split",
             "Section 5.5", _outlives(LACHESIS, BASELINE, SINGLE_AGENT, (TIGHT,), chain=True)),
    Ordering("Figure 11", "Lachesis passes five years everywhere but in one cell",
             "Section 5.5", _warranty_but_one),
    Ordering("Figure 11", "HBM-first passes five years on some of tau3's splits",
             "Section 5.5", _some_pass),
    Ordering("Figure 11", "HBM-first passes five years on none of BFCLv4's",
             "Section 5.5", _warranty(BASELINE, SINGLE_AGENT[1:], lambda cell: False)),
    Ordering("Figure 11", "Lachesis's lifetime falls with every HBM slot past its peak",
             "Section 5.5", _falls_past_the_peak),
    Ordering("Figure 11", "under Lachesis 8/8* lives longest at every trace and model",
             "Section 5.5", _chain_lives_longest),
    Ordering("Figure 12", "HBM's share of the writes flattens with HBM slots",
             "Section 5.5", _share_flattens),
)  # fmt: skip


def ordering_rows(figure: str, runs: Runs) -> list[Row]:
    """The orderings that are published with a figure, given by its number."""
    name = f"Figure {figure}"
    return [ordering.row(runs) for ordering in ORDERINGS if ordering.figure == name]

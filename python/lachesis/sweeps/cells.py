"""The cells of a sweep: everything that decides a run, the policy apart.

The policies of a cell share its trace, its presets and the search for its load. A cell's id is a
digest of what decides it, however it was written: two cells that would measure the same are one.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from lachesis.errors import InfeasibleError, InputError
from lachesis.policy import choose_policy
from lachesis.presets import Settings, SplitError
from lachesis.presets.overrides import USER_SOURCE
from lachesis.results.provenance import digest, plan_values, values_from
from lachesis.simulation import Load, Plan, RunOptions, SearchPrecision
from lachesis.sweeps.axes import OPTIONS, Value, beside, override
from lachesis.sweeps.specification import Grid, Specification

_ID_CHARACTERS = 16
#: Options that decide a run and show in no column of a row.
_UNSHOWN = ("hardware", "flash", "step_time", "precision", "turnovers", "horizon")


@dataclass(frozen=True)
class TraceSource:
    """What is read for a cell: names or paths that are joined, and how files are read."""

    names: tuple[str, ...]
    format: str | None = None
    map: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cell:
    """One comparison of a sweep.

    Attributes:
        id: a digest of everything below but the number and the policies.
        number: its place in the sweep, from 0.
        trace: the names of the traces as written, joined by ``+``.
        source: what is read.
        plan: presets, seed, stopping.
        load: as asked for.
        search: how finely the load is searched for.
        policies: in the order asked for.
        overrides: what differs from the presets and from the defaults, each ``key=value``.
        infeasible: why none of it can be run, where that is known beforehand: the model does not
            fit the memory, say.
        first_alike: where the load is searched for, the plan of the sweep's first cell with this
            trace, model and SLO whose load is searched for too, and that can be run.
    """

    id: str
    number: int
    trace: str
    source: TraceSource
    plan: Plan
    load: Load
    search: SearchPrecision
    policies: tuple[str, ...]
    overrides: tuple[str, ...]
    infeasible: str | None = None
    first_alike: Plan | None = None

    def run_id(self, policy: str) -> str:
        """The id of one policy's run: a digest of the cell and the policy."""
        return digest([self.id, policy])[:_ID_CHARACTERS]


def expand(specification: Specification, search: SearchPrecision | None = None) -> list[Cell]:
    """All cells of a specification, in order: the axis written last varies fastest.

    Presets, policies and loads are checked on the way; traces are not read. Values that are each
    allowed and do not go together make a cell that is known to be infeasible.

    Args:
        specification: what is asked for.
        search: how finely loads are searched for.

    Raises:
        InputError: a value breaks a rule, options contradict each other, a run comes twice, a split
            suits no GPU of its grid, or no cell can be run.

    Example:
        >>> cells = expand(Specification.parse(
        ...     {"grid": {"trace": "tau3-airline", "memory": ["1/7", "2/6"], "load": 8}}
        ... ))
        >>> [(str(cell.plan.settings.memory), cell.policies[0]) for cell in cells]
        [('1/7', 'hbm-first'), ('2/6', 'hbm-first')]
    """
    found: dict[str, Cell] = {}
    plans = _Plans(specification, search or SearchPrecision())
    for grid in specification.grids:
        policies = tuple(str(name) for name in grid.axes["policy"])
        splits = _Splits()
        try:
            for policy in policies:
                choose_policy(policy)
            for options in _combinations(grid, specification.folder):
                cell = plans.cell(options, policies, number=len(found))
                splits.note(options.memory, plans.fault(cell))
                earlier = found.get(cell.id)
                found[cell.id] = cell if earlier is None else _joined(earlier, cell)
            splits.check()
        except InputError as error:
            raise _placed(error, specification, grid) from error
    if all(cell.infeasible for cell in found.values()):
        fault = plans.fault(next(iter(found.values())))
        assert fault is not None, "Invariant: a cell is infeasible for a reason"
        raise _placed(fault, specification, specification.grids[0]) from fault
    return list(_with_first_alike(found.values()))


class _Splits:
    """Memory splits of a grid: one that suits some GPU of it is none that was mistyped."""

    def __init__(self) -> None:
        self._misfits: dict[str | None, SplitError] = {}
        self._suited: set[str | None] = set()

    def note(self, split: str | None, fault: InfeasibleError | None) -> None:
        """A split as written, and why its cell cannot be run."""
        if isinstance(fault, SplitError):
            self._misfits.setdefault(split, fault)
        else:
            self._suited.add(split)

    def check(self) -> None:
        """Refuse a split that suits no GPU."""
        for split, fault in self._misfits.items():
            if split not in self._suited:
                raise fault


def _with_first_alike(cells: Iterable[Cell]) -> Iterator[Cell]:
    """The cells, each with the first that it is like."""
    first: dict[Hashable, Plan] = {}
    for cell in cells:
        if not cell.load.is_searched or cell.infeasible:
            yield cell
            continue
        settings = cell.plan.settings
        limits = (settings.slo.tpot_p99_s, settings.slo.ttft_p99_s)
        key = (cell.source, settings.model.name, limits)
        yield replace(cell, first_alike=first.setdefault(key, cell.plan))


class _Plans:
    """Makes cells; plans that differ by seed alone are made once."""

    def __init__(self, specification: Specification, search: SearchPrecision) -> None:
        self._search = search
        self._interval_s = specification.timeline_interval_s
        self._folder = specification.folder
        self._made: dict[RunOptions, tuple[Plan, InfeasibleError | None]] = {}
        self._faults: dict[str, InfeasibleError] = {}

    def fault(self, cell: Cell) -> InfeasibleError | None:
        """Why a cell that was made here cannot be run; None where it may be."""
        return self._faults.get(cell.id)

    def cell(self, options: RunOptions, policies: tuple[str, ...], *, number: int) -> Cell:
        plan, fault = self._plan(options)
        load = Load.parse(options.load)
        names = tuple(beside(self._folder, "trace", name) for name in options.traces)
        decided = {
            "trace": [options.traces, options.format, options.map],
            "timeline_interval_s": self._interval_s,
            **plan_values(plan, load, self._search),
        }
        identity = digest(decided)[:_ID_CHARACTERS]
        if fault is not None:
            self._faults[identity] = fault
        return Cell(
            id=identity,
            number=number,
            trace="+".join(options.traces),
            source=TraceSource(names, options.format, options.map),
            plan=plan,
            load=load,
            search=self._search,
            policies=policies,
            overrides=tuple(_overrides(options, plan)),
            infeasible=None if fault is None else str(fault),
        )

    def _plan(self, options: RunOptions) -> tuple[Plan, InfeasibleError | None]:
        shared = replace(options, traces=(), format=None, map=(), load="auto", seed=1)
        if shared not in self._made:
            plan = shared.plan(check=False)
            fault = None
            try:
                plan.settings.check()
                plan.cost()
            except InfeasibleError as error:
                fault = error
            self._made[shared] = replace(plan, timeline_interval_s=self._interval_s), fault
        plan, fault = self._made[shared]
        return replace(plan, seed=options.seed), fault


def _combinations(grid: Grid, folder: Path | None) -> Iterator[RunOptions]:
    axes = {key: values for key, values in grid.axes.items() if key != "policy"}
    for values in itertools.product(*axes.values()):
        yield _options(dict(zip(axes, values, strict=True)), folder)


def _options(chosen: dict[str, Value], folder: Path | None) -> RunOptions:
    """One combination as the options of ``lachesis run``."""
    given = {
        key: beside(folder, key, value) if isinstance(value, str) else value
        for key, value in chosen.items()
        if key in OPTIONS and key != "trace"
    }
    changes = tuple(override(key, value) for key, value in chosen.items() if key not in OPTIONS)
    traces = chosen["trace"]
    return RunOptions(
        traces=traces if isinstance(traces, tuple) else (str(traces),),
        set=changes,
        **given,  # type: ignore[arg-type]  # by `axes`, of the types that it takes
    )


def _overrides(options: RunOptions, plan: Plan) -> Iterator[str]:
    """What a reader cannot see in the columns: options that were changed, and preset values."""
    bare = RunOptions(traces=())
    for name in _UNSHOWN:
        if (value := getattr(options, name)) != getattr(bare, name):
            yield f"{name}={value}"
    if plan.aged is False:
        yield "cold=true"
    if Load.parse(options.load).kind in ("each", "recorded"):
        yield f"load={options.load}"
    yield from _set_by_user(plan.settings)


# Cells that differ by load or seed share their settings.
@lru_cache(maxsize=64)
def _set_by_user(settings: Settings) -> tuple[str, ...]:
    return tuple(f"{found['key']}={found['value']}" for found in values_from(settings, USER_SOURCE))


def _joined(earlier: Cell, later: Cell) -> Cell:
    """The cell with the policies of both, where none is among them twice."""
    for policy in later.policies:
        if policy in earlier.policies:
            raise InputError(
                f"the run of {policy} on {later.trace} at load {_load_text(later.load)}, seed "
                f"{later.plan.seed}, comes twice"
            )
    return replace(earlier, policies=(*earlier.policies, *later.policies))


def _load_text(load: Load) -> str:
    return str(load.sessions) if load.kind == "closed" else load.kind


def _placed(error: InputError, specification: Specification, grid: Grid) -> InputError:
    """An error of an option or a preset value, where the specification says it."""
    field = error.field
    if field is not None and field.startswith("--"):
        field = field.removeprefix("--").replace("-", "_")
    # What a file of the user's breaks is said of that file.
    if error.path is not None and not error.path.startswith("--"):
        return error
    return InputError(
        error.rule, path=specification.source, row=grid.name, field=field, value=error.value
    )

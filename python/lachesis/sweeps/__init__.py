"""Many runs at once: a grid over traces, presets, policies, loads and seeds, safe to interrupt."""

from lachesis.sweeps.axes import override
from lachesis.sweeps.cells import Cell, TraceSource, expand
from lachesis.sweeps.execution import CellOutcome, run_cell, run_cells
from lachesis.sweeps.specification import Grid, Specification
from lachesis.sweeps.sweep import (
    Execute,
    SweepOutcome,
    SweepWatcher,
    on_threads,
    read_source,
    sweep,
)

__all__ = [
    "Cell",
    "CellOutcome",
    "Execute",
    "Grid",
    "Specification",
    "SweepOutcome",
    "SweepWatcher",
    "TraceSource",
    "expand",
    "on_threads",
    "override",
    "read_source",
    "run_cell",
    "run_cells",
    "sweep",
]

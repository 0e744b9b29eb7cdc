"""Many runs at once: a grid over traces, presets, policies, loads and seeds, safe to interrupt."""

from lachesis.sweeps.axes import Value, option_value, override
from lachesis.sweeps.cells import Cell, TraceSource, expand
from lachesis.sweeps.execution import CellOutcome, run_cell, run_cells
from lachesis.sweeps.specification import Grid, Specification, interval_s
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
    "Value",
    "expand",
    "interval_s",
    "on_threads",
    "option_value",
    "override",
    "read_source",
    "run_cell",
    "run_cells",
    "sweep",
]

"""Runs over simulated time, by cell: occupancy and write rates, thinned to what a plot can show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lachesis.report.questions import Run
from lachesis.results.measures import TIERS
from lachesis.traces.schema import SegmentClass

Floats = NDArray[np.float64]

#: Points of a line; windows in between are averaged.
POINTS_MAX = 240


@dataclass(frozen=True)
class OverTime:
    """One run.

    Attributes:
        run: its row in the table of runs.
        time_h: ends of the windows, hours of simulated time.
        occupancy_percent: by tier, the blocks that are not free.
        writes_gb_per_s: by tier, KV bytes of the node, without write amplification.
    """

    run: Run
    time_h: Floats
    occupancy_percent: Mapping[str, Floats]
    writes_gb_per_s: Mapping[str, Floats]


def runs_over_time(timelines: pa.Table, runs: Sequence[Run]) -> list[list[OverTime]]:
    """The runs that have a timeline, by cell, in the order of the timelines.

    Timelines of runs that are not in the table (a sweep that was interrupted between the two
    files) are left out.
    """
    known = {run["run"]: run for run in runs}
    cells: dict[str, list[OverTime]] = {}
    names: list[str] = timelines["run"].to_pylist()
    # A run's rows stand together.
    starts = [place for place, name in enumerate(names) if place == 0 or name != names[place - 1]]
    for start, end in zip(starts, [*starts[1:], len(names)], strict=True):
        run = known.get(names[start])
        if run is not None:
            cells.setdefault(run["cell"], []).append(
                _of_run(run, timelines.slice(start, end - start))
            )
    return list(cells.values())


def cell_text(run: Run) -> str:
    """What a cell asked, in one line."""
    parts = [
        run["trace"], run["model"], f"memory {run['memory']}", f"SLO {run['slo']}",
        f"seed {run['seed']}", *run["overrides"],
    ]  # fmt: skip
    return " · ".join(parts)


def _of_run(run: Run, rows: pa.Table) -> OverTime:
    words = [str(name).replace("-", "_") for name in SegmentClass]
    written = {
        tier: np.sum([_column(rows, f"{tier}_write_bytes_per_s_{word}") for word in words], axis=0)
        for tier in TIERS
    }
    time_s, window_s = _column(rows, "time_s"), _column(rows, "window_s")
    bounds = np.arange(len(time_s))
    if len(time_s) > POINTS_MAX:
        bounds = np.linspace(0, len(time_s), POINTS_MAX + 1).astype(int)[:-1]
    ends = np.append(bounds[1:], len(time_s)) - 1
    weights = np.add.reduceat(window_s, bounds)

    def thinned(series: Floats) -> Floats:
        means: Floats = np.add.reduceat(series * window_s, bounds) / weights
        return means

    return OverTime(
        run,
        time_s[ends] / 3600.0,
        {tier: thinned(100.0 * _column(rows, f"{tier}_occupancy")) for tier in TIERS},
        {tier: thinned(written[tier] / 1e9) for tier in TIERS},
    )


def _column(rows: pa.Table, name: str) -> Floats:
    values: Floats = rows[name].to_numpy().astype(np.float64)
    return values

"""Runs the cells of the evaluation's figures as a sweep, at full or at lower precision."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from lachesis.errors import InternalError
from lachesis.reproduce.cells import Cell
from lachesis.reproduce.corpora import Corpora, CorporaOnDemand
from lachesis.reproduce.execution import LoadMeasurement, with_common_loads
from lachesis.reproduce.published_evaluation import evaluation
from lachesis.reproduce.runs import RunRow, Runs
from lachesis.results.results_directory import read_stored_results
from lachesis.simulation import NodePart, Stopping
from lachesis.sweeps import Execute, Specification, SweepWatcher, expand, sweep


@dataclass(frozen=True)
class Precision:
    """How long runs and searches are; the same for every cell.

    Attributes:
        half_width: asked of the 95 % interval of device-years, relative.
        turnovers: of the live sessions, at which a run ends anyway.
        load: how loads are measured.
        stopping: a fixed length of the runs instead, below what settling takes.
        part: of the node that is simulated; the whole node if None.
    """

    half_width: str
    turnovers: float
    load: LoadMeasurement
    stopping: Stopping | None = None
    part: NodePart | None = None


FULL = Precision("3%", 4.0, LoadMeasurement(requests=100_000, turnovers=4.0))
QUICK = Precision(
    "15%", 1.0,
    LoadMeasurement(requests=24_000, turnovers=1.2, settling=0.7, quick=True),
    Stopping(turnovers=0.7, warm_up_turnovers=0.6, fixed=True),
    # With these factors loads agree with those of the whole node on average.
    NodePart(gpus=1, slowest=1.08, slowest_writes=3.2),
)  # fmt: skip


def simulated(
    cells: Sequence[Cell],
    precision: Precision,
    *,
    seed: int,
    folder: Path | None = None,
    jobs: int | None = None,
    watcher: SweepWatcher | None = None,
    corpora: Corpora | None = None,
) -> Runs:
    """Run every cell under its policies.

    Args:
        cells: which; each once.
        precision: of runs and searches.
        seed: of the replays.
        folder: where to leave a directory of results; made if it is not there; empty. Without one
            nothing is written, and corpora are read while others are replayed.
        jobs: threads; as many as there are cores if None. They change no result.
        watcher: hears about progress.
        corpora: those that the caller has loaded.

    Raises:
        InputError: the folder cannot be written.
        KeyboardInterrupt: Ctrl-C.
    """
    threads = jobs or len(os.sched_getaffinity(0))
    asked = Specification.parse(specification(cells, precision, seed=seed), source="reproduction")
    execute = with_common_loads(threads, precision.load, precision.stopping, precision.part)
    corpora = corpora or Corpora()
    watcher = watcher or SweepWatcher()
    if folder is None:
        return Runs(_rows(asked, execute, watcher, corpora))
    outcome = sweep(
        asked, folder, execute,
        workers=f"{threads} threads, loads found by groups of cells",
        watcher=watcher, read=corpora.read,
    )  # fmt: skip
    for entry in outcome.manifest.cells:
        _refuse_faults(f"{entry.trace} {entry.memory}", entry.failures, entry.infeasible)
    return Runs(read_stored_results(folder).measured.to_pylist())


def _rows(
    asked: Specification, execute: Execute, watcher: SweepWatcher, corpora: Corpora
) -> list[RunRow]:
    """The rows that a directory of results would hold."""
    cells = {cell.id: cell for cell in expand(asked)}
    watcher.planned(len(cells), sum(len(cell.policies) for cell in cells.values()), 0)
    traces = CorporaOnDemand(corpora, frozenset(cell.source for cell in cells.values()))
    rows: dict[str, Sequence[RunRow]] = {}
    with closing(execute([list(cells.values())], traces, threading.Event())) as outcomes:
        for outcome in outcomes:
            cell = cells[outcome.cell]
            _refuse_faults(
                f"{cell.trace} {cell.plan.settings.memory}", outcome.failures, outcome.infeasible
            )
            rows[outcome.cell] = outcome.rows
            watcher.cell_ended(cell, outcome)
    return [row for cell in cells for row in rows[cell]]


def _refuse_faults(where: str, *faults: Mapping[str, str]) -> None:
    for fault in faults:
        for policy, reason in fault.items():
            raise InternalError(f"{where}, {policy}: {reason}")


def specification(cells: Sequence[Cell], precision: Precision, *, seed: int) -> dict[str, Any]:
    """The cells as the specification of a sweep: a grid a model, trace and SLO.

    Example:
        >>> asked = specification([Cell("tau3", "llama-4-maverick", "1/7", "tight")], QUICK, seed=1)
        >>> asked["run"][0]["memory"], asked["defaults"]["node.landing"]
        (['1/7'], 'sync')
    """
    grids = [
        {
            "trace": trace,
            "model": model,
            "slo": slo,
            "memory": [cell.memory for cell in group],
            "policy": list(policies),
        }
        for (trace, model, slo, policies), group in groupby(
            cells, key=lambda cell: (cell.trace, cell.model, cell.slo, cell.policies)
        )
    ]
    values = {setting.key: _plain(setting.value) for setting in evaluation().settings}
    return {
        "title": "The paper's evaluation",
        "defaults": {
            "precision": precision.half_width,
            "turnovers": precision.turnovers,
            "seed": seed,
            **values,
        },
        "run": grids,
    }


def _plain(value: str) -> str | float:
    """A number as one, so that the specification reads as a person would write it."""
    try:
        return float(value)
    except ValueError:
        return value

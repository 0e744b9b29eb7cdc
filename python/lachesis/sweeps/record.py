"""The manifest of a sweep: what is asked, what is done, and how long it took."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lachesis import __version__
from lachesis.policy import choose_policy
from lachesis.presets import describe_preset
from lachesis.presets.overrides import USER_SOURCE
from lachesis.results.directory import CellEntry, Manifest, Session, write_manifest
from lachesis.results.measures import slo_name
from lachesis.results.provenance import PARTS, trace_summary
from lachesis.sweeps.cells import Cell
from lachesis.sweeps.execution import CellOutcome, Traces
from lachesis.sweeps.shards import Shard
from lachesis.sweeps.specification import Specification

#: Seconds between two writings of the manifest: it holds a line for every cell.
_WRITE_EVERY_S = 2.0


class Record:
    """Keeps the manifest of a directory up to date while a sweep runs."""

    def __init__(self, directory: Path, manifest: Manifest, workers: str) -> None:
        self.manifest = manifest
        self._directory = directory
        self._entries = {entry.cell: entry for entry in manifest.cells}
        self._started = time.perf_counter()
        self._written = 0.0
        self._session = Session(
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            wall_s=0.0,
            workers=workers,
            cells=0,
        )
        manifest.sessions.append(self._session)

    def present(self, outcome: CellOutcome) -> None:
        """A cell whose rows were there already."""
        self._note(outcome)

    def ended(self, outcome: CellOutcome) -> None:
        """A cell was run."""
        entry = self._note(outcome)
        entry.searches = list(outcome.searches)
        entry.wall_s = outcome.wall_s
        self._session.cells += 1

    def _note(self, outcome: CellOutcome) -> CellEntry:
        entry = self._entries[outcome.cell]
        entry.state = "infeasible" if outcome.infeasible else "done"
        if outcome.failures:
            entry.state = "failed"
        entry.infeasible = dict(outcome.infeasible)
        entry.failures = dict(outcome.failures)
        return entry

    def write(self, *, now: bool = False) -> None:
        """Write the manifest, if it is due."""
        elapsed_s = time.perf_counter() - self._started
        if now or elapsed_s - self._written >= _WRITE_EVERY_S:
            self._session.wall_s = round(elapsed_s, 3)
            write_manifest(self._directory, self.manifest)
            self._written = elapsed_s


def new_manifest(
    specification: Specification,
    shards: Sequence[Shard],
    traces: Traces,
    earlier: Manifest | None,
) -> Manifest:
    """The manifest of a sweep of which nothing is known to be done.

    Args:
        specification: as asked for.
        shards: all of them.
        traces: every trace, read.
        earlier: the manifest that is there; its timings are kept.
    """
    cells = [(cell, shard) for shard in shards for cell in shard.cells]
    known = {} if earlier is None else {entry.cell: entry for entry in earlier.cells}
    return Manifest(
        version=__version__,
        title=specification.title,
        specification=specification.normalised(),
        specification_sha256=shards[0].sweep,
        timeline_interval_s=specification.timeline_interval_s,
        traces={
            cell.trace: trace_summary(traces[cell.source].trace)
            for cell in {cell.trace: cell for cell, _ in cells}.values()
        },
        presets=_presets([cell for cell, _ in cells]),
        policies={
            name: {"summary": policy.summary, "source": policy.source}
            for name in dict.fromkeys(name for cell, _ in cells for name in cell.policies)
            for policy in (choose_policy(name),)
        },
        shards=len(shards),
        sessions=[] if earlier is None else list(earlier.sessions),
        cells=[_entry(cell, shard, known) for cell, shard in cells],
    )


def _entry(cell: Cell, shard: Shard, known: Mapping[str, CellEntry]) -> CellEntry:
    settings, load = cell.plan.settings, cell.load
    earlier = known.get(cell.id)
    asked = {"closed": f"{load.sessions}", "poisson": f"poisson:{load.sessions_per_s:g}"}
    if math.isfinite(load.longest_gap_s):
        asked["recorded"] = f"recorded:{load.longest_gap_s:g}"
    return CellEntry(
        cell=cell.id,
        shard=shard.number,
        trace=cell.trace,
        model=settings.model.name,
        memory=str(settings.memory),
        slo=slo_name(cell.plan),
        load=asked.get(load.kind, load.kind),
        seed=cell.plan.seed,
        policies=list(cell.policies),
        overrides=list(cell.overrides),
        searches=[] if earlier is None else earlier.searches,
        wall_s=None if earlier is None else earlier.wall_s,
    )


def _presets(cells: Sequence[Cell]) -> dict[str, dict[str, Any]]:
    """Every preset that a cell starts from, each value with its source."""
    found: dict[str, dict[str, Any]] = {part: {} for part in PARTS}
    for settings in {id(cell.plan.settings): cell.plan.settings for cell in cells}.values():
        for part in PARTS:
            preset = getattr(settings, part)
            if preset.name in found[part]:
                continue
            listing = describe_preset(preset)
            found[part][preset.name] = {
                "title": listing.title,
                "values": {
                    row.field: {"value": row.value, "unit": row.unit, "source": row.source}
                    for row in listing.rows
                    # What a run sets stands among its overrides.
                    if not row.source.startswith(USER_SOURCE)
                },
            }
    return found

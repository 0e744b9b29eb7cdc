"""The shards of a sweep: which cells lie in which file, and what a file that is there holds.

The ranges follow from the number of cells alone. A shard's file says which sweep it belongs to and
carries checksums; what it lacks is run, what it holds is not run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lachesis import __version__
from lachesis.errors import InputError
from lachesis.results.directory import RUNS, TIMELINES, read_table, shard_file, write_table
from lachesis.results.rows import INFEASIBLE, STATUS, run_columns, run_table
from lachesis.sweeps.cells import Cell
from lachesis.sweeps.execution import CellOutcome

#: Files of a sweep, where it has at least so many cells; and the most cells a file holds.
_SHARDS = 128
_CELLS_MAX = 64


def cells_a_shard(cells: int) -> int:
    """How many cells a shard holds; the last may hold fewer.

    Example:
        >>> [cells_a_shard(cells) for cells in (1, 100, 1_000, 5_000, 100_000)]
        [1, 1, 8, 40, 64]
    """
    return min(_CELLS_MAX, max(1, -(-cells // _SHARDS)))


@dataclass(frozen=True)
class Shard:
    """A file's worth of cells.

    Attributes:
        number: from 0.
        cells: in the order of the sweep.
        sweep: the digest of the sweep, which the file carries.
        timed: whether there are timelines.
    """

    number: int
    cells: tuple[Cell, ...]
    sweep: str
    timed: bool

    def present(self, directory: Path) -> Mapping[str, CellOutcome]:
        """The cells whose every row is there, by id.

        Raises:
            InputError: a file is damaged, or belongs to another sweep.
        """
        rows = self._read(shard_file(directory, RUNS, self.number))
        if rows is None:
            return {}
        if not rows.schema.remove_metadata().equals(run_columns()):
            raise self._foreign(shard_file(directory, RUNS, self.number))
        timelines = None
        if self.timed:
            timelines = self._read(shard_file(directory, TIMELINES, self.number))
            # What cannot be run has no timeline.
            if timelines is None and set(rows[STATUS].to_pylist()) != {INFEASIBLE}:
                return {}
        found: dict[str, CellOutcome] = {}
        by_cell: dict[str, list[dict[str, Any]]] = {}
        for row in rows.to_pylist():
            by_cell.setdefault(row["cell"], []).append(row)
        for cell in self.cells:
            mine = by_cell.pop(cell.id, [])
            if [row["run"] for row in mine] != [cell.run_id(policy) for policy in cell.policies]:
                continue
            timeline = None
            if timelines is not None:
                runs = pa.array([row["run"] for row in mine], pa.string())
                timeline = timelines.filter(pc.is_in(timelines["run"], value_set=runs))
                timeline = timeline.replace_schema_metadata(None)
            infeasible = {
                policy: row["reason"]
                for policy, row in zip(cell.policies, mine, strict=True)
                if row[STATUS] == INFEASIBLE
            }
            found[cell.id] = CellOutcome(cell.id, tuple(mine), infeasible, timeline=timeline)
        if by_cell:
            raise self._foreign(shard_file(directory, RUNS, self.number))
        return found

    def write(self, directory: Path, outcomes: Mapping[str, CellOutcome]) -> None:
        """Write the rows of the cells that have an outcome; nothing where no cell has a row."""
        ended = [outcomes[cell.id] for cell in self.cells if cell.id in outcomes]
        rows = [row for outcome in ended for row in outcome.rows]
        if not rows:
            return
        # The rows last: where they are, the timelines are.
        if self.timed:
            pieces = [outcome.timeline for outcome in ended if outcome.timeline is not None]
            if pieces:
                self._write(shard_file(directory, TIMELINES, self.number), pa.concat_tables(pieces))
        self._write(shard_file(directory, RUNS, self.number), run_table(rows))

    def _write(self, path: Path, table: pa.Table) -> None:
        write_table(path, table.combine_chunks().replace_schema_metadata(self._signature()))

    def _read(self, path: Path) -> pa.Table | None:
        if not path.exists():
            return None
        try:
            table = read_table(path)
        except InputError as error:
            rule = f"{error.rule}; delete it, and it is run again"
            raise InputError(rule, path=path) from error
        if (table.schema.metadata or {}) != self._signature():
            raise self._foreign(path)
        return table

    def _signature(self) -> dict[bytes, bytes]:
        return {
            b"lachesis.sweep": self.sweep.encode(),
            b"lachesis.shard": str(self.number).encode(),
            b"lachesis.version": __version__.encode(),
        }

    def _foreign(self, path: Path) -> InputError:
        return InputError(
            "belongs to another sweep: delete it, or start anew with --restart", path=path
        )


def shards_of(cells: Sequence[Cell], sweep: str, *, timed: bool) -> list[Shard]:
    """All cells in shards, in order."""
    size = cells_a_shard(len(cells))
    return [
        Shard(number, tuple(cells[start : start + size]), sweep, timed)
        for number, start in enumerate(range(0, len(cells), size))
    ]


def unfinished(shard: Shard, outcomes: Iterable[str]) -> list[Cell]:
    """The cells of a shard that have no outcome yet."""
    ended = set(outcomes)
    return [cell for cell in shard.cells if cell.id not in ended]

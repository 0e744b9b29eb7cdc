"""A directory of results: where everything lies in it, and its manifest.

::

    DIR/manifest.json          what was asked, what is done, all timings, traces, preset sources
    DIR/specification.toml     the specification, as given
    DIR/runs/NNNNN.parquet     one file a shard, one row a run
    DIR/timelines/NNNNN.parquet   runs over time, where the specification asks for them
    DIR/lifetimes.parquet      by trace and class, how long segments live and how much they hold

Equal specifications give equal bytes in all but the manifest.
"""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lachesis.errors import InputError
from lachesis.results.files import replaced, write_text
from lachesis.traces.parquet import read_parquet

MANIFEST_SCHEMA = 1
MANIFEST = "manifest.json"
SPECIFICATION = "specification.toml"
RUNS = "runs"
TIMELINES = "timelines"
LIFETIMES = "lifetimes.parquet"
#: Files are numbered in five digits, and each is looked for.
SHARDS_MAX = 100_000


class CellEntry(msgspec.Struct, kw_only=True):
    """A cell as the manifest tells of it.

    Attributes:
        cell: its id.
        shard: the file that holds its rows.
        state: ``done`` if every policy was measured, ``infeasible`` if one cannot be run (its row
            says why, and it is not tried again), ``failed`` if one failed (it has no row, and the
            next start tries it again), else ``pending``.
        trace, model, memory, slo, load, seed, policies, overrides: what it is.
        infeasible: by policy, the reason why it cannot be run.
        failures: by policy, the reason why it has no row.
        searches: the loads tried, where the load was searched for.
        wall_s: how long it took; None where it is not known (an interrupted sweep).
    """

    cell: str
    shard: int
    state: Literal["pending", "done", "infeasible", "failed"] = "pending"
    trace: str
    model: str
    memory: str
    slo: str
    load: str
    seed: int
    policies: list[str]
    overrides: list[str]
    infeasible: dict[str, str] = msgspec.field(default_factory=dict)
    failures: dict[str, str] = msgspec.field(default_factory=dict)
    searches: list[dict[str, Any]] = msgspec.field(default_factory=list)
    wall_s: float | None = None


class Session(msgspec.Struct, kw_only=True):
    """One start of the sweep: when (UTC), how long, how, and how many cells it ran."""

    started: str
    wall_s: float
    workers: str
    cells: int


class Manifest(msgspec.Struct, kw_only=True):
    """What a directory of results holds, and how it came about."""

    schema: int = MANIFEST_SCHEMA
    version: str
    title: str = ""
    specification: dict[str, Any]
    specification_sha256: str
    timeline_interval_s: float | None = None
    traces: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    presets: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    policies: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    shards: Annotated[int, msgspec.Meta(ge=0, le=SHARDS_MAX)]
    sessions: list[Session] = msgspec.field(default_factory=list)
    cells: list[CellEntry]

    def counts(self) -> dict[str, int]:
        """Cells by state."""
        found = {"done": 0, "infeasible": 0, "failed": 0, "pending": 0}
        for cell in self.cells:
            found[cell.state] += 1
        return found


def shard_file(directory: str | Path, kind: str, shard: int) -> Path:
    """The file of a shard: `kind` is ``runs`` or ``timelines``."""
    return Path(directory) / kind / f"{shard:05}.parquet"


def write_manifest(directory: str | Path, manifest: Manifest) -> None:
    """Write the manifest, whole or not at all."""
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1).decode()
    write_text(Path(directory) / MANIFEST, text + "\n")


def read_manifest(directory: str | Path) -> Manifest:
    """Read the manifest of a directory.

    Raises:
        InputError: there is none, or another version of this package wrote it.
    """
    file = Path(directory) / MANIFEST
    _check_regular(file)
    try:
        content = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as fault:
        raise InputError(f"holds no results: no {MANIFEST}", path=directory) from fault
    except OSError as fault:
        raise InputError(f"cannot be read: {fault.strerror}", path=file) from fault
    try:
        schema = msgspec.json.decode(content, type=_Versioned).schema
        if schema != MANIFEST_SCHEMA:
            rule = f"this build reads version {MANIFEST_SCHEMA}"
            raise InputError(rule, path=file, field="schema", value=schema)
        manifest = msgspec.json.decode(content, type=Manifest)
    except (msgspec.DecodeError, RecursionError) as fault:
        raise InputError(f"is not as this build writes it: {fault}", path=file) from fault
    for entry in manifest.cells:
        if not 0 <= entry.shard < manifest.shards:
            rule = f"must be one of {manifest.shards} shards"
            raise InputError(
                rule, path=file, row=f"cell {entry.cell}", field="shard", value=entry.shard
            )
    return manifest


def _check_regular(file: Path) -> None:
    """Refuse a pipe or a device: reading it might never end."""
    try:
        found = file.stat()
    except OSError:
        return  # said where it is read
    except ValueError as fault:  # a NUL
        raise InputError("is no name of a file", path=file) from fault
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise InputError("cannot be read: is no regular file", path=file)


class _Versioned(msgspec.Struct):
    schema: int


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table as Parquet, whole or not at all; equal tables give equal bytes."""
    # Arrow takes names in UTF-8 only; an open file may have any.
    with replaced(path) as scratch, scratch.open("wb") as file:
        pq.write_table(table, file, compression="zstd", write_page_checksum=True)


def read_table(path: Path) -> pa.Table:
    """Read a Parquet file of results, its checksums verified.

    Raises:
        InputError: it is missing, cut off or damaged.
    """
    _check_regular(path)
    return read_parquet(path, checksums=True)


def read_shards(
    directory: str | Path,
    kind: str,
    manifest: Manifest,
    checked: Callable[[pa.Table, Path], pa.Table] = lambda table, _: table,
) -> pa.Table | None:
    """The rows of all shards that are there, in order; None where none is.

    Args:
        directory: of results.
        kind: ``runs`` or ``timelines``.
        manifest: of the directory.
        checked: looks at the table of each file before they are joined.

    Raises:
        InputError: a file is damaged, or `checked` refuses it.
    """
    files = [shard_file(directory, kind, shard) for shard in range(manifest.shards)]
    tables = [
        checked(read_table(file).replace_schema_metadata(None), file)
        for file in files
        if file.exists()
    ]
    return pa.concat_tables(tables) if tables else None

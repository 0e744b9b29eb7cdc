"""A trace on disk: ``NAME.trace/`` with one Parquet file a table, and ``trace.json``."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from hashlib import file_digest
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from lachesis.errors import InputError
from lachesis.traces.parquet import read_parquet
from lachesis.traces.schema import SCHEMA_VERSION, TABLES

MANIFEST: Final = "trace.json"
CHANGED: Final = f"was changed after {MANIFEST} was written"
#: Row groups are written when so much waits in all tables together. Few traces have a second one.
_GROUP_BYTES: Final = 24_000_000
_GROUP_ROWS: Final = 1 << 20  # at most, as pyarrow has it


class TraceWriter:
    """Writes a trace batch by batch, replacing one that is there.

    Everything is written beside it and renamed in `finish`, so that a reader or a crash never sees
    half of it. Used with ``with``; leaving without `finish` leaves nothing. Raises `InputError` if
    the place cannot be written or holds something that is no trace.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._target = Path(path)
        if self._target.suffix != ".trace":
            raise InputError("a trace's name ends in .trace", path=path)
        if self._target.exists() and not (self._target / MANIFEST).is_file():
            raise InputError("exists and is no trace: not replaced", path=path)
        self._files: dict[str, _TableFile] = {}
        self._stack = ExitStack()

    def __enter__(self) -> TraceWriter:
        parent = self._target.parent or Path()
        try:
            self._scratch = Path(tempfile.mkdtemp(prefix=f".{self._target.name}.", dir=parent))
            self._new.mkdir()
            for name in TABLES:
                self._files[name] = _TableFile(self._new / f"{name}.parquet", name)
                self._stack.callback(self._files[name].abandon)
        except OSError as fault:
            raise self._not_written(fault) from fault
        return self

    def write(self, tables: Mapping[str, pa.Table]) -> None:
        """Append a batch of whole sessions."""
        try:
            waiting_bytes = [file.append(tables[name]) for name, file in self._files.items()]
            if sum(waiting_bytes) >= _GROUP_BYTES:
                for file in self._files.values():
                    file.write()
        except OSError as fault:
            raise self._not_written(fault) from fault

    def finish(self, manifest: Mapping[str, Any]) -> None:
        """Close the files, write ``trace.json`` with their digests, and put all in its place."""
        try:
            digests: dict[str, str] = {}
            for file in self._files.values():
                file.finish()
                digests[file.path.name] = digest_of_file(file.path)
            (self._new / MANIFEST).write_text(
                json.dumps({**manifest, "files": digests}, indent=2, ensure_ascii=False) + "\n",
                encoding="utf-8",
            )
            if self._target.exists():
                self._target.rename(self._scratch / "old")
            self._new.rename(self._target)
        except OSError as fault:
            raise self._not_written(fault) from fault

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
        # Also after an interrupt between the two renames.
        if (self._scratch / "old").exists() and not self._target.exists():
            (self._scratch / "old").rename(self._target)
        shutil.rmtree(self._scratch, ignore_errors=True)

    @property
    def _new(self) -> Path:
        return self._scratch / "new"

    def _not_written(self, fault: OSError) -> InputError:
        return InputError(f"cannot be written: {fault.strerror}", path=self._path)


class _TableFile:
    """One Parquet file while rows come; they are written a row group at a time."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self._schema = TABLES[name]
        # Arrow takes names in UTF-8 only; an open file may have any.
        self._sink = path.open("wb")
        self._writer = pq.ParquetWriter(self._sink, self._schema, compression="zstd")
        self._waiting: list[pa.Table] = []

    def append(self, table: pa.Table) -> int:
        """Take rows; returns how many bytes of rows wait now."""
        self._waiting.append(table)
        return sum(each.nbytes for each in self._waiting)

    def write(self) -> None:
        """Write a row group of what waits."""
        if self._waiting:
            rows = pa.concat_tables(self._waiting)
            self._writer.write_table(rows, row_group_size=_GROUP_ROWS)
            self._waiting = []

    def finish(self) -> None:
        """Write what waits, and close."""
        self.write()
        self._writer.close()
        self._sink.close()

    def abandon(self) -> None:
        """Let go of the file, finished or not; it is removed afterwards if not."""
        if not self._sink.closed:
            # A full disk may refuse the footer too, which nobody will read.
            with suppress(OSError), self._sink:
                self._writer.close()


def load_tables(place: Path, manifest: Mapping[str, Any]) -> dict[str, pa.Table]:
    """The tables of a saved trace; raises `InputError` for any that is not as it was written."""
    tables: dict[str, pa.Table] = {}
    for name, schema in TABLES.items():
        file = place / f"{name}.parquet"
        table = read_parquet(file)
        found = table.schema.remove_metadata()
        if not found.equals(schema):
            raise InputError(schema_difference(found, schema), path=file)
        if table.num_rows != manifest["rows"][name]:
            raise InputError(
                f"has {table.num_rows} rows, {MANIFEST} says {manifest['rows'][name]}",
                path=file,
            )
        tables[name] = table.replace_schema_metadata(None)
        recorded = manifest.get("files", {}).get(file.name)
        if recorded is not None and recorded != digest_of_file(file):
            raise InputError(f"{CHANGED} (its SHA-256 is not the recorded one)", path=file)
    return tables


def read_manifest(place: Path) -> dict[str, Any]:
    """What ``trace.json`` says; raises `InputError` for another version or what is no manifest."""
    file = place / MANIFEST
    if not place.is_dir():
        raise InputError("no such trace" if not place.exists() else "is no folder", path=place)
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as fault:
        raise InputError(f"holds no {MANIFEST}", path=place) from fault
    except OSError as fault:
        raise InputError(f"cannot be read: {fault.strerror}", path=file) from fault
    except (ValueError, RecursionError) as fault:
        raise InputError(f"not valid JSON: {fault}", path=file) from fault
    version = manifest.get("schema") if isinstance(manifest, dict) else None
    if version != SCHEMA_VERSION:
        raise InputError(
            f"this build reads version {SCHEMA_VERSION}", path=file, field="schema",
            value=version if version is not None else "missing",
        )  # fmt: skip
    kinds = {"source": str, "tokenizer": str, "rows": dict, "quality": dict}
    if "files" in manifest:
        kinds["files"] = dict
    for key, kind in kinds.items():
        if not isinstance(manifest.get(key), kind):
            raise InputError(f"must be a {kind.__name__}", path=file, field=key)
    for name in TABLES:
        if not isinstance(manifest["rows"].get(name), int):
            raise InputError("must be a row count", path=file, field=f"rows.{name}")
    return dict(manifest)


def digest_of_file(file: Path) -> str:
    """The SHA-256 of a file in hex."""
    with file.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def schema_difference(found: pa.Schema, wanted: pa.Schema) -> str:
    """What distinguishes a table's schema from the one that it must have."""
    for field in wanted:
        index = found.get_field_index(field.name)
        if index < 0:
            return f"column {field.name} is missing"
        if not found.field(index).equals(field):
            return f"column {field.name} is {found.field(index).type}, must be {field.type}" + (
                "" if field.nullable else " without nulls"
            )
    extra = [name for name in found.names if name not in wanted.names]
    if extra:
        return f"unknown column {extra[0]}"
    return f"columns must be in the order {', '.join(wanted.names)}"

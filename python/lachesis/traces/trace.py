"""The trace: five Arrow tables and what is known about where they come from.

On disk a trace is a directory ``NAME.trace/`` with one Parquet file a table and ``trace.json``.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lachesis.errors import InputError
from lachesis.traces.quality import Quality
from lachesis.traces.schema import SCHEMA_VERSION, TABLES

_MANIFEST = "trace.json"
_CHANGED = f"was changed after {_MANIFEST} was written"


class Trace:
    """Sessions, requests, spans, segments and spawns in the canonical form.

    Attributes:
        sessions, requests, spans, segments, spawns: `pyarrow.Table`s in the schemas of
            `lachesis.traces.schema`, each grouped by session in the order of `sessions`.
        source: what it was read from.
        tokenizer: how text was counted where the log has no count.
        quality: what was reported, recounted, inferred, filled in and left out.

    `len(trace)` is the number of sessions.
    """

    __slots__ = (
        "__weakref__",
        "_session_digests",
        "_sha256",
        "quality",
        "requests",
        "segments",
        "sessions",
        "source",
        "spans",
        "spawns",
        "tokenizer",
    )

    def __init__(
        self,
        *,
        sessions: pa.Table,
        requests: pa.Table,
        spans: pa.Table,
        segments: pa.Table,
        spawns: pa.Table,
        source: str,
        tokenizer: str = "as reported",
        quality: Quality | None = None,
    ) -> None:
        self.sessions = sessions
        self.requests = requests
        self.spans = spans
        self.segments = segments
        self.spawns = spawns
        self.source = source
        self.tokenizer = tokenizer
        self.quality = Quality() if quality is None else quality
        self._sha256: str | None = None
        self._session_digests: dict[str, bytes] | None = None
        for name, schema in TABLES.items():
            table = getattr(self, name)
            if not table.schema.equals(schema):
                raise InputError(
                    _schema_difference(table.schema, schema), path=source, row=f"table {name}"
                )

    def __len__(self) -> int:
        return int(self.sessions.num_rows)

    def __repr__(self) -> str:
        return f"Trace({self.source!r}, {len(self)} sessions, {self.requests.num_rows} requests)"

    @property
    def tables(self) -> dict[str, pa.Table]:
        """The five tables by name, in the order of `TABLES`."""
        return {name: getattr(self, name) for name in TABLES}

    @property
    def sha256(self) -> str:
        """Hex digest of the content; sessions' names, their order and `source` do not enter.

        A digest per session over all its rows, then one over the sorted digests.
        """
        if self._sha256 is None:
            digests = sorted(session_digests(self).values())
            self._sha256 = sha256(b"".join(digests)).hexdigest()
        return self._sha256

    def _is(self, digest: str) -> bool:
        try:
            return self.sha256 == digest
        except KeyError:  # rows of a session that is not in `sessions`
            return False

    def select(self, sessions: Iterable[str]) -> Trace:
        """The trace of some sessions, in this trace's order.

        Raises `InputError` for a name that is not there. Request counts by usage source are
        recounted; what was left out at reading stays with the whole trace.
        """
        wanted = list(dict.fromkeys(sessions))
        present = set(self.sessions["session"].to_pylist())
        for name in wanted:
            if name not in present:
                raise InputError(
                    "no such session in the trace", path=self.source, field="session", value=name
                )
        names = pa.array(wanted, pa.string())
        picked = {
            name: table.filter(pc.is_in(table["session"], value_set=names))
            for name, table in self.tables.items()
        }
        quality = Quality(requests=Counter(picked["requests"]["usage_source"].to_pylist()))
        return Trace(**picked, source=self.source, tokenizer=self.tokenizer, quality=quality)

    def save(self, path: str | Path) -> None:
        """Write ``path`` (a directory that ends in ``.trace``), replacing a trace that is there.

        Everything is written beside it and renamed at the end, so that a reader or a crash never
        sees half of it. Raises `InputError` if the place cannot be written or holds something
        that is no trace.
        """
        target = Path(path)
        if target.suffix != ".trace":
            raise InputError("a trace's name ends in .trace", path=path)
        if target.exists() and not (target / _MANIFEST).is_file():
            raise InputError("exists and is no trace: not replaced", path=path)
        try:
            scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent or Path()))
        except OSError as fault:
            raise InputError(f"cannot be written: {fault.strerror}", path=path) from fault
        try:
            written = scratch / "new"
            written.mkdir()
            files: dict[str, str] = {}
            for name, table in self.tables.items():
                file = written / f"{name}.parquet"
                # Arrow takes names in UTF-8 only; an open file may have any.
                with file.open("wb") as sink:
                    pq.write_table(table, sink, compression="zstd")
                files[file.name] = _file_digest(file)
            manifest = {**self.manifest(), "files": files}
            (written / _MANIFEST).write_text(
                json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
            )
            if target.exists():
                target.rename(scratch / "old")
            written.rename(target)
        except OSError as fault:
            raise InputError(f"cannot be written: {fault.strerror}", path=path) from fault
        finally:
            # Also after an interrupt between the two renames.
            if (scratch / "old").exists() and not target.exists():
                (scratch / "old").rename(target)
            shutil.rmtree(scratch, ignore_errors=True)

    def manifest(self) -> dict[str, Any]:
        """What ``trace.json`` holds, but for the digests of the files (``files``)."""
        return {
            "schema": SCHEMA_VERSION,
            "source": self.source,
            "tokenizer": self.tokenizer,
            "rows": {name: table.num_rows for name, table in self.tables.items()},
            "sha256": self.sha256,
            "quality": self.quality.to_json(),
        }

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read what `save` wrote.

        Raises `InputError` for another version, schema or row count, and for a Parquet file that is
        not the one that was written. (Traces of older builds have no digests of their files: of
        these the digest of the content is compared.) The rules between rows are checked by
        `lachesis.traces.validate`, which `open_trace` calls.
        """
        place = Path(path)
        manifest = _read_manifest(place)
        tables: dict[str, pa.Table] = {}
        for name, schema in TABLES.items():
            file = place / f"{name}.parquet"
            try:
                with file.open("rb") as opened:
                    table = pq.read_table(opened)
            except (OSError, pa.ArrowException) as fault:
                said = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
                raise InputError(f"cannot be read: {said}", path=file) from fault
            found = table.schema.remove_metadata()
            if not found.equals(schema):
                raise InputError(_schema_difference(found, schema), path=file)
            if table.num_rows != manifest["rows"][name]:
                raise InputError(
                    f"has {table.num_rows} rows, {_MANIFEST} says {manifest['rows'][name]}",
                    path=file,
                )
            tables[name] = table.replace_schema_metadata(None)
            recorded = manifest.get("files", {}).get(file.name)
            if recorded is not None and recorded != _file_digest(file):
                raise InputError(f"{_CHANGED} (its SHA-256 is not the recorded one)", path=file)
        try:
            quality = Quality.from_json(manifest["quality"])
        except (KeyError, TypeError, ValueError, AttributeError) as fault:
            raise InputError(
                f"is not as this build writes it ({fault})",
                path=place / _MANIFEST,
                field="quality",
            ) from fault
        trace = cls(
            **tables,
            source=manifest["source"],
            tokenizer=manifest["tokenizer"],
            quality=quality,
        )
        recorded = manifest.get("sha256")
        if "files" not in manifest and recorded is not None and not trace._is(recorded):
            raise InputError(f"{_CHANGED} (the digest of the content is another)", path=place)
        return trace


def concat(traces: Sequence[Trace], source: str | None = None) -> Trace:
    """One trace of several; a session name that comes twice gets a suffix (``a~2``)."""
    if not traces:
        raise InputError("no trace to join")
    if len(traces) == 1:
        return traces[0]
    taken: Counter[str] = Counter()
    pieces: dict[str, list[pa.Table]] = {name: [] for name in TABLES}
    digests: dict[str, bytes] = {}
    quality = Quality()
    for trace in traces:
        renamed = {
            name: new
            for name in trace.sessions["session"].to_pylist()
            if (new := unique_name(name, taken)) != name
        }
        for name, table in trace.tables.items():
            pieces[name].append(_rename(table, renamed) if renamed else table)
        for name, digest in (trace._session_digests or {}).items():
            digests[renamed.get(name, name)] = digest
        quality.merge(trace.quality)
    tokenizers = dict.fromkeys(trace.tokenizer for trace in traces)
    joined = Trace(
        **{name: pa.concat_tables(tables) for name, tables in pieces.items()},
        source=source or ", ".join(dict.fromkeys(trace.source for trace in traces)),
        tokenizer="; ".join(tokenizers),
        quality=quality,
    )
    # Names do not enter the digests, so that those of the parts are those of the whole.
    if all(trace._session_digests is not None for trace in traces):
        joined._session_digests = digests
    return joined


def unique_name(name: str, taken: Counter[str]) -> str:
    """`name`, or ``name~2``, ``name~3``, … where it is taken; notes it in `taken`."""
    while True:
        taken[name] += 1
        if taken[name] == 1:
            return name
        candidate = f"{name}~{taken[name]}"
        if candidate not in taken:
            taken[candidate] = 1
            return candidate


def session_digests(trace: Trace) -> dict[str, bytes]:
    """A SHA-256 digest of each session's rows in all five tables, names and sources left out.

    Computed once a trace.

    Example:
        >>> from lachesis.traces.builder import TraceBuilder
        >>> def one(name):
        ...     builder = TraceBuilder(source=name)
        ...     session = builder.session(name, workload="w", harness="h")
        ...     _ = session.request(input_tokens=3, output_tokens=1)
        ...     return builder.build()
        >>> one("a").sha256 == one("b").sha256
        True
    """
    if trace._session_digests is None:
        trace._session_digests = _session_digests(trace)
    return trace._session_digests


def _session_digests(trace: Trace) -> dict[str, bytes]:
    names: list[str] = trace.sessions["session"].to_pylist()
    digests = {name: sha256() for name in names}
    left_out = {"session", "source"}
    for table_name, table in trace.tables.items():
        columns = [name for name in table.schema.names if name not in left_out]
        for session, rows in _runs_by_session(table):
            digests[session].update(table_name.encode())
            body = rows.select(columns).combine_chunks()
            for name in columns:
                digests[session].update(repr(body[name].to_pylist()).encode())
    return {name: digest.digest() for name, digest in digests.items()}


def _runs_by_session(table: pa.Table) -> Iterable[tuple[str, pa.Table]]:
    """Slices of `table`, one a run of equal session names."""
    if table.num_rows == 0:
        return
    encoded = pc.run_end_encode(table["session"].combine_chunks())
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    start = 0
    for end, session in zip(encoded.run_ends.to_pylist(), encoded.values.to_pylist(), strict=True):
        yield session, table.slice(start, end - start)
        start = end


def _file_digest(file: Path) -> str:
    with file.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def _rename(table: pa.Table, renamed: dict[str, str]) -> pa.Table:
    names = pa.array(
        [renamed.get(name, name) for name in table["session"].to_pylist()], pa.string()
    )
    return table.set_column(0, table.schema.field(0), names)


def _schema_difference(found: pa.Schema, wanted: pa.Schema) -> str:
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


def _read_manifest(place: Path) -> dict[str, Any]:
    file = place / _MANIFEST
    if not place.is_dir():
        raise InputError("no such trace" if not place.exists() else "is no folder", path=place)
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as fault:
        raise InputError(f"holds no {_MANIFEST}", path=place) from fault
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

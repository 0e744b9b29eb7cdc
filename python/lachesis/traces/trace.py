"""The trace: five Arrow tables and what is known about where they come from.

On disk a trace is a directory ``NAME.trace/`` with one Parquet file a table and ``trace.json``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lachesis.errors import InputError
from lachesis.traces.digests import TraceDigest, digests_by_session
from lachesis.traces.quality import Quality
from lachesis.traces.schema import SCHEMA_VERSION, TABLES
from lachesis.traces.session_names import SessionNames
from lachesis.traces.trace_files import (
    CHANGED,
    MANIFEST,
    TraceWriter,
    load_tables,
    read_manifest,
    schema_difference,
)


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
                    schema_difference(table.schema, schema), path=source, row=f"table {name}"
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
            digest = TraceDigest()
            for session in session_digests(self).values():
                digest.add(session)
            self._sha256 = digest.hex()
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
        with TraceWriter(path) as writer:
            writer.write(self.tables)
            writer.finish(self.manifest())

    def manifest(self) -> dict[str, Any]:
        """What ``trace.json`` holds, but for the digests of the files (``files``)."""
        rows = {name: table.num_rows for name, table in self.tables.items()}
        return manifest_of(self.source, self.tokenizer, rows, self.sha256, self.quality)

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read what `save` wrote.

        Raises `InputError` for another version, schema or row count, and for a Parquet file that is
        not the one that was written. (Traces of older builds have no digests of their files: of
        these the digest of the content is compared.) The rules between rows are checked by
        `lachesis.traces.validate`, which `open_trace` calls.
        """
        place = Path(path)
        manifest = read_manifest(place)
        tables = load_tables(place, manifest)
        try:
            quality = Quality.from_json(manifest["quality"])
        except (KeyError, TypeError, ValueError, AttributeError) as fault:
            raise InputError(
                f"is not as this build writes it ({fault})",
                path=place / MANIFEST,
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
            raise InputError(f"{CHANGED} (the digest of the content is another)", path=place)
        return trace


def manifest_of(
    source: str, tokenizer: str, rows: Mapping[str, int], digest: str, quality: Quality
) -> dict[str, Any]:
    """What ``trace.json`` holds, but for the digests of the files (``files``)."""
    return {
        "schema": SCHEMA_VERSION,
        "source": source,
        "tokenizer": tokenizer,
        "rows": dict(rows),
        "sha256": digest,
        "quality": quality.to_json(),
    }


def concat(traces: Sequence[Trace], source: str | None = None) -> Trace:
    """One trace of several; a session name that comes twice gets a suffix (``a~2``)."""
    if not traces:
        raise InputError("no trace to join")
    if len(traces) == 1:
        return traces[0]
    taken = SessionNames()
    pieces: dict[str, list[pa.Table]] = {name: [] for name in TABLES}
    digests: dict[str, bytes] = {}
    quality = Quality()
    for trace in traces:
        renamed = {
            name: new
            for name in trace.sessions["session"].to_pylist()
            if (new := taken.unique(name)) != name
        }
        for name, table in renamed_tables(trace.tables, renamed).items():
            pieces[name].append(table)
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
        trace._session_digests = digests_by_session(trace.tables)
    return trace._session_digests


def renamed_tables(
    tables: Mapping[str, pa.Table], renamed: Mapping[str, str]
) -> dict[str, pa.Table]:
    """The tables with other names for some sessions."""
    return {name: _rename(table, renamed) if renamed else table for name, table in tables.items()}


def _rename(table: pa.Table, renamed: Mapping[str, str]) -> pa.Table:
    names = pa.array(
        [renamed.get(name, name) for name in table["session"].to_pylist()], pa.string()
    )
    return table.set_column(0, table.schema.field(0), names)

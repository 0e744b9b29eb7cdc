"""A trace that need not fit into memory: what was read, in batches of whole sessions.

Each batch was validated when it was made. Two rules span batches: names of sessions are unique,
which `SessionNames` sees to, and equal prompts have equal lengths, which hold since the builder
makes the length a part of a prompt's key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from lachesis.traces.digests import TraceDigest, digests_by_session
from lachesis.traces.quality import Quality
from lachesis.traces.schema import TABLES
from lachesis.traces.session_names import SessionNames
from lachesis.traces.spool import Spool, Tables
from lachesis.traces.totals import TraceTotals
from lachesis.traces.trace import Trace, concat, manifest_of, renamed_tables
from lachesis.traces.trace_files import TraceWriter


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """What a trace holds, without its rows."""

    source: str
    tokenizer: str
    sha256: str
    totals: TraceTotals
    quality: Quality

    @classmethod
    def of(cls, trace: Trace) -> TraceSummary:
        """The summary of a trace in memory."""
        return cls(
            trace.source, trace.tokenizer, trace.sha256, TraceTotals.of(trace.tables), trace.quality
        )


@dataclass(frozen=True, slots=True)
class CollectedSessions:
    """What a builder took in: validated batches, and what is known of where they come from."""

    sessions: Spool
    source: str
    tokenizer: str
    quality: Quality

    @property
    def totals(self) -> TraceTotals:
        """What all sessions add up to."""
        return self.sessions.totals

    def __iter__(self) -> Iterator[Tables]:
        return iter(self.sessions)

    def whole(self) -> Trace:
        """The trace in memory."""
        batches = list(self.sessions)
        tables = {name: pa.concat_tables([each[name] for each in batches]) for name in TABLES}
        return Trace(**tables, source=self.source, tokenizer=self.tokenizer, quality=self.quality)


class TraceBatches:
    """Sessions in batches. Iterating gives the five tables of each batch, as often as asked for.

    Attributes:
        parts: traces in memory and others in batches, in the order of the sessions.
        source, tokenizer, quality: as of `Trace`, of all parts together.
    """

    def __init__(self, parts: Sequence[Part], source: str | None = None) -> None:
        self.parts = list(parts)
        if len(parts) == 1 or source is None:
            source = ", ".join(dict.fromkeys(part.source for part in parts))
        self.source: str = source
        self.tokenizer: str = "; ".join(dict.fromkeys(part.tokenizer for part in parts))
        self.quality = Quality()
        for part in parts:
            self.quality.merge(part.quality)

    @property
    def totals(self) -> TraceTotals:
        """What all sessions add up to."""
        return TraceTotals.sum(
            TraceTotals.of(part.tables) if isinstance(part, Trace) else part.totals
            for part in self.parts
        )

    def __iter__(self) -> Iterator[Tables]:
        if len(self.parts) == 1:
            yield from _batches_of(self.parts[0])
            return
        taken = SessionNames()
        for tables in (tables for part in self.parts for tables in _batches_of(part)):
            names = tables["sessions"]["session"].to_pylist()
            renamed = {name: new for name in names if (new := taken.unique(name)) != name}
            yield renamed_tables(tables, renamed)

    def whole(self) -> Trace:
        """The trace in memory."""
        traces = [part if isinstance(part, Trace) else part.whole() for part in self.parts]
        return concat(traces, self.source)

    def summary(self) -> TraceSummary:
        """What the sessions add up to, and their digest."""
        digest = TraceDigest()
        for tables in self:
            _add(tables, digest)
        return TraceSummary(self.source, self.tokenizer, digest.hex(), self.totals, self.quality)

    def save(
        self, path: str | Path, change: Callable[[Tables], Tables] | None = None
    ) -> TraceSummary:
        """Write a trace as `Trace.save` does, a batch at a time; `change` is done to every batch.

        Raises `InputError` if it cannot be written.
        """
        digest = TraceDigest()
        with TraceWriter(path) as writer:
            for tables in self:
                changed = tables if change is None else change(tables)
                _add(changed, digest)
                writer.write(changed)
            summary = TraceSummary(
                self.source, self.tokenizer, digest.hex(), self.totals, self.quality
            )
            writer.finish(
                manifest_of(
                    summary.source, summary.tokenizer, summary.totals.rows, summary.sha256,
                    summary.quality,
                )
            )  # fmt: skip
        return summary


#: What may be a part of a `TraceBatches`.
Part = Trace | CollectedSessions | TraceBatches


def _batches_of(part: Part) -> Iterator[Tables]:
    if isinstance(part, Trace):
        yield part.tables
    else:
        yield from part


def _add(tables: Tables, digest: TraceDigest) -> None:
    for session in digests_by_session(tables).values():
        digest.add(session)

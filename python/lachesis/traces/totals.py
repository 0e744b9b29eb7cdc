"""What a trace adds up to: rows, tokens, usage sources, and when its first request came in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lachesis.traces.schema import TABLES


@dataclass(frozen=True, slots=True)
class TraceTotals:
    """Sums over whole tables, which are the sums of any batches that they consist of.

    Attributes:
        rows: rows of each table.
        input_tokens: of all spans; `written_tokens` of those that are written.
        output_tokens: of all requests.
        usage: requests by the source of their counts.
        earliest_s: the earliest start of a request; None where none has one.
    """

    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TABLES, 0))
    input_tokens: int = 0
    written_tokens: int = 0
    output_tokens: int = 0
    usage: Counter[str] = field(default_factory=Counter)
    earliest_s: float | None = None

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table]) -> TraceTotals:
        """The totals of five tables."""
        spans, requests = tables["spans"], tables["requests"]
        written = spans["tokens"].filter(spans["written"])
        sources = pc.value_counts(requests["usage_source"])
        return cls(
            rows={name: table.num_rows for name, table in tables.items()},
            input_tokens=pc.sum(spans["tokens"]).as_py() or 0,
            written_tokens=pc.sum(written).as_py() or 0,
            output_tokens=pc.sum(requests["output_tokens"]).as_py() or 0,
            usage=Counter({each["values"]: each["counts"] for each in sources.to_pylist()}),
            earliest_s=pc.min(requests["start_s"]).as_py(),
        )

    @classmethod
    def sum(cls, parts: Iterable[TraceTotals]) -> TraceTotals:
        """The totals of all parts together.

        Example:
            >>> parts = [TraceTotals(output_tokens=3, earliest_s=2.0), TraceTotals(output_tokens=4)]
            >>> TraceTotals.sum(parts).output_tokens, TraceTotals.sum(parts).earliest_s
            (7, 2.0)
        """
        found = list(parts)
        starts = [each.earliest_s for each in found if each.earliest_s is not None]
        usage: Counter[str] = Counter()
        for each in found:
            usage.update(each.usage)
        return cls(
            rows={name: sum(each.rows[name] for each in found) for name in TABLES},
            input_tokens=sum(each.input_tokens for each in found),
            written_tokens=sum(each.written_tokens for each in found),
            output_tokens=sum(each.output_tokens for each in found),
            usage=usage,
            earliest_s=min(starts, default=None),
        )

"""What tokens written would be if the provider's cache hit were taken for the matched prefix.

A provider's cache expires, is evicted and is shared with other sessions, so its hit says how long
the user waited, not what the context still holds. Traces keep it (`reported_cached_tokens`), and
nothing here uses it for matching; this module says how far off that would be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from lachesis.characterise.reference_clock import join_rows
from lachesis.traces.trace import Trace


@dataclass(frozen=True)
class CacheComparison:
    """Tokens written by the requests that report a cache hit, counted in two ways.

    Attributes:
        requests: how many report one.
        matched_tokens: written by logical matching: what is new in the input, and the output.
        cache_tokens: the input beyond the reported hit, and the output.
        missed_tokens: matched, but not in the provider's cache any more.
        beyond_tokens: in the provider's cache, but not in what this session wrote before: mostly
            prompts that another session left there.
    """

    requests: int
    matched_tokens: int
    cache_tokens: int
    missed_tokens: int
    beyond_tokens: int

    @property
    def inflation(self) -> float | None:
        """Tokens written by the cache over tokens written by matching; None without a write."""
        return self.cache_tokens / self.matched_tokens if self.matched_tokens else None


def compare_with_cache(trace: Trace) -> CacheComparison:
    """Count tokens written both ways over the requests that report a cache hit.

    Example:
        >>> from lachesis.traces import TraceBuilder
        >>> builder = TraceBuilder(source="one")
        >>> session = builder.session("a", workload="w", harness="h", stripping="off")
        >>> _ = session.request(input_tokens=80, output_tokens=20, reported_cached_tokens=0)
        >>> _ = session.request(input_tokens=120, output_tokens=10, reported_cached_tokens=0)
        >>> found = compare_with_cache(builder.build())
        >>> found.matched_tokens, found.cache_tokens, round(found.inflation, 2)
        (130, 230, 1.77)
    """
    rows = join_rows(trace)
    count = trace.requests.num_rows
    tokens = trace.spans["tokens"].to_numpy().astype(np.int64)
    written = trace.spans["written"].to_numpy()
    inputs, new = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    np.add.at(inputs, rows.request_of_span, tokens)
    np.add.at(new, rows.request_of_span[written], tokens[written])
    reported = pc.is_valid(trace.requests["reported_cached_tokens"]).to_numpy().astype(bool)
    hit = pc.fill_null(trace.requests["reported_cached_tokens"], 0).to_numpy().astype(np.int64)
    output = trace.requests["output_tokens"].to_numpy().astype(np.int64)
    beyond_hit = np.maximum(inputs - hit, 0)
    matched = inputs - new
    return CacheComparison(
        requests=int(reported.sum()),
        matched_tokens=int((new + output)[reported].sum()),
        cache_tokens=int((beyond_hit + output)[reported].sum()),
        missed_tokens=int(np.maximum(matched - hit, 0)[reported].sum()),
        beyond_tokens=int(np.maximum(np.minimum(hit, inputs) - matched, 0)[reported].sum()),
    )

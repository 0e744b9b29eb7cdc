"""Requests that are sessions of their own, as columns: from what a log says to the five tables.

The same rows as `recover_session` gives for a session of one such request, made for many at once:
one segment of class `lead`, which the input (if it has a token) and the output are written to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lachesis.traces.schema import (
    AFTER_TYPE,
    REQUESTS,
    SEGMENTS,
    SESSIONS,
    SPANS,
    SPAWNS,
    Boundary,
    SegmentClass,
    Status,
    UsageSource,
)
from lachesis.traces.spool import Tables


class LoneRequests(NamedTuple):
    """One request a row.

    `numbers`: rows of the source, ascending. `start_s` and `end_s` (float64) and `model` (string)
    are Arrow arrays, with nulls where the log says nothing.
    """

    numbers: NDArray[np.int64]
    input_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    start_s: pa.Array
    end_s: pa.Array
    model: pa.Array

    def where(self, kept: NDArray[np.bool_]) -> LoneRequests:
        """Those rows for which `kept` is true."""
        mask = pa.array(kept)
        return LoneRequests(
            self.numbers[kept], self.input_tokens[kept], self.output_tokens[kept],
            self.start_s.filter(mask), self.end_s.filter(mask), self.model.filter(mask),
        )  # fmt: skip


def lone_sessions(
    requests: LoneRequests, names: Sequence[str], *, workload: str, harness: str, source: str
) -> Tables:
    """The five tables of as many sessions as there are requests, called `names`."""
    count = len(names)
    session = pa.array(names, pa.string())
    zeros = pa.array(np.zeros(count, np.int32))
    no_tokens = pa.array(np.zeros(count, np.int64))
    empty = pa.array(np.zeros(count + 1, np.int32))
    given = requests.input_tokens > 0
    of_span = zeros.slice(0, int(given.sum()))

    def same(value: object, kind: pa.DataType) -> pa.Array:
        return pa.repeat(pa.scalar(value, kind), count)

    columns = {
        "sessions": [
            session,
            same(workload, pa.string()),
            same(harness, pa.string()),
            same(source, pa.string()),
            same(False, pa.bool_()),
            same(False, pa.bool_()),
        ],
        "requests": [
            session,
            zeros,
            zeros,
            zeros,
            requests.model,
            same(str(Status.OK), pa.string()),
            pa.ListArray.from_arrays(empty, pa.array([], AFTER_TYPE)),
            zeros,
            pa.array(requests.output_tokens),
            no_tokens,
            zeros,
            pa.ListArray.from_arrays(empty, pa.array([], pa.string())),
            pa.nulls(count, pa.int64()),
            requests.start_s,
            requests.end_s,
            same(str(UsageSource.REPORTED), pa.string()),
        ],
        "spans": [
            session.filter(pa.array(given)),
            of_span,
            of_span,
            of_span,
            pa.array(requests.input_tokens[given]),
            pa.repeat(pa.scalar(value=True), len(of_span)),
        ],
        "segments": [
            session,
            zeros,
            same(str(SegmentClass.LEAD), pa.string()),
            zeros,
            same(str(Boundary.SESSION_END), pa.string()),
            zeros,
            pa.nulls(count, pa.string()),
        ],
    }
    schemas = {"sessions": SESSIONS, "requests": REQUESTS, "spans": SPANS, "segments": SEGMENTS}
    tables = {
        name: pa.Table.from_arrays(columns[name], schema=schema) for name, schema in schemas.items()
    }
    return {**tables, "spawns": SPAWNS.empty_table()}

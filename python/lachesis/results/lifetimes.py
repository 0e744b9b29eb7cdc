"""How long the segments of a trace live and how much they hold, as distributions by class."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from lachesis.characterise.segments import segment_columns
from lachesis.presets import load_latency
from lachesis.traces import Trace

QUANTILES = 101
_COLUMNS = pa.schema(
    [
        pa.field("trace", pa.string(), nullable=False),
        pa.field("class", pa.string(), nullable=False),
        pa.field("quantile", pa.float64(), nullable=False),
        pa.field("t_norm_s", pa.float64(), nullable=False),
        pa.field("tokens_per_segment", pa.float64(), nullable=False),
        pa.field("segments", pa.int64(), nullable=False),
    ]
)


def lifetimes_table(traces: Mapping[str, Trace]) -> pa.Table:
    """Quantiles 0, 0.01, …, 1 of lifetime (s) and tokens of each class, and how many segments.

    Lifetimes are those of the reference clock (``docs/characterisation.md``) with the default
    latencies, whatever a run is served by.

    Args:
        traces: by the name that the rows carry.

    Example:
        >>> from lachesis.traces import open_trace
        >>> table = lifetimes_table({"tau3-airline": open_trace("tau3-airline")})
        >>> table.num_rows, sorted(set(table["class"].to_pylist()))
        (303, ['prompt', 'reasoning-laden', 'reasoning-stripped'])
    """
    latency = load_latency()
    shares = np.linspace(0.0, 1.0, QUANTILES)
    pieces = [_COLUMNS.empty_table()]
    for name, trace in traces.items():
        columns = segment_columns(trace, latency, 0)
        for segment_class in columns.classes():
            rows = columns.of_class(segment_class)
            pieces.append(
                pa.table(
                    {
                        "trace": [name] * QUANTILES,
                        "class": [str(segment_class)] * QUANTILES,
                        "quantile": shares,
                        "t_norm_s": np.quantile(rows.t_norm_s, shares),
                        "tokens_per_segment": np.quantile(rows.tokens, shares),
                        "segments": np.full(QUANTILES, len(rows)),
                    },
                    schema=_COLUMNS,
                )
            )
    return pa.concat_tables(pieces).combine_chunks()

"""A run over time, as a table: what was live, written and held, by class and tier."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lachesis.errors import InputError
from lachesis.results.directory import write_table
from lachesis.results.files import check_output
from lachesis.simulation import Comparison, Replay, stored_bytes_per_token
from lachesis.traces.schema import SegmentClass

_TIERS = ("hbm", "hbf")


def check_timeline(path: str) -> None:
    """Refuse a file that a timeline cannot be written to.

    Raises:
        InputError: the name does not end in ``.parquet``, or the place cannot be written.
    """
    if Path(path).suffix != ".parquet":
        raise InputError("a timeline is a .parquet file", field="--timeline", value=path)
    check_output(path)


def timeline_table(comparison: Comparison) -> pa.Table:
    """One row a policy and window, in the order of the policies.

    Rates are means over the window that ends at ``time_s``; bytes and blocks are the node's. A
    tier's ``occupancy`` counts every block that is not free; ``held_bytes`` by class leave out what
    running requests have drawn since their admission. A run shorter than two windows has no row.
    """
    return pa.concat_tables([timeline_of(comparison, replay) for replay in comparison.replays])


def write_timeline(comparison: Comparison, path: str) -> None:
    """Write the timeline as Parquet, whole or not at all."""
    write_table(Path(path), timeline_table(comparison))


def timeline_of(comparison: Comparison, replay: Replay) -> pa.Table:
    """The rows of one policy's run, as `timeline_table` has them."""
    settings = comparison.plan.settings
    rows = replay.measured["timeline"]
    window_s = np.diff(rows["time_s"])
    steps = _gains(rows["steps"])
    token_bytes = stored_bytes_per_token(settings)
    block_bytes = token_bytes * settings.node.block_tokens
    capacity = settings.kv_capacity()
    totals = {"hbm": capacity.hbm_blocks, "hbf": capacity.hbf_blocks}
    columns: dict[str, object] = {
        "policy": [replay.policy.name] * len(window_s),
        "time_s": rows["time_s"][1:],
        "window_s": window_s,
        "steps": steps,
        "step_time_s": np.divide(window_s, steps, out=np.full(len(steps), np.nan), where=steps > 0),
        "requests_per_s": _gains(rows["requests"]) / window_s,
        "live_sessions": rows["sessions"][1:],
        "running_requests": rows["running"][1:],
        "waiting_requests": rows["waiting"][1:],
    }
    for tier in _TIERS:
        blocks = totals[tier] * comparison.plan.gpus
        columns[f"{tier}_occupancy"] = rows[f"{tier}_blocks"][1:] / max(blocks, 1)
        for name in SegmentClass:
            word = str(name).replace("-", "_")
            held = rows[f"{tier}_blocks {name}"][1:] * block_bytes
            written = _gains(rows[f"{tier}_tokens {name}"]) * token_bytes
            columns[f"{tier}_held_bytes_{word}"] = held
            columns[f"{tier}_write_bytes_per_s_{word}"] = written / window_s
    return pa.table(columns)


def _gains(counts: NDArray[np.uint64]) -> NDArray[np.float64]:
    """What each window added to a count since the start."""
    return np.diff(counts.astype(np.float64))

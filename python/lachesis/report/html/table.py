"""The table of all runs: its columns, and their values as the page's script reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lachesis.report.html.plots.panel import rounded
from lachesis.report.questions import Run
from lachesis.results.rows import column_meanings, run_columns

# Numbers beyond it are not exact in JavaScript.
_EXACT_MAX = 2**53
# As many as the page shows, so that a filter means what is seen.
_DIGITS = 4


@dataclass(frozen=True)
class _Shown:
    """How a column is told: its label, a factor to the label's unit, and whether from the start.

    One that is `hidden` is not shown from the start; one that is not `constant`, only where runs
    differ in it.
    """

    label: str
    factor: float = 1.0
    constant: bool = True
    hidden: bool = False


_SHOWN = {
    "trace": _Shown("trace", constant=False),
    "model": _Shown("model", constant=False),
    "memory": _Shown("memory"),
    "slo": _Shown("SLO", constant=False),
    "policy": _Shown("policy"),
    "seed": _Shown("seed", constant=False),
    "load_sessions": _Shown("load, sessions"),
    "hbf_lifetime_years": _Shown("device-years"),
    "hbf_lifetime_years_low": _Shown("95 % low"),
    "hbf_lifetime_years_high": _Shown("95 % high"),
    "gain_over_hbm_first": _Shown("gain, times"),
    "hbf_write_bytes_per_s_per_gpu": _Shown("flash writes, MB/s/GPU", factor=1e-6),
    "hbm_write_share": _Shown("HBM share of writes, %", factor=100.0),
    "tpot_p99_s": _Shown("TPOT p99, ms", factor=1e3),
    "ttft_p99_s": _Shown("TTFT p99, s"),
    "meets_slo": _Shown("meets SLO"),
    "settled": _Shown("settled"),
    "overrides": _Shown("changed values", constant=False),
    "warnings": _Shown("texts of warnings", hidden=True),
}


def run_table(runs: Sequence[Run]) -> dict[str, Any]:
    """Columns, each with its values; the order of the values is that of the runs."""
    fields = {field.name: field.type for field in run_columns()}
    order = [*_SHOWN, *(name for name in fields if name not in _SHOWN)]
    columns = [_column(name, fields[name], runs) for name in order]
    columns.insert(order.index("warnings"), _warnings(runs))
    return {"rows": len(runs), "columns": columns}


def _warnings(runs: Sequence[Run]) -> dict[str, Any]:
    values = [len(run["warnings"]) for run in runs]
    return {
        "key": "warning_count",
        "label": "warnings",
        "about": "how many warnings the run carries; their texts are another column",
        "kind": "integer",
        "shown": any(values),
        "values": values,
    }


def _column(name: str, type_: pa.DataType, runs: Sequence[Run]) -> dict[str, Any]:
    shown = _SHOWN.get(name)
    values: list[Any] = [run[name] for run in runs]
    kind = "text"
    if pa.types.is_list(type_):
        values = ["; ".join(value) for value in values]
    elif pa.types.is_boolean(type_):
        kind = "truth"
    elif pa.types.is_floating(type_):
        kind = "number"
        factor = 1.0 if shown is None else shown.factor
        values = [None if value is None else rounded(value * factor, _DIGITS) for value in values]
    elif pa.types.is_integer(type_):
        if all(value is None or value <= _EXACT_MAX for value in values):
            kind = "integer"
        else:
            values = [None if value is None else str(value) for value in values]
    differs = len({str(value) for value in values}) > 1
    return {
        "key": name,
        "label": name.replace("_", " ") if shown is None else shown.label,
        "about": column_meanings()[name],
        "kind": kind,
        "shown": shown is not None and not shown.hidden and (shown.constant or differs),
        "values": values,
    }

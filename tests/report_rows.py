"""Rows of a table of runs, written by hand."""

from typing import Any

import pyarrow as pa

from lachesis.results.rows import run_columns

_EMPTY: dict[pa.DataType, Any] = {
    pa.string(): "x",
    pa.int64(): 0,
    pa.uint64(): 1,
    pa.float64(): 0.0,
    pa.bool_(): True,
    pa.list_(pa.string()): [],
}


def row(**values: Any) -> dict[str, Any]:
    """A run of one cell, with every column; `years` is (device-years, low, high) or None."""
    run = {field.name: _EMPTY[field.type] for field in run_columns()}
    run |= {
        "trace": "corpus", "model": "model-a", "memory": "2/6", "slo": "tight",
        "slo_tpot_p99_s": 0.06, "slo_ttft_p99_s": 2.0, "load": "closed", "load_sessions": 100,
        "load_sessions_per_s": None, "admitted_sessions": None, "policy": "lachesis",
        "warranty_years": 5.0, "gain_over_hbm_first": None, "seed": 1,
        "tpot_p99_s": 0.05, "ttft_p99_s": 1.0, "notes": [], "warnings": [], "overrides": [],
        "status": "measured", "reason": None, "batches": 20,
    }  # fmt: skip
    years = values.pop("years", (6.0, 5.9, 6.1))
    ends = ("hbf_lifetime_years", "hbf_lifetime_years_low", "hbf_lifetime_years_high")
    run |= dict(zip(ends, years or (None, None, None), strict=True)) | values
    cell = (
        run["trace"],
        run["model"],
        run["memory"],
        run["slo"],
        run["load_sessions"],
        run["seed"],
    )
    run["cell"] = values.get("cell", "|".join(map(str, cell)))
    run["run"] = values.get("run", f"{run['cell']}|{run['policy']}")
    return run


#: Limits of the loose SLO.
LOOSE: dict[str, Any] = {"slo": "loose", "slo_tpot_p99_s": 0.1}

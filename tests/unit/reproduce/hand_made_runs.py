"""Rows of runs made by hand, in the columns that claims and orderings look at."""

from lachesis.reproduce.cells import Cell, multi_agent_cells, single_agent_cells
from lachesis.reproduce.runs import Runs
from lachesis.traces.schema import SegmentClass

CLASSES = [str(name).replace("-", "_") for name in SegmentClass]


def row(cell: Cell, policy: str, *, years=5.0, error=0.02, share=0.1, rate=1e8, written=None):
    found = {
        "run": f"{cell} {policy}",
        "trace": cell.trace,
        "model": cell.model,
        "memory": cell.memory,
        "slo": cell.slo,
        "policy": policy,
        "hbf_lifetime_years": years,
        "hbf_lifetime_years_low": None if error is None else years / (1 + error),
        "hbf_lifetime_years_high": None if error is None else years / (1 - error),
        "hbf_write_bytes_per_s_per_gpu": rate,
        "hbm_write_share": share,
    }
    for name in CLASSES:
        for tier in ("hbm", "hbf"):
            found[f"write_bytes_{name}_{tier}"] = (written or {}).get((name, tier), 0)
    return found


def evaluation_runs(years) -> Runs:
    """Every run of Figures 9 to 12; `years` gives device-years for a cell and a policy."""
    written = {("reviewer", "hbm"): 30, ("reviewer", "hbf"): 70, ("worker", "hbf"): 100}
    return Runs(
        row(cell, policy, years=years(cell, policy), written=written)
        for cell in [*multi_agent_cells(), *single_agent_cells()]
        for policy in cell.policies
    )

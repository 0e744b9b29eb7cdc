"""What a run wrote where, as shares of all its written bytes."""

from __future__ import annotations

from lachesis.report.questions import Run
from lachesis.report.run_plot import CLASS_COLOURS
from lachesis.results.measures import TIERS
from lachesis.results.rows import write_column


def write_shares(run: Run) -> dict[tuple[str, str], float]:
    """Percent of the written bytes by (class, tier); classes that wrote nothing are left out.

    Example:
        >>> run = {write_column(name, tier): 0 for name in CLASS_COLOURS for tier in TIERS}
        >>> write_shares(run | {"write_bytes_lead_hbf": 3, "write_bytes_worker_hbm": 1})
        {('lead', 'hbf'): 75.0, ('worker', 'hbm'): 25.0}
    """
    written = {
        (name, tier): run[write_column(name, tier)] for name in CLASS_COLOURS for tier in TIERS
    }
    total = sum(written.values())
    return {place: 100.0 * size / total for place, size in written.items() if size}


def tier_share(shares: dict[tuple[str, str], float], tier: str) -> float:
    """Percent of the written bytes that went to a tier."""
    return sum(share for (_, to), share in shares.items() if to == tier)

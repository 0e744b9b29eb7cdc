"""Runs that were measured for a fixed length, such as those of ``reproduce --quick``."""

from __future__ import annotations

from lachesis.report.questions import Run

#: A run that ends because it has settled has at least so many measured batches (FEWEST_MEASURED of
#: the engine's recorder).
_SETTLED_BATCHES_MIN = 8


def is_fixed_length(run: Run) -> bool:
    """Whether a run ended after a length that was set beforehand: nobody looked if it had settled.

    Its row says ``settled``, as it measured what it was asked to.

    Example:
        >>> is_fixed_length({"settled": True, "batches": 1})
        True
        >>> is_fixed_length({"settled": True, "batches": 20})
        False
    """
    return bool(run["settled"]) and run["batches"] < _SETTLED_BATCHES_MIN


def is_known_settled(run: Run) -> bool:
    """Whether a run was seen to settle."""
    return bool(run["settled"]) and not is_fixed_length(run)


def lacks_interval(run: Run) -> bool:
    """Whether device-years have no 95 % interval."""
    return run["hbf_lifetime_years_low"] is None or run["hbf_lifetime_years_high"] is None

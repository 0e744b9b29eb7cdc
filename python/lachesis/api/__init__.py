"""What ``import lachesis`` offers in a notebook: simulate, sweep, and their results."""

from lachesis.api.run_results import Result
from lachesis.api.simulating import simulate
from lachesis.api.sweep_results import Results, read_results
from lachesis.api.sweeping import sweep

__all__ = ["Result", "Results", "read_results", "simulate", "sweep"]

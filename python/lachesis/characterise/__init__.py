"""What the contexts of a trace look like: lifetimes, sizes and reuse of their segments."""

from lachesis.characterise.workload import WorkloadStats, stats

__all__ = ["WorkloadStats", "stats"]

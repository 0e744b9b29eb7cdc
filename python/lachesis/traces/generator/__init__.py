"""The built-in corpora: generated from one specification a workload, and shipped as Parquet."""

from lachesis.traces.generator.generate import generate

__all__ = ["generate"]

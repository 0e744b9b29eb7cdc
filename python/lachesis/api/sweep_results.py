"""The results of `lachesis.sweep`, or of a directory that a sweep left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from lachesis.api.arguments import place
from lachesis.api.frames import to_pandas, to_polars
from lachesis.api.html import html_of
from lachesis.errors import InputError
from lachesis.report.sweep_plot import device_years_figure, load_figure, writes_figure
from lachesis.report.sweep_summary import summary
from lachesis.results.directory import MANIFEST, Manifest
from lachesis.results.results_directory import StoredResults, read_stored_results

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from matplotlib.figure import Figure


class Results:
    """Many runs, one row each.

    Attributes:
        manifest: what was asked, what is done, what failed and why, and all timings.
        stored: all of it as it was read.

    Example:
        >>> import lachesis
        >>> results = lachesis.sweep(trace="tau3-airline", memory=["1/7", "2/6"], load=8,
        ...                          turnovers=2)
        >>> len(results)
        4
        >>> results.to_arrow().select(["memory", "policy"]).to_pylist()[0]
        {'memory': '1/7', 'policy': 'hbm-first'}
    """

    def __init__(self, manifest: Manifest, stored: StoredResults) -> None:
        self.manifest = manifest
        self.stored = stored

    def __len__(self) -> int:
        return int(self.stored.runs.num_rows)

    @property
    def failures(self) -> dict[str, str]:
        """Why runs failed, and have no row: the reason by ``cell/policy``."""
        return {
            f"{entry.cell}/{policy}": reason
            for entry in self.manifest.cells
            for policy, reason in entry.failures.items()
        }

    @property
    def infeasible(self) -> dict[str, str]:
        """Why runs cannot be run, as their rows say: the reason by ``cell/policy``."""
        return {
            f"{entry.cell}/{policy}": reason
            for entry in self.manifest.cells
            for policy, reason in entry.infeasible.items()
        }

    def to_arrow(self) -> pa.Table:
        """One row a run, in the order of the specification (columns: docs/sweeps.md).

        A run that cannot be run has the ``status`` ``infeasible``, a ``reason``, and no
        measurement.
        """
        return self.stored.runs

    def to_polars(self) -> pl.DataFrame:
        """The same as a polars data frame; needs the extra ``polars``."""
        return to_polars(self.stored.runs)

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas data frame; needs the extra ``pandas``."""
        return to_pandas(self.stored.runs)

    def lifetimes(self) -> pa.Table:
        """By trace and class: quantiles of lifetime (s) and of tokens a segment.

        Raises:
            InputError: the directory holds none.
        """
        if self.stored.lifetimes is None:
            raise InputError("there are none in this directory", field="lifetimes")
        return self.stored.lifetimes

    def timelines(self) -> pa.Table | None:
        """The runs over time; None where the specification asked for none."""
        return self.stored.timelines

    def summary(self) -> str:
        """The sweep in words: what lasts longest, what misses the warranty, what failed."""
        return "\n".join(summary(self.manifest, self.stored.runs))

    def plot_device_years(self) -> Figure:
        """Device-years by memory split and policy, with intervals and the warranty.

        A panel a trace, model, SLO, load and set of changed values; against the load where more
        loads were given than splits. Seeds are repetitions: their mean, and how far they reach.

        Raises:
            InputError: no run has device-years.
        """
        return device_years_figure(self.stored.runs)

    def plot_writes(self) -> Figure:
        """What is written, by class and tier, as shares of all bytes.

        Raises:
            InputError: nothing was written.
        """
        return writes_figure(self.stored.runs)

    def plot_load(self) -> Figure:
        """The load that the SLO admits, by memory split and policy.

        Raises:
            InputError: every load was given.
        """
        return load_figure(self.stored.runs)

    def __repr__(self) -> str:
        counts = self.manifest.counts()
        return (
            f"Results({self.manifest.title!r}, {len(self):,} runs, {counts['done']:,} cells done, "
            f"{counts['infeasible']:,} infeasible, {counts['failed']:,} failed, "
            f"{counts['pending']:,} pending)"
        )

    def _repr_html_(self) -> str:
        return html_of(self.stored.measured.to_pylist(), self.summary().splitlines())


def read_results(directory: str | Path) -> Results:
    """Read what a sweep left in a directory, finished or not.

    Raises:
        InputError: there are no results, or a file is damaged or lacks what it must hold.

    Example:
        >>> import lachesis, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = lachesis.sweep(trace="tau3-airline", load=8, turnovers=2, directory=folder)
        ...     results = lachesis.read_results(folder)
        >>> results
        Results('', 2 runs, 1 cells done, 0 infeasible, 0 failed, 0 pending)
    """
    directory = place("directory", directory)
    stored = read_stored_results(directory)
    if stored.manifest is None:
        raise InputError(f"holds no results of a sweep: no {MANIFEST}", path=directory)
    return Results(stored.manifest, stored)

"""The result of `lachesis.simulate`: one trace under some policies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lachesis.api.arguments import place
from lachesis.api.frames import to_pandas, to_polars
from lachesis.api.html import html_of
from lachesis.errors import InputError
from lachesis.report.run_plot import run_figure
from lachesis.report.run_summary import outcome_sentence, sentences
from lachesis.report.run_summary import warnings as warnings_of
from lachesis.results.document import to_json
from lachesis.results.files import write_text
from lachesis.results.rows import run_row, run_table
from lachesis.results.timeline import timeline_table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from matplotlib.figure import Figure

    from lachesis.simulation import Comparison


class Result:
    """What a simulation measured, one row a policy.

    Attributes:
        document: all of it, as ``lachesis run --json`` gives it, provenance included.
        comparison: the replays that it was made from.

    Example:
        >>> import lachesis
        >>> result = lachesis.simulate("tau3-airline", load=8, turnovers=2)
        >>> result.policies
        ('hbm-first', 'lachesis-deterministic')
        >>> result["hbm-first"]["load_sessions"]
        8
        >>> result.to_arrow().num_rows
        2
    """

    def __init__(self, document: dict[str, Any], comparison: Comparison) -> None:
        self.document = document
        self.comparison = comparison

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the policies, in the order asked for."""
        return tuple(run["policy"] for run in self.document["runs"])

    def __len__(self) -> int:
        return len(self.document["runs"])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.document["runs"])

    def __getitem__(self, policy: str) -> dict[str, Any]:
        """Everything measured under one policy; the keys are those of ``run.schema.json``.

        Raises:
            KeyError: it was not run.
        """
        for run in self:
            if run["policy"] == policy:
                return run
        raise KeyError(f"{policy}; there are {', '.join(self.policies)}")

    def summary(self) -> str:
        """The result in words: what lasts longest, at which load, and what to be wary of."""
        said = sentences(self.document)
        return "\n".join(said + [f"Warning: {each}" for each in warnings_of(self.document)])

    def to_arrow(self) -> pa.Table:
        """One row a policy; columns as in ``runs/*.parquet`` of a sweep (docs/sweeps.md)."""
        return run_table(self._rows())

    def to_polars(self) -> pl.DataFrame:
        """The same as a polars data frame; needs the extra ``polars``."""
        return to_polars(self.to_arrow())

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas data frame; needs the extra ``pandas``."""
        return to_pandas(self.to_arrow())

    def to_json(self, path: str | Path | None = None) -> str:
        """The document as JSON text, written to a file as well if one is named."""
        text = to_json(self.document)
        if path is not None:
            write_text(place("path", path), text)
        return text

    def timeline(self) -> pa.Table:
        """The run over time, a row a policy and window.

        Raises:
            InputError: it was run without ``timeline_interval``.
        """
        if self.comparison.plan.timeline_interval_s is None:
            raise InputError('there is none: simulate with timeline_interval="60s"')
        return timeline_table(self.comparison)

    def plot(self) -> Figure:
        """Device-years with their intervals, and what is written where, as a matplotlib figure."""
        return run_figure(self.document)

    def _rows(self) -> list[dict[str, Any]]:
        origin = self.document["provenance"]
        overrides = [f"{each['key']}={each['value']}" for each in origin["overrides"]]
        return [
            run_row(
                run,
                run_id=run["config_sha256"][:16],
                cell_id=origin["config_sha256"][:16],
                trace=origin["trace_source"],
                overrides=overrides,
            )
            for run in self
        ]

    def __repr__(self) -> str:
        return f"Result({outcome_sentence(self.document['runs'])!r})"

    def _repr_html_(self) -> str:
        return html_of(self._rows(), sentences(self.document)[:2])

"""``lachesis trace stats``: what the contexts of a trace look like."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from lachesis.cli.options import (
    OUTPUT,
    AnyTrace,
    ClockSeed,
    Debug,
    Format,
    Json,
    Latency,
    Map,
    Quiet,
)


def trace_stats(
    *traces: AnyTrace,
    format: Format = None,
    map: Map = None,
    seed: ClockSeed = 0,
    latency: Latency = "paper",
    json: Json = None,
    plots: Annotated[
        str | None,
        Parameter(
            metavar="DIR",
            group=OUTPUT,
            help="Draw figures like the paper's Figures 4 to 6 into a folder.",
        ),
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Say what is written, how long it lives and how often it is read, by workload and class."""
    from lachesis.cli.trace_stats_job import execute_stats

    execute_stats(
        traces, format=format, map=map or [], seed=seed, latency=latency, json=json, plots=plots,
        quiet=quiet,
    )  # fmt: skip

"""``lachesis trace stats``: what the contexts of a trace look like."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from lachesis.cli.options import (
    INPUT,
    MEASUREMENT,
    OUTPUT,
    Debug,
    Format,
    Json,
    Map,
    Quiet,
    whole_number,
)


def trace_stats(
    *traces: Annotated[
        str, Parameter(group=INPUT, help="NAME.trace, files and folders of logs, or corpora.")
    ],
    format: Format = None,
    map: Map = None,
    seed: Annotated[
        int,
        Parameter(
            converter=whole_number,
            metavar="N",
            group=MEASUREMENT,
            help="Seed of the delays that the trace leaves open, and of the intervals.",
        ),
    ] = 0,
    latency: Annotated[
        str,
        Parameter(
            metavar="NAME",
            group=MEASUREMENT,
            help="Latency preset of the reference clock, or a TOML file of one.",
        ),
    ] = "paper",
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

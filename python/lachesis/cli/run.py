"""``lachesis run``: a trace in, device-years out."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from lachesis.cli.options import (
    HARDWARE,
    INPUT,
    LOAD,
    MEASUREMENT,
    OUTPUT,
    Debug,
    Format,
    Horizon,
    Json,
    Map,
    Policies,
    Precision,
    Quiet,
    Seed,
    Set,
    Slo,
    Turnovers,
    whole_number,
)

# Defaults of named presets are those of `lachesis.presets.Settings.choose`; None leaves them to it.
Name = str | None


def run(
    *traces: Annotated[
        str, Parameter(group=INPUT, help="Files, folders, NAME.trace, or names of corpora; joined.")
    ],
    format: Format = None,
    map: Map = None,
    model: Annotated[
        str, Parameter(metavar="NAME", group=HARDWARE, help="Model preset, or a TOML file of one.")
    ] = "llama-4-maverick",
    memory: Annotated[
        Name,
        Parameter(
            metavar="H/F",
            group=HARDWARE,
            help="Split h/f of the slots over HBM and HBF; 8/8* is the daisy chain. [default: 2/6]",
        ),
    ] = None,
    hardware: Annotated[
        str, Parameter(metavar="NAME", group=HARDWARE, help="GPU preset, or a TOML file of one.")
    ] = "rubin-hbf",
    flash: Annotated[
        str, Parameter(metavar="NAME", group=HARDWARE, help="Flash preset, or a TOML file of one.")
    ] = "hbf-slc",
    config: Annotated[
        Name,
        Parameter(
            metavar="FILE", group=HARDWARE, help="TOML file of preset values, keys as for --set."
        ),
    ] = None,
    set_: Set = None,
    step_time: Annotated[
        Name,
        Parameter(
            metavar="SECONDS",
            group=HARDWARE,
            help="A constant step, in seconds, instead of pricing.",
        ),
    ] = None,
    step_overhead: Annotated[
        Name,
        Parameter(
            metavar="TIME", group=HARDWARE, help="Fixed part of every priced step, such as 35ms."
        ),
    ] = None,
    policy: Policies = None,
    load: Annotated[
        str,
        Parameter(
            metavar="LOAD",
            group=LOAD,
            help="Live sessions N; auto (the most that the SLO admits under "
            "hbm-first), each (under each policy), poisson:RATE, "
            "recorded, or recorded:SECONDS, which cuts longer gaps between starts.",
        ),
    ] = "auto",
    slo: Slo = None,
    tpot: Annotated[
        Name,
        Parameter(
            metavar="TIME", group=LOAD, help="Limit of p99 TPOT, such as 60ms, instead of --slo."
        ),
    ] = None,
    ttft: Annotated[
        Name,
        Parameter(
            metavar="TIME", group=LOAD, help="Limit of p99 TTFT, such as 2s, instead of --slo."
        ),
    ] = None,
    turn_end: Annotated[
        Literal["last-output", "next-message"] | None,
        Parameter(group=LOAD, help="When a turn's context ends. [default: last-output]"),
    ] = None,
    seed: Seed = 1,
    precision: Precision = "2%",
    turnovers: Turnovers = 40.0,
    horizon: Horizon = "60d",
    cold: Annotated[
        bool,
        Parameter(
            group=MEASUREMENT,
            negative="",
            show_default=False,
            help="Start hbm-first from an empty memory.",
        ),
    ] = False,
    threads: Annotated[
        int | None,
        Parameter(
            converter=whole_number,
            metavar="N",
            group=MEASUREMENT,
            help="Policies replayed at once; changes no result. [default: cores]",
        ),
    ] = None,
    json: Json = None,
    plot: Annotated[
        Name,
        Parameter(
            metavar="FILE", group=OUTPUT, help="Draw the result: a name in .png, .svg or .pdf."
        ),
    ] = None,
    timeline: Annotated[
        Name,
        Parameter(
            metavar="FILE", group=OUTPUT, help="Write the run over time: a name in .parquet."
        ),
    ] = None,
    timeline_interval: Annotated[
        Name,
        Parameter(metavar="TIME", group=OUTPUT, help="Simulated time a row of it. [default: 10s]"),
    ] = None,
    trace_events: Annotated[
        Name,
        Parameter(
            metavar="FILE",
            group=OUTPUT,
            help="Write a window of each run for Perfetto: a name in .json.",
        ),
    ] = None,
    trace_events_window: Annotated[
        Name,
        Parameter(
            metavar="START:LENGTH",
            group=OUTPUT,
            help="Which one, such as 10min:30s. [default: 60s from where measuring starts]",
        ),
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Replay traces on a decode node with HBM and flash; say how long the flash lasts."""
    # What a run needs takes a third of a second to import, and --help needs none of it.
    from lachesis.cli.run_job import execute_run
    from lachesis.simulation import RunOptions

    execute_run(
        RunOptions(
            traces=traces, format=format, map=tuple(map or ()), model=model, memory=memory,
            hardware=hardware, flash=flash, config=config, set=tuple(set_ or ()),
            step_time=step_time, step_overhead=step_overhead,
            policies=tuple(policy or ()), load=load, slo=slo, tpot=tpot, ttft=ttft,
            turn_end=turn_end, seed=seed, precision=precision, turnovers=turnovers,
            horizon=horizon, cold=cold,
        ),
        threads=threads, json=json, plot=plot, timeline=timeline,
        timeline_interval=timeline_interval, trace_events=trace_events,
        trace_events_window=trace_events_window, quiet=quiet,
    )  # fmt: skip

"""``lachesis trace export``: a trace in the formats of other simulators."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Group, Parameter

from lachesis.cli.options import INPUT, OUTPUT, Debug, Map, Quiet, whole_number

TIMES = Group("Times", sort_key=2)
RUN = Group("Replay (flash-device; model and --set for oracle-general too)", sort_key=3)


def export_trace(
    *traces: Annotated[
        str, Parameter(group=INPUT, help="NAME.trace, files and folders of logs, or corpora.")
    ],
    output: Annotated[
        str, Parameter(("--output", "-o"), metavar="FILE", group=OUTPUT, help="The file to write.")
    ],
    format: Annotated[
        str | None,
        Parameter(
            metavar="NAME",
            group=OUTPUT,
            help="agentic-mooncake, mooncake, frontier, oracle-general or flash-device; by FILE's "
            "ending if left out: .agentic-mooncake.jsonl, .mooncake.jsonl, .frontier.csv, "
            ".oracleGeneral, .flash.csv.",
        ),
    ] = None,
    block_tokens: Annotated[
        int | None,
        Parameter(
            converter=whole_number,
            metavar="N",
            group=OUTPUT,
            help="Tokens a hash. [default: 16; 512 for mooncake]",
        ),
    ] = None,
    input_format: Annotated[
        str | None,
        Parameter(
            metavar="NAME",
            group=INPUT,
            help="Read every file in this format; recognised if left out.",
        ),
    ] = None,
    map: Map = None,
    load: Annotated[
        str | None,
        Parameter(
            metavar="LOAD",
            group=TIMES,
            help="How sessions start: N at once, poisson:RATE, recorded or recorded:SECONDS. "
            "[default: as recorded where all are, else all at once; flash-device: 400]",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        Parameter(
            converter=whole_number,
            metavar="N",
            group=TIMES,
            help="Seed of starts and open delays. [default: 1]",
        ),
    ] = None,
    model: Annotated[
        str | None,
        Parameter(metavar="NAME", group=RUN, help="Model preset. [default: llama-4-maverick]"),
    ] = None,
    memory: Annotated[
        str | None,
        Parameter(metavar="H/F", group=RUN, help="Split of the slots. [default: 2/6]"),
    ] = None,
    policy: Annotated[
        str | None,
        Parameter(
            metavar="NAME", group=RUN, help="Placement policy. [default: lachesis-deterministic]"
        ),
    ] = None,
    horizon: Annotated[
        str | None,
        Parameter(metavar="TIME", group=RUN, help="Simulated time. [default: 10min]"),
    ] = None,
    gpu: Annotated[
        int | None,
        Parameter(
            converter=whole_number,
            metavar="N",
            group=RUN,
            help="One GPU's flash, from address 0. [default: all]",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        Parameter(
            "--set", metavar="KEY=VALUE", group=RUN, negative="", help="Change one preset value."
        ),
    ] = None,
    cold: Annotated[
        bool,
        Parameter(group=RUN, negative="", show_default=False, help="Start from an empty memory."),
    ] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a trace as other simulators read it, or what its replay writes to flash."""
    from lachesis.cli.trace_export_job import ExportOptions, execute_export

    execute_export(
        ExportOptions(
            traces=traces, output=output, format=format, block_tokens=block_tokens,
            input_format=input_format, map=tuple(map or ()), load=load, seed=seed, model=model,
            memory=memory, policy=policy, horizon=horizon, gpu=gpu, set=tuple(set_ or ()),
            cold=cold,
        ),
        quiet=quiet,
    )  # fmt: skip

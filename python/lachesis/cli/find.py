"""``lachesis find``: questions the other way round, and what a change does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter

from lachesis.cli.options import (
    HARDWARE,
    INPUT,
    LOAD,
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
)

WISH = Group("What is asked", sort_key=0)

Traces = Annotated[
    str, Parameter(group=INPUT, help="Files, folders, NAME.trace, or names of corpora; joined.")
]
Years = Annotated[
    float, Parameter(metavar="YEARS", group=WISH, help="Device-years that the flash must last.")
]


# Named presets are None where they were not given, so that `find effect` tells a change to the
# default from none; their defaults are those of `lachesis.simulation.RunOptions`.
@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """What a question is asked of: options of ``lachesis run``."""

    format: Format = None
    map: Map = None
    model: Annotated[
        str | None,
        Parameter(
            metavar="NAME",
            group=HARDWARE,
            help="Model preset, or a TOML file of one. [default: llama-4-maverick]",
        ),
    ] = None
    memory: Annotated[
        str | None,
        Parameter(metavar="H/F", group=HARDWARE, help="Split h/f of the slots over HBM and HBF."),
    ] = None
    hardware: Annotated[
        str | None,
        Parameter(
            metavar="NAME",
            group=HARDWARE,
            help="GPU preset, or a TOML file of one. [default: rubin-hbf]",
        ),
    ] = None
    flash: Annotated[
        str | None,
        Parameter(
            metavar="NAME",
            group=HARDWARE,
            help="Flash preset, or a TOML file of one. [default: hbf-slc]",
        ),
    ] = None
    set: Set = None
    policy: Policies = None
    load: Annotated[
        str, Parameter(metavar="LOAD", group=LOAD, help="Live sessions N, or auto, as for run.")
    ] = "auto"
    slo: Slo = None
    seed: Seed = 1
    precision: Precision = "2%"
    turnovers: Turnovers = 40.0
    horizon: Horizon = "60d"
    json: Json = None
    quiet: Quiet = False
    debug: Debug = False


_DEFAULTS = Options()


def find_smallest_hbm(*traces: Traces, years: Years, options: Options = _DEFAULTS) -> None:
    """Find the least HBM with which the flash lasts so many years.

    Splits are tried from the least HBM up; with --memory, only the GB of its stacks vary.
    """
    from lachesis.cli.find_job import execute_find
    from lachesis.questions import smallest_hbm

    execute_find(options, traces, lambda scenario: smallest_hbm(scenario, years))


def find_largest_load(*traces: Traces, years: Years, options: Options = _DEFAULTS) -> None:
    """Find the largest load at which the flash lasts so many years, and that the SLO admits."""
    from lachesis.cli.find_job import execute_find, refuse_load
    from lachesis.questions import largest_load_for

    refuse_load(options)
    execute_find(options, traces, lambda scenario: largest_load_for(scenario, years))


def find_cheapest_split(
    *traces: Traces,
    years: Years,
    hbm_price: Annotated[
        float,
        Parameter(metavar="PRICE", group=WISH, help="Of one HBM stack, in any currency."),
    ],
    hbf_price: Annotated[
        float,
        Parameter(metavar="PRICE", group=WISH, help="Of one HBF stack, in the same currency."),
    ],
    options: Options = _DEFAULTS,
) -> None:
    """Find the cheapest split on which the flash lasts so many years and the SLO is met.

    With --load N the cost is that of a GPU; else that of a live session, each split at the load
    that the SLO admits on it.
    """
    from lachesis.cli.find_job import execute_find, refuse_memory
    from lachesis.questions import cheapest_split

    refuse_memory(options)
    execute_find(
        options,
        traces,
        lambda scenario: cheapest_split(scenario, years, hbm_price=hbm_price, hbf_price=hbf_price),
    )


def find_effect(
    *traces: Traces,
    before: Annotated[
        list[str] | None,
        Parameter(
            "--from",
            metavar="KEY=VALUE",
            group=WISH,
            negative="",
            help="How it is before, where not as usual: model, memory, hardware, flash or slo, or "
            "a preset value as for --set; repeatable.",
        ),
    ] = None,
    options: Options = _DEFAULTS,
) -> None:
    """Show what a change does: at the same load, and at the load that the SLO admits then.

    The change is what --model, --memory, --hardware, --flash, --slo and --set say.
    """
    from lachesis.cli.find_job import before_and_changes, execute_find
    from lachesis.questions import effect

    starting, changes = before_and_changes(before or (), options)
    execute_find(starting, traces, lambda scenario: effect(scenario, changes))

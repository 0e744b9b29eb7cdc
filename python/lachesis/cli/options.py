"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Group, Parameter, Token

from lachesis.errors import InputError

INPUT = Group("Input", sort_key=1)
HARDWARE = Group("Model and hardware", sort_key=2)
LOAD = Group("Policies and load", sort_key=3)
MEASUREMENT = Group("Measurement", sort_key=4)
OUTPUT = Group("Output", sort_key=5)


def whole_number(kind: object, words: Sequence[Token]) -> int:
    """What stands after an option that takes a whole number; ``1.5`` would else be rounded.

    Raises:
        InputError: it is none.
    """
    word = words[0]
    try:
        return int(word.value)
    except ValueError as fault:
        raise InputError("must be a whole number", field=word.keyword, value=word.value) from fault


AnyTrace = Annotated[
    str, Parameter(group=INPUT, help="NAME.trace, files and folders of logs, or corpora.")
]
ClockSeed = Annotated[
    int,
    Parameter(
        converter=whole_number,
        metavar="N",
        group=MEASUREMENT,
        help="Seed of the delays that the trace leaves open, and of the intervals.",
    ),
]
Latency = Annotated[
    str,
    Parameter(
        metavar="NAME",
        group=MEASUREMENT,
        help="Latency preset of the reference clock, or a TOML file of one.",
    ),
]
Format = Annotated[
    str | None,
    Parameter(
        "--format",
        metavar="NAME",
        group=INPUT,
        help="Read every file in this format; recognised if left out.",
    ),
]
Map = Annotated[
    list[str] | None,
    Parameter(
        "--map",
        metavar="OURS=THEIRS",
        group=INPUT,
        negative="",
        help="A table's column under another name, such as session=trace_id.",
    ),
]
Json = Annotated[
    str | None,
    Parameter(
        "--json",
        metavar="FILE",
        group=OUTPUT,
        allow_leading_hyphen=True,
        help="Write JSON to a file; - for standard output (all else then goes to standard error).",
    ),
]
Quiet = Annotated[
    bool,
    Parameter(
        "--quiet", show_default=False, group=OUTPUT, negative="", help="No tables and no progress."
    ),
]
Debug = Annotated[
    bool,
    Parameter(
        "--debug", show_default=False, group=OUTPUT, negative="", help="Show tracebacks of errors."
    ),
]

Set = Annotated[
    list[str] | None,
    Parameter(
        "--set",
        metavar="KEY=VALUE",
        group=HARDWARE,
        negative="",
        help="Change one preset value, such as flash.pe_cycles=30000.",
    ),
]
Policies = Annotated[
    list[str] | None,
    Parameter(
        "--policy",
        metavar="NAME",
        group=LOAD,
        negative="",
        help="Placement policy; repeatable. [default: hbm-first and lachesis-deterministic]",
    ),
]
Slo = Annotated[
    str | None,
    Parameter(
        "--slo",
        metavar="NAME",
        group=LOAD,
        help="SLO preset: tight or loose. [default: tight]",
    ),
]
Seed = Annotated[
    int,
    Parameter(
        "--seed",
        converter=whole_number,
        metavar="N",
        group=MEASUREMENT,
        help="Seed of all random draws.",
    ),
]
Precision = Annotated[
    str,
    Parameter(
        "--precision",
        metavar="SHARE",
        group=MEASUREMENT,
        help="Half-width of the 95 % interval to reach.",
    ),
]
Turnovers = Annotated[
    float,
    Parameter(
        "--turnovers",
        metavar="N",
        group=MEASUREMENT,
        help="End after so many times the load in ended sessions.",
    ),
]
Horizon = Annotated[
    str,
    Parameter(
        "--horizon", metavar="TIME", group=MEASUREMENT, help="End after so much simulated time."
    ),
]

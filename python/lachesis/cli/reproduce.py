"""``lachesis reproduce``: the paper's figures against ours."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from lachesis.cli.options import INPUT, MEASUREMENT, OUTPUT, Debug, Quiet, whole_number


def reproduce(
    *,
    figure: Annotated[
        list[str] | None,
        Parameter(
            "--figure",
            metavar="N,N",
            group=INPUT,
            negative="",
            help="Numbers of figures: 4, 5, 6, 7, 9, 10, 11, 12. [default: all figures and tables]",
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        Parameter("--table", metavar="N", group=INPUT, negative="", help="Numbers of tables: 3."),
    ] = None,
    seed: Annotated[
        int,
        Parameter(
            converter=whole_number,
            metavar="N",
            group=MEASUREMENT,
            help="Seed of the reference clock's drawn delays; the replays take the next number.",
        ),
    ] = 0,
    quick: Annotated[
        bool,
        Parameter(
            group=MEASUREMENT,
            negative="",
            show_default=False,
            help="The same table from shorter measurements, in seconds.",
        ),
    ] = False,
    jobs: Annotated[
        int | None,
        Parameter(
            converter=whole_number,
            metavar="N",
            group=MEASUREMENT,
            show_default=False,
            help="Threads of this process; changes no result. [default: cores]",
        ),
    ] = None,
    output: Annotated[
        str | None,
        Parameter(
            ("--output", "-o"),
            metavar="DIR",
            group=OUTPUT,
            help="Write the comparison, all runs, and the figures into a folder.",
        ),
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compare the paper's published figures with ours, row by row."""
    from lachesis.cli.reproduce_job import execute_reproduce

    execute_reproduce(
        figures=figure or [], tables=table or [], seed=seed, quick=quick, jobs=jobs, output=output,
        quiet=quiet,
    )  # fmt: skip

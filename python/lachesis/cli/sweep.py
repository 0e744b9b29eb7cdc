"""``lachesis sweep``: many runs from one specification, into a directory of results."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Group, Parameter

from lachesis.cli.options import INPUT, OUTPUT, Debug, Quiet, whole_number

WORK = Group("Where it runs", sort_key=6)


def sweep(
    specification: Annotated[
        str,
        Parameter(
            metavar="SPEC.toml",
            group=INPUT,
            help="What to run: [grid] and [[run]] tables (docs/sweeps.md).",
        ),
    ],
    /,
    *,
    output: Annotated[
        str,
        Parameter(
            ("--output", "-o"),
            metavar="DIR",
            group=OUTPUT,
            help="Where results go; made if it is not there. Results that are there are kept, "
            "and only what is missing is run.",
        ),
    ],
    jobs: Annotated[
        int | None,
        Parameter(
            converter=whole_number,
            metavar="N",
            group=WORK,
            help="Threads of this process; changes no result. [default: cores]",
        ),
    ] = None,
    ray: Annotated[
        str | None,
        Parameter(
            metavar="ADDRESS",
            group=WORK,
            help="Run on a Ray cluster: its address, auto, or local for one of this machine.",
        ),
    ] = None,
    restart: Annotated[
        bool,
        Parameter(
            group=OUTPUT,
            negative="",
            show_default=False,
            help="Throw away the results that are there.",
        ),
    ] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Run every combination of a specification; stop whenever you like, and go on later."""
    from lachesis.cli.sweep_job import execute_sweep

    return execute_sweep(specification, output, jobs=jobs, ray=ray, restart=restart, quiet=quiet)

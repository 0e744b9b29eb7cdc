"""``lachesis report``: a results directory as one page that needs no network."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from lachesis.cli.options import INPUT, OUTPUT, Debug, Quiet


def report(
    results: Annotated[
        str,
        Parameter(
            metavar="DIR",
            group=INPUT,
            help="What sweep -o or reproduce -o wrote, or a file of run --json.",
        ),
    ],
    /,
    *,
    output: Annotated[
        str,
        Parameter(
            ("--output", "-o"),
            metavar="FILE",
            group=OUTPUT,
            help="The page to write: a name in .html.",
        ),
    ],
    figures: Annotated[
        str | None,
        Parameter(
            "--figures",
            metavar="DIR",
            group=OUTPUT,
            help="Draw every figure into a folder too, as PNG and as SVG.",
        ),
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a page about runs: the answer in words, plots, a table and the configuration."""
    from lachesis.cli.report_job import execute_report

    execute_report(results, output=output, figures=figures, quiet=quiet)

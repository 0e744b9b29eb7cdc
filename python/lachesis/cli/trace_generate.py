"""``lachesis trace generate``: a corpus from its specification, with another seed or size."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from lachesis.cli.options import INPUT, OUTPUT, Debug, Json, Quiet, whole_number


def generate_trace(
    corpus: Annotated[str, Parameter(group=INPUT, help="Name of a workload or a mix.")],
    /,
    *,
    output: Annotated[
        str,
        Parameter(
            ("--output", "-o"), metavar="NAME.trace", group=OUTPUT, help="The trace to write."
        ),
    ],
    seed: Annotated[
        int | None,
        Parameter(
            converter=whole_number,
            group=INPUT,
            metavar="N",
            help="Another seed than the specification's.",
        ),
    ] = None,
    scale: Annotated[
        float, Parameter(group=INPUT, metavar="X", help="Multiplies sessions, requests and tokens.")
    ] = 1.0,
    json: Json = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Generate a built-in corpus anew; the same seed gives the same trace."""
    from lachesis.cli.trace_job import generate_corpus

    generate_corpus(corpus, output=output, seed=seed, scale=scale, json=json, quiet=quiet)

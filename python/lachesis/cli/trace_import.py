"""``lachesis trace import``: logs in, a trace on disk out."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from lachesis.cli.options import INPUT, OUTPUT, Debug, Format, Json, Map, Quiet


def import_trace(
    *sources: Annotated[
        str, Parameter(group=INPUT, help="Files and folders; .gz and .zst too. Read together.")
    ],
    output: Annotated[
        str,
        Parameter(
            ("--output", "-o"), metavar="NAME.trace", group=OUTPUT, help="The trace to write."
        ),
    ],
    format: Format = None,
    map: Map = None,
    strict: Annotated[
        bool,
        Parameter(
            group=INPUT,
            negative="",
            show_default=False,
            help="Refuse logs that need a repair: counts recounted or inferred, values "
            "filled in, rows dropped or adjusted.",
        ),
    ] = False,
    tokenizer: Annotated[
        str | None,
        Parameter(
            metavar="FILE",
            group=INPUT,
            help="Count text without counts with this tokenizer: a tokenizers JSON or a tiktoken "
            "file. Estimated by characters if left out.",
        ),
    ] = None,
    redact: Annotated[
        bool,
        Parameter(
            group=OUTPUT,
            negative="",
            show_default=False,
            help="Keep counts and lengths; drop all text and hash all names.",
        ),
    ] = False,
    json: Json = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Read agent logs into one trace, and say what was found, filled in and left out."""
    from lachesis.cli.trace_job import import_sources

    import_sources(
        sources, output=output, format=format, map=map or [], tokenizer=tokenizer,
        redacted=redact, strict=strict, json=json, quiet=quiet,
    )  # fmt: skip

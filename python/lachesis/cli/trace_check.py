"""``lachesis trace validate``: does a trace keep every rule?"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from lachesis.cli.options import INPUT, Debug, Format, Json, Map, Quiet


def validate_trace(
    *traces: Annotated[
        str, Parameter(group=INPUT, help="NAME.trace, files and folders of logs, or corpora.")
    ],
    format: Format = None,
    map: Map = None,
    json: Json = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Check every rule of a trace; the first that is broken is named with its place."""
    from lachesis.cli.trace_job import check_traces

    check_traces(traces, format=format, map=map or [], json=json, quiet=quiet)

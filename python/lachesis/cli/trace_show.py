"""``lachesis trace show``: a session as people read it, or the list of sessions."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from lachesis.cli.options import INPUT, OUTPUT, Debug, Format, Json, Map, Quiet


def show_trace(
    trace: Annotated[
        str, Parameter(group=INPUT, help="NAME.trace, a file or folder of logs, or a corpus.")
    ],
    session: Annotated[
        str | None,
        Parameter(group=INPUT, help="A session's name, or how it begins; without it, a list."),
    ] = None,
    /,
    *,
    format: Format = None,
    map: Map = None,
    all: Annotated[
        bool,
        Parameter(
            "--all", group=OUTPUT, negative="", show_default=False, help="List every session."
        ),
    ] = False,
    json: Json = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show turns, agents and segments of a session, and where context was thrown away and why."""
    from lachesis.cli.trace_show_job import execute_show

    execute_show(trace, session, format=format, map=map or [], all=all, json=json, quiet=quiet)

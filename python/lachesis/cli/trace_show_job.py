"""Carries out ``lachesis trace show``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lachesis import __version__
from lachesis.characterise.outliner import find_session, outline
from lachesis.characterise.session_list import session_list
from lachesis.cli.json_output import check_json, table_console, write_json
from lachesis.cli.reading import read_traces
from lachesis.errors import InputError
from lachesis.report.session_outline import print_outline, print_sessions
from lachesis.results import to_json
from lachesis.traces import Trace

#: Sessions that are listed unless all are asked for.
LISTED = 20


def execute_show(
    name: str,
    session: str | None,
    *,
    format: str | None,
    map: Sequence[str],
    all: bool,
    json: str | None,
    quiet: bool,
) -> None:
    """Read and show one session, or list them.

    Raises:
        InputError: a trace that cannot be read, or a session that is not one.
    """
    check_json(json, [name])
    if all and session is not None:
        raise InputError("lists every session, so name none", field="--all")
    trace = read_traces([name], format, map, quiet=quiet)
    if session is None:
        found = session_list(trace)
        # The document holds every session, however many the table shows.
        listed = [each.to_json() for each in found]
        write_json(json, to_json({**_head(trace), "sessions": listed}))
        if not quiet:
            shown = found if all else found[:LISTED]
            print_sessions(table_console(json), shown, len(found))
        return
    drawn = outline(trace, find_session(trace, session))
    write_json(json, to_json({**_head(trace), "session": drawn.to_json()}))
    if not quiet:
        print_outline(table_console(json), drawn)


def _head(trace: Trace) -> dict[str, Any]:
    return {
        "schema": 1,
        "version": __version__,
        "trace_source": trace.source,
        "trace_sha256": trace.sha256,
    }

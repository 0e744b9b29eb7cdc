"""``lachesis trace filter`` and ``merge``: part of a trace, or several as one."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Group, Parameter

from lachesis.cli.options import INPUT, OUTPUT, Debug, Format, Json, Map, Quiet, whole_number

CONDITIONS = Group("Conditions, all of which must hold", sort_key=2)

Output = Annotated[
    str,
    Parameter(("--output", "-o"), metavar="NAME.trace", group=OUTPUT, help="The trace to write."),
]
# Spelled out, so that --help needs nothing of the traces.
SegmentClassName = Literal[
    "prompt", "reasoning-laden", "reasoning-stripped", "lead", "worker", "reviewer", "summary"
]
BoundaryName = Literal[
    "turn_end", "subagent_return", "session_end", "compaction", "request_end", "reset"
]


def filter_trace(
    *traces: Annotated[
        str, Parameter(group=INPUT, help="NAME.trace, files and folders of logs, or corpora.")
    ],
    output: Output,
    format: Format = None,
    map: Map = None,
    workload: Annotated[
        list[str] | None,
        Parameter(
            "--workload",
            metavar="GLOB",
            group=CONDITIONS,
            negative="",
            help="Of a workload with such a name, such as 'tau2-*'; repeatable: any of them.",
        ),
    ] = None,
    session: Annotated[
        list[str] | None,
        Parameter(
            "--session",
            metavar="GLOB",
            group=CONDITIONS,
            negative="",
            help="With such a name, such as '258c*'; repeatable: any of them.",
        ),
    ] = None,
    min_requests: Annotated[
        int | None,
        Parameter(
            converter=whole_number,
            metavar="N",
            group=CONDITIONS,
            help="With at least so many requests.",
        ),
    ] = None,
    max_requests: Annotated[
        int | None,
        Parameter(
            converter=whole_number,
            metavar="N",
            group=CONDITIONS,
            help="With at most so many requests.",
        ),
    ] = None,
    min_turns: Annotated[
        int | None,
        Parameter(
            converter=whole_number,
            metavar="N",
            group=CONDITIONS,
            help="With at least so many turns.",
        ),
    ] = None,
    min_agents: Annotated[
        int | None,
        Parameter(
            converter=whole_number,
            metavar="N",
            group=CONDITIONS,
            help="With at least so many agents, the lead included.",
        ),
    ] = None,
    has_class: Annotated[
        list[SegmentClassName] | None,
        Parameter(
            "--has-class",
            metavar="CLASS",
            group=CONDITIONS,
            negative="",
            show_choices=False,
            help="With a segment of this class, such as worker; repeatable: of each of them.",
        ),
    ] = None,
    has_boundary: Annotated[
        list[BoundaryName] | None,
        Parameter(
            "--has-boundary",
            metavar="KIND",
            group=CONDITIONS,
            negative="",
            show_choices=False,
            help="With a segment that this ends, such as compaction; repeatable: with each.",
        ),
    ] = None,
    complete: Annotated[
        bool,
        Parameter(
            group=CONDITIONS,
            negative="",
            show_default=False,
            help="That neither start midway nor just stop.",
        ),
    ] = False,
    json: Json = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Keep the sessions that meet every condition; write them as a trace."""
    from lachesis.characterise.selection import Conditions
    from lachesis.cli.trace_edit_job import filter_sessions

    filter_sessions(
        traces,
        Conditions(
            workloads=tuple(workload or ()),
            sessions=tuple(session or ()),
            requests_min=min_requests,
            requests_max=max_requests,
            turns_min=min_turns,
            agents_min=min_agents,
            classes=tuple(has_class or ()),
            boundaries=tuple(has_boundary or ()),
            complete=complete,
        ),
        output=output, format=format, map=map or [], json=json, quiet=quiet,
    )  # fmt: skip


def merge_traces(
    *traces: Annotated[
        str, Parameter(group=INPUT, help="NAME.trace, files and folders of logs, or corpora.")
    ],
    output: Output,
    format: Format = None,
    map: Map = None,
    json: Json = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write several traces as one; a session name that comes twice gets a suffix."""
    from lachesis.cli.trace_edit_job import merge

    merge(traces, output=output, format=format, map=map or [], json=json, quiet=quiet)

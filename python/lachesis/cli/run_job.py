"""Carries out ``lachesis run``: checks, reads, replays, writes, prints."""

from __future__ import annotations

import os
from dataclasses import replace

from lachesis.cli.json_output import check_json, table_console, write_json
from lachesis.cli.reading import read_traces
from lachesis.cli.run_progress import run_progress
from lachesis.errors import InputError
from lachesis.policy import choose_policy
from lachesis.quantities import parse_seconds
from lachesis.report.run_plot import plot_format, plot_run
from lachesis.report.run_table import print_run
from lachesis.results import check_output, replaced, run_document, to_json
from lachesis.results.timeline import check_timeline, write_timeline
from lachesis.simulation import DEFAULT_POLICIES, Load, RunOptions, compare
from lachesis.traces.opening import is_path


def execute_run(
    options: RunOptions,
    *,
    threads: int | None,
    json: str | None,
    plot: str | None,
    timeline: str | None,
    timeline_interval: str | None,
    quiet: bool,
) -> None:
    """Run and report; whatever can be refused is refused before the traces are read.

    Raises:
        InputError: anything in the arguments, the presets or the traces that breaks a rule.
    """
    check_json(json, options.traces, plot=plot, timeline=timeline)
    if plot is not None:
        plot_format(plot)
        check_output(plot)
    if timeline is not None:
        check_timeline(timeline)
    elif timeline_interval is not None:
        raise InputError(
            "has no effect without --timeline", field="--timeline-interval", value=timeline_interval
        )
    if not options.traces:
        raise InputError("name at least one trace: a file, a folder or a corpus", field="TRACE")
    policies = options.policies or DEFAULT_POLICIES
    for name in policies:
        choose_policy(name)
    plan, load = options.plan(), Load.parse(options.load)
    if timeline is not None:
        interval_s = parse_seconds(timeline_interval or "10s", "--timeline-interval")
        plan = replace(plan, timeline_interval_s=interval_s)
    if threads is None:
        threads = min(len(os.sched_getaffinity(0)), len(policies))

    trace = read_traces(options.traces, options.format, options.map, quiet=quiet)
    with run_progress(quiet=quiet) as watcher:
        comparison = compare(trace, plan, policies, load, threads=threads, watcher=watcher)
        corpora = [name for name in dict.fromkeys(options.traces) if not is_path(name)]
        document = run_document(comparison, command=options.command(), corpora=corpora)

    write_json(json, to_json(document))
    if plot is not None:
        with replaced(plot) as scratch:
            plot_run(document, scratch)
    if timeline is not None:
        write_timeline(comparison, timeline)
    if not quiet:
        print_run(table_console(json), document)

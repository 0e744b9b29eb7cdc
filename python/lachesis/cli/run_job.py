"""Carries out ``lachesis run``: checks, reads, replays, writes, prints."""

from __future__ import annotations

import os
from dataclasses import replace

from lachesis.cli.json_output import check_json, table_console, write_json
from lachesis.cli.reading import read_traces
from lachesis.cli.run_progress import run_progress
from lachesis.cli.waiting import waiting
from lachesis.errors import InputError
from lachesis.policy import choose_policy
from lachesis.quantities import parse_seconds
from lachesis.report.run_plot import plot_format, plot_run
from lachesis.report.run_table import print_run
from lachesis.results import check_output, replaced, run_document, to_json
from lachesis.results.timeline import check_timeline, write_timeline
from lachesis.results.trace_events import check_trace_events, write_trace_events
from lachesis.simulation import DEFAULT_POLICIES, Load, LoadedTrace, RunOptions, Window, compare
from lachesis.traces.opening import is_path


def execute_run(
    options: RunOptions,
    *,
    threads: int | None,
    json: str | None,
    plot: str | None,
    timeline: str | None,
    timeline_interval: str | None,
    trace_events: str | None,
    trace_events_window: str | None,
    quiet: bool,
) -> None:
    """Run and report; whatever can be refused is refused before the traces are read.

    Raises:
        InputError: anything in the arguments, the presets or the traces that breaks a rule.
    """
    outputs = {"plot": plot, "timeline": timeline, "trace-events": trace_events}
    check_json(json, options.traces, **outputs)
    if plot is not None:
        plot_format(plot)
        check_output(plot)
    if timeline is not None:
        check_timeline(timeline)
    elif timeline_interval is not None:
        raise InputError(
            "has no effect without --timeline", field="--timeline-interval", value=timeline_interval
        )
    window = parse_window(trace_events_window)
    if trace_events is not None:
        check_trace_events(trace_events)
    elif trace_events_window is not None:
        raise InputError(
            "has no effect without --trace-events",
            field="--trace-events-window",
            value=trace_events_window,
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

    trace = LoadedTrace(read_traces(options.traces, options.format, options.map, quiet=quiet))
    with run_progress(quiet=quiet) as watcher:
        comparison = compare(trace, plan, policies, load, threads=threads, watcher=watcher)
        corpora = [name for name in dict.fromkeys(options.traces) if not is_path(name)]
        document = run_document(comparison, command=options.command(), corpora=corpora)

    if trace_events is not None:
        with waiting(f"writing {trace_events}", quiet=quiet):
            write_trace_events(comparison, window, trace_events, loaded=trace)
    write_json(json, to_json(document))
    if plot is not None:
        with replaced(plot) as scratch:
            plot_run(document, scratch)
    if timeline is not None:
        write_timeline(comparison, timeline)
    if not quiet:
        print_run(table_console(json), document)


def parse_window(text: str | None) -> Window:
    """The window that ``START:LENGTH`` names.

    Raises:
        InputError: it is no such pair of times.

    Example:
        >>> parse_window("10min:30s")
        Window(start_s=600.0, length_s=30.0)
    """
    if text is None:
        return Window()
    option = "--trace-events-window"
    start, colon, length = text.partition(":")
    if not colon:
        raise InputError("must be START:LENGTH, such as 10min:30s", field=option, value=text)
    return Window(parse_seconds(start, option, zero=True), parse_seconds(length, option))

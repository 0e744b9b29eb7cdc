"""A window of a run in Chrome's trace event format, which Perfetto and chrome://tracing open.

One process a policy and GPU. A request keeps one lane (a thread) through its phases: prefill,
waiting for admission, decode. Counters change where their value does. Times are microseconds of
simulated time, exact to a picosecond.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lachesis.errors import InputError
from lachesis.results.files import check_output, replaced
from lachesis.simulation import Comparison, LoadedTrace, Window, WindowEvents, window_events
from lachesis.simulation.journal import Columns
from lachesis.traces.schema import SegmentClass

PHASES = ("prefill", "waiting", "decode")
INSTANTS = ("boundary", "preemption", "blocks lost", "session start", "session end")
_CLASSES = tuple(str(name) for name in SegmentClass)
#: Processes of the first policy are numbered from 1: 0 is the idle process to some viewers.
_FIRST_PROCESS = 1
Event = dict[str, Any]


class Microseconds(str):
    """A time as it is written: a number with six decimals, exact where a float is not."""

    __slots__ = ()

    @classmethod
    def of(cls, picoseconds: int) -> Microseconds:
        """From picoseconds.

        Example:
            >>> Microseconds.of(1_234_567_890_123)
            '1234567.890123'
        """
        return cls(f"{picoseconds // 10**6}.{picoseconds % 10**6:06d}")


def check_trace_events(path: str) -> None:
    """Refuse a file that trace events cannot be written to.

    Raises:
        InputError: the name does not end in ``.json``, or the place cannot be written.
    """
    if Path(path).suffix != ".json":
        raise InputError("trace events are a .json file", field="--trace-events", value=path)
    check_output(path)


def write_trace_events(
    comparison: Comparison, window: Window, path: str, *, loaded: LoadedTrace | None = None
) -> list[WindowEvents]:
    """Write the window of every run of a comparison into one file, whole or not at all.

    Args:
        comparison: the runs.
        window: which part of each.
        path: the file.
        loaded: the comparison's trace with what was made of it, where the caller has that already;
            else its workload and scores are made once for all runs.

    Raises:
        InputError: whatever `lachesis.simulation.window_events` refuses.
    """
    gpus = comparison.plan.gpus
    names = comparison.trace.sessions["session"].to_pylist()
    loaded = LoadedTrace(comparison.trace) if loaded is None else loaded
    told = [
        window_events(comparison, outcome, window, loaded=loaded) for outcome in comparison.replays
    ]
    with replaced(path) as scratch, scratch.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit":"ms","traceEvents":[\n')
        first = _FIRST_PROCESS
        separator = ""
        for events in told:
            for event in trace_events(events, names, gpus=gpus, first_process=first):
                file.write(separator + _as_json(event))
                separator = ",\n"
            first += gpus + 1
        file.write("\n]}\n")
    return told


def trace_events(
    events: WindowEvents, sessions: list[str], *, gpus: int, first_process: int = _FIRST_PROCESS
) -> Iterator[Event]:
    """The events of one run; processes `first_process` (the node) and one a GPU after it.

    Args:
        events: the window.
        sessions: names of the workload's sessions.
        gpus: GPUs of the node.
        first_process: number of the first process.
    """
    for number in range(gpus + 1):
        place = "node" if number == 0 else f"GPU {number - 1}"
        process = first_process + number
        yield _metadata("process_name", process, name=f"{events.policy}: {place}")
        yield _metadata("process_sort_index", process, sort_index=process)
    lanes = _lanes(events.slices)
    for gpu, lane in sorted(set(lanes.values())):
        yield _metadata("thread_name", first_process + 1 + gpu, lane, name=f"requests {lane:03d}")
    yield from _slices(events.slices, lanes, sessions, first_process)
    yield from _counters(events.steps, first_process)
    yield from _instants(events.instants, first_process)


def _metadata(what: str, process: int, thread: int = 0, **arguments: object) -> Event:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": arguments}


def _rows(columns: Columns, *names: str) -> Iterable[tuple[Any, ...]]:
    return zip(*(columns[name].tolist() for name in names), strict=True) if columns else ()


def _lanes(slices: Columns) -> dict[tuple[int, int], tuple[int, int]]:
    """GPU and lane of each request, by draw and number: the lowest that is free when it begins."""
    spans: dict[tuple[int, int], list[int]] = {}
    for gpu, draw, request, begin, end in _rows(
        slices, "gpu", "draw", "request", "begin_ps", "end_ps"
    ):
        span = spans.setdefault((draw, request), [begin, end, gpu])
        span[0], span[1] = min(span[0], begin), max(span[1], end)
    free: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    busy: dict[int, list[tuple[int, int]]] = {}
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for who, (begin, end, gpu) in sorted(spans.items(), key=lambda item: (item[1], item[0])):
        vacant, ends = free.setdefault(gpu, []), busy.setdefault(gpu, [])
        while ends and ends[0][0] <= begin:
            heapq.heappush(vacant, heapq.heappop(ends)[1])
        if vacant:
            lane = heapq.heappop(vacant)
        else:
            used[gpu] = lane = used.get(gpu, 0) + 1
        heapq.heappush(ends, (end, lane))
        found[who] = (gpu, lane)
    return found


def _slices(
    slices: Columns,
    lanes: dict[tuple[int, int], tuple[int, int]],
    sessions: list[str],
    first_process: int,
) -> Iterator[Event]:
    names = ("draw", "request", "phase", "begin_ps", "end_ps", "session", "ready_ps", "is_cut")
    for draw, request, phase, begin, end, session, ready, is_cut in _rows(slices, *names):
        gpu, lane = lanes[draw, request]
        arguments = {
            "session": sessions[session],
            "draw": draw,
            "request": request,
            "ready_us": Microseconds.of(ready),
        }
        if is_cut:
            arguments["goes_on_after_the_window"] = True
        yield {
            "ph": "X",
            "name": PHASES[phase],
            "cat": "request",
            "pid": first_process + 1 + gpu,
            "tid": lane,
            "ts": Microseconds.of(begin),
            "dur": Microseconds.of(end - begin),
            "args": arguments,
        }


def _counters(steps: Columns, first_process: int) -> Iterator[Event]:
    """The node's step time and each GPU's counts, wherever one changes."""
    last: dict[tuple[int, str], dict[str, Any]] = {}
    names = ("gpu", "time_ps", "duration_ps", "running", "waiting", "hbm_blocks", "hbf_blocks")
    for gpu, time, duration, running, waiting, hbm, hbf in _rows(steps, *names):
        counted = [
            (first_process + 1 + gpu, "running requests", {"running": running}),
            (first_process + 1 + gpu, "waiting requests", {"waiting": waiting}),
            (first_process + 1 + gpu, "blocks in use", {"hbm": hbm, "hbf": hbf}),
        ]
        if gpu == 0:
            counted.append((first_process, "step time", {"us": Microseconds.of(duration)}))
        for process, name, values in counted:
            if last.get((process, name)) != values:
                last[process, name] = values
                yield {
                    "ph": "C",
                    "name": name,
                    "pid": process,
                    "tid": 0,
                    "ts": Microseconds.of(time),
                    "args": values,
                }


def _instants(instants: Columns, first_process: int) -> Iterator[Event]:
    names = ("what", "class", "time_ps", "gpu", "draw", "number")
    for what, kind, time, gpu, draw, number in _rows(instants, *names):
        name, of = INSTANTS[what], "request"
        if name == "boundary":
            name, of = f"boundary: {_CLASSES[kind]}", "segment"
        yield {
            "ph": "i",
            "s": "p",
            "name": name,
            "cat": INSTANTS[what],
            "pid": first_process + 1 + gpu,
            "tid": 0,
            "ts": Microseconds.of(time),
            "args": {"draw": draw, of: number},
        }


def _as_json(value: object) -> str:
    """JSON in which a `Microseconds` is a number."""
    if isinstance(value, Microseconds):
        return str(value)
    if isinstance(value, dict):
        inner = (f"{json.dumps(key)}:{_as_json(each)}" for key, each in value.items())
        return "{" + ",".join(inner) + "}"
    return json.dumps(value)

"""Trace events are what Perfetto needs, and their times are those that the engine keeps."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest

from lachesis import _engine
from lachesis.errors import InputError
from lachesis.policy import choose_policy
from lachesis.presets import Settings
from lachesis.results.trace_events import INSTANTS, PHASES, check_trace_events, write_trace_events
from lachesis.simulation import (
    Load,
    LoadedTrace,
    Plan,
    Stopping,
    Window,
    compare,
    loaded_trace,
    to_workload,
    window,
    window_events,
)
from lachesis.traces import open_trace

TRACE = open_trace("tau3-airline")
STOPPING = Stopping(turnovers=3.0, warm_up_turnovers=0.0, fixed=True)
PLAN = Plan(Settings.choose(memory="2/6"), stopping=STOPPING)
LOAD = Load.parse("64")
POLICIES = ("hbm-first", "lachesis-deterministic")
START_S, LENGTH_S = 400.0, 120.0


@pytest.fixture(scope="module")
def comparison():
    return compare(TRACE, PLAN, POLICIES, LOAD)


@pytest.fixture(scope="module")
def events(comparison, tmp_path_factory):
    path = tmp_path_factory.mktemp("events") / "window.json"
    write_trace_events(comparison, Window(START_S, LENGTH_S), str(path))
    return json.loads(path.read_text())["traceEvents"]


def kept_requests(policy: str) -> dict[tuple[int, int], tuple[int, int, int, int]]:
    """Ready, admission, first token and end of every request, in picoseconds."""
    workload = to_workload(TRACE)
    chosen = choose_policy(policy)
    config = PLAN.engine_config(workload, chosen, LOAD, PLAN.cost()) | {"keep_requests": True}
    told = _engine.replay(workload, config, chosen.engine_for_a_run(), STOPPING.engine(LOAD))
    return {(draw, number): tuple(times) for draw, number, *times in told["requests"]}


def processes(events) -> dict[int, str]:
    return {
        event["pid"]: event["args"]["name"]
        for event in events
        if event["ph"] == "M" and event["name"] == "process_name"
    }


def test_every_event_has_what_a_viewer_needs(events):
    names = processes(events)
    assert sorted(names.values()) == sorted(
        f"{policy}: {place}"
        for policy in POLICIES
        for place in ["node", *(f"GPU {gpu}" for gpu in range(8))]
    )
    lanes = {
        (event["pid"], event["tid"])
        for event in events
        if event["ph"] == "M" and event["name"] == "thread_name"
    }
    kinds = defaultdict(int)
    for event in events:
        kinds[event["ph"]] += 1
        assert event["pid"] in names
        assert isinstance(event["tid"], int)
        assert event["name"]
        if event["ph"] == "M":
            continue
        assert isinstance(event["ts"], int | float)
        assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] > 0
            assert event["name"] in PHASES
            assert (event["pid"], event["tid"]) in lanes
        elif event["ph"] == "C":
            assert event["args"]
            assert all(isinstance(value, int | float) for value in event["args"].values())
        else:
            assert event["ph"] == "i"
            assert event["s"] == "p"
            assert event["cat"] in INSTANTS
    assert set(kinds) == {"M", "X", "C", "i"}


def test_slices_of_a_lane_do_not_overlap(events):
    lanes = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            lanes[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in lanes.values():
        spans.sort()
        for (_, end), (begin, _) in pairwise(spans):
            assert begin >= end - 1e-3
    assert len(lanes) > 16


@pytest.mark.parametrize("policy", POLICIES)
def test_times_are_those_of_the_run(events, policy):
    """Every request that overlaps the window is there, with the times that the run keeps."""
    own = {pid for pid, name in processes(events).items() if name.startswith(f"{policy}: ")}
    told = defaultdict(list)
    for event in events:
        if event["ph"] == "X" and event["pid"] in own:
            arguments = event["args"]
            told[arguments["draw"], arguments["request"]].append(
                (event["name"], event["ts"], event["ts"] + event["dur"], arguments)
            )
    kept = kept_requests(policy)
    start_us, end_us = START_S * 1e6, (START_S + LENGTH_S) * 1e6
    compared = 0
    for who, (ready, admitted, _, end) in kept.items():
        ready_us, admitted_us, end_us_of = ready / 1e6, admitted / 1e6, end / 1e6
        overlaps = ready_us < end_us and end_us_of > start_us
        assert (who in told) == overlaps, who
        for name, begin, until, arguments in told.get(who, ()):
            is_cut = arguments.get("goes_on_after_the_window", False)
            assert until <= end_us + 1 if is_cut else until > start_us
            assert arguments["ready_us"] == pytest.approx(ready_us, abs=1e-3)
            if name == "decode":
                assert begin == pytest.approx(admitted_us, abs=1e-3)
                if not is_cut:
                    assert until == pytest.approx(end_us_of, abs=1e-3)
                    compared += 1
            elif not is_cut:
                assert ready_us - 1e-3 <= begin < until <= admitted_us + 1e-3
    assert compared > 30
    missing = set(told) - set(kept)
    assert all(
        event[3].get("goes_on_after_the_window") for who in missing for event in told[who][-1:]
    )


def test_workload_and_scores_are_made_once_for_all_windows(monkeypatch, tmp_path):
    made = Counter()

    def counted(name):
        make = getattr(loaded_trace, name)

        def counting(*arguments, **options):
            made[name] += 1
            return make(*arguments, **options)

        monkeypatch.setattr(loaded_trace, name, counting)

    compared = compare(TRACE, PLAN, ("hbf-only", "lachesis", "lachesis-oracle"), LOAD)
    for name in ("to_workload", "in_workload_order"):
        counted(name)
    path = tmp_path / "window.json"
    write_trace_events(compared, Window(START_S, 10.0), str(path))
    # Scores as predicted, and true ones.
    assert made == {"to_workload": 1, "in_workload_order": 2}
    told = path.read_bytes()
    made.clear()
    loaded = LoadedTrace(TRACE)
    write_trace_events(compare(loaded, PLAN, ("hbf-only", "lachesis", "lachesis-oracle"), LOAD),
                       Window(START_S, 10.0), str(path), loaded=loaded)  # fmt: skip
    assert made == {"to_workload": 1, "in_workload_order": 2}
    assert path.read_bytes() == told


def test_the_usual_window_starts_where_measuring_does(comparison):
    found = window_events(comparison, comparison.replays[0], Window())
    measured = comparison.replays[0].measured
    assert found.start_s == pytest.approx(
        measured["window_start_s"] or measured["whole"]["time_s"] / 2
    )
    assert found.end_s == pytest.approx(found.start_s + 60.0)


def test_a_window_past_the_end_is_refused(comparison):
    with pytest.raises(InputError, match="starts after the end of the run under hbm-first"):
        window_events(comparison, comparison.replays[0], Window(9e6, 1.0))


def test_a_window_with_too_much_in_it_is_refused(comparison, monkeypatch):
    monkeypatch.setattr(window, "RECORDS_MAX", 1_000)
    with pytest.raises(InputError, match="holds more than 1,000 records under hbm-first"):
        window_events(comparison, comparison.replays[0], Window(START_S, LENGTH_S))


def test_listening_changes_no_result(comparison):
    told = []
    plan = replace(PLAN, journal=window.Journal(told.append, window_s=(START_S, START_S + 60.0)))
    again = compare(TRACE, plan, POLICIES, LOAD)
    assert told
    for before, after in zip(comparison.replays, again.replays, strict=True):
        assert before.measured["whole"] == after.measured["whole"]


def test_a_name_that_is_no_json_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"a \.json file"):
        check_trace_events(str(tmp_path / "events.txt"))

"""What a reader of a result has to know beside its numbers, in one sentence each."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lachesis.simulation import Comparison, Replay


def notes_on(comparison: Comparison, replay: Replay) -> list[str]:
    """Facts that explain the numbers."""
    notes = []
    if repeats := _repeats(comparison, replay):
        notes.append(repeats)
    if comparison.asked_load.kind == "each":
        notes.append("the gain over hbm-first compares lifetimes at different loads")
    plan = comparison.plan
    if plan.gpus_stood_for > 1:
        were = "was" if plan.gpus == 1 else "were"
        notes.append(f"{plan.gpus} of the node's {plan.settings.node.gpus} GPUs {were} simulated")
    notes += _beside_serving(comparison)
    refreshed = comparison.plan.settings.flash.refresh_hours > 0.0
    if not replay.policy.writes_flash:
        notes.append("no device-years: generated KV never reaches flash")
    elif comparison.plan.settings.memory.hbf_stacks == 0:
        notes.append("no device-years: this memory has no flash")
    elif replay.measured["stuck"]:
        notes.append("no device-years: the run was stuck, and wrote next to nothing")
    elif replay.measured["hbf_tokens_per_s"][0] <= 0.0 and not refreshed:
        notes.append("no device-years: nothing was written to flash in the window")
    elif reason := _no_interval(replay):
        notes.append(f"no interval of device-years: {reason}")
    return notes


def warnings_on(comparison: Comparison, replay: Replay) -> list[str]:
    """Reasons to trust the numbers less, or to change the question."""
    found = [
        _load_of_none(comparison, replay),
        _unbounded_load(comparison, replay),
        _slo_missed(comparison, replay),
        _stuck(replay),
        _not_settled(comparison, replay),
        _small_corpus(comparison, replay),
        _pressed(replay),
    ]
    return [warning for warning in found if warning]


def _repeats(comparison: Comparison, replay: Replay) -> str:
    if replay.load.kind == "recorded":
        return ""
    return repeats_note(len(comparison.trace), [replay.measured["repeats"]])


def repeats_note(sessions: int, repeats: Sequence[float]) -> str:
    """How often each session of a trace was drawn, where that is more than once; else "".

    Example:
        >>> repeats_note(58, [11.8])
        '58 sessions repeat for ever in the replay: each was drawn about 12 times'
        >>> repeats_note(1, [1.4, 2.6]), repeats_note(58, [0.4])
        ('1 session repeats for ever in the replay: it was drawn about 1.4 to 3 times', '')
    """
    if max(repeats) <= 1.0:
        return ""
    ends = dict.fromkeys(_times(end) for end in (min(repeats), max(repeats)))
    what = "1 session repeats" if sessions == 1 else f"{sessions:,} sessions repeat"
    which = "it" if sessions == 1 else "each"
    return f"{what} for ever in the replay: {which} was drawn about {' to '.join(ends)} times"


def _times(repeats: float) -> str:
    return f"{repeats:.1f}" if repeats < 2.0 else f"{repeats:,.0f}"


def _small_corpus(comparison: Comparison, replay: Replay) -> str:
    sessions = len(comparison.trace)
    if replay.load.kind != "closed" or replay.load.sessions <= sessions:
        return ""
    return (
        f"small corpus: {sessions:,} {'session' if sessions == 1 else 'sessions'} for a load of "
        f"{replay.load.sessions:,}, so that copies of a session are live at the same time"
    )


def _load_of_none(comparison: Comparison, replay: Replay) -> str:
    search = comparison.search_of(replay.policy.name)
    if search is None or search.sessions > 0:
        return ""
    return (
        f"the SLO admits no load: one session alone misses it under {search.policy}; "
        "replayed at 1 session"
    )


def _unbounded_load(comparison: Comparison, replay: Replay) -> str:
    search = comparison.search_of(replay.policy.name)
    if search is None or search.bounded:
        return ""
    most = f"{comparison.search.most_requests:,.0f} requests"
    return (
        f"the SLO admits more than {search.sessions:,} sessions: the search ends where "
        f"one measurement takes {most}; name a --load"
    )


def _slo_missed(comparison: Comparison, replay: Replay) -> str:
    if replay.meets_slo:
        return ""
    measured, slo = replay.measured, comparison.plan.settings.slo
    window = measured["window"]
    if window["requests"] == 0:
        return "misses the SLO: no request ended in the window"
    told = []
    for name, limit_s in (("tpot", slo.tpot_p99_s), ("ttft", slo.ttft_p99_s)):
        over, timed = window[f"over_{name}"], window[f"timed_{name}"]
        if over * 100 > timed:
            told.append(
                f"{over / timed:.2%} of requests take longer than {name.upper()} "
                f"{seconds_text(limit_s)}"
            )
    search = comparison.search_of(replay.policy.name)
    searched = search is not None and search.policy == replay.policy.name and search.sessions > 0
    why = "; the search for the load measured a shorter window" if searched else ""
    return f"misses the SLO at this load: {' and '.join(told)} (1 % may){why}"


def _stuck(replay: Replay) -> str:
    if not replay.measured["stuck"]:
        return ""
    return (
        "stuck: memory is full of what live sessions hold, and they end over 32 times as slowly as "
        "at the SLO's pace; the run ended early: use a lower --load"
    )


def _not_settled(comparison: Comparison, replay: Replay) -> str:
    measured, stopping = replay.measured, comparison.plan.stopping
    if measured["settled"] or measured["stuck"]:
        return ""
    if replay.load.kind == "recorded":
        return "not settled: the recording is replayed once, and ends before rates have settled"
    whole = measured["whole"]
    if whole["time_s"] >= stopping.horizon_s:
        end = f"{seconds_text(stopping.horizon_s)} of simulated time"
    else:
        end = f"{stopping.turnovers:g} turnovers of the live sessions"
    if not replay.policy.frees_at_boundaries and whole["reclaimed_blocks"] == 0:
        return f"not settled: memory had not filled after {end}"
    return (
        f"not settled after {end}: write rates may still drift, and device-years are not known to "
        f"the ±{100 * stopping.precision:g} % asked for"
    )


def _pressed(replay: Replay) -> str:
    window = replay.measured["window"]
    losses, preempted = window["session_losses"], window["preemptions"]
    if not losses and not preempted:
        return ""
    return (
        f"memory ran out: {preempted:,} running requests were preempted and {losses:,} sessions "
        "lost their blocks; what they lost was written again"
    )


def _beside_serving(comparison: Comparison) -> list[str]:
    """What enters device-years beside the writes that are measured."""
    settings = comparison.plan.settings
    said = []
    if settings.node.duty_cycle < 1.0:
        said.append(
            f"device-years: the node serves {settings.node.duty_cycle:.3g} of the time, and writes "
            "nothing in the rest"
        )
    if (hours := settings.flash.refresh_hours) and settings.memory.hbf_stacks:
        said.append(f"device-years: what is live in flash is written anew every {hours:g} h")
    return said


def _no_interval(replay: Replay) -> str:
    mean, half_width = replay.measured["hbf_tokens_per_s"]
    if not math.isfinite(half_width):
        return "the measured window is too short"
    if half_width >= mean:
        return "the write rate varies so much between batches that it has no upper end"
    return ""


def seconds_text(seconds: float) -> str:
    """Seconds as people write them.

    Example:
        >>> seconds_text(0.06), seconds_text(2.0), seconds_text(7200.0), seconds_text(172800.0)
        ('60 ms', '2 s', '2 h', '2 days')
    """
    if seconds < 1.0:
        return f"{seconds * 1e3:g} ms"
    for size_s, unit in ((86_400.0, " days"), (3_600.0, " h")):
        if seconds >= 2 * size_s:
            return f"{seconds / size_s:.3g}{unit}"
    return f"{seconds:.4g} s"

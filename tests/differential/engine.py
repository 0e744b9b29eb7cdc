"""The Rust engine on the cases of the oracle: columns in, the oracle's kind of result out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lachesis import _engine

from .case import (
    BOUNDARIES,
    CLASSES,
    EDGE_KINDS,
    Config,
    MemoryTooSmallError,
    Result,
    Session,
    Workload,
)

NONE = -1


def seconds(time_ps: int | None) -> float:
    """Seconds that the engine rounds back to exactly these picoseconds; NaN: to be drawn."""
    if time_ps is None:
        return np.nan
    time_s = time_ps / 1e12
    assert round(time_s * 1e12) == time_ps
    return time_s


def offsets(rows: list[list[Any]]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)


def flat(rows: list[list[Any]], dtype: type) -> NDArray[Any]:
    return np.array([value for row in rows for value in row], dtype=dtype)


def prefix_numbers(sessions: list[Session]) -> dict[int | None, int]:
    """Prefix keys numbered from 0 in their own order, whatever that of sessions; no key is -1."""
    keys = {spec.prefix_key for session in sessions for spec in session.segments} - {None}
    return {None: NONE} | {key: number for number, key in enumerate(sorted(keys))}


def columns(workload: Workload) -> dict[str, NDArray[Any]]:
    sessions = workload.sessions
    requests = [request for session in sessions for request in session.requests]
    segments = [segment for session in sessions for segment in session.segments]
    prefixes = prefix_numbers(sessions)
    closed_after = [NONE if s.closed_after is None else s.closed_after for s in segments]
    return {
        "session_request_offsets": offsets([session.requests for session in sessions]),
        "session_segment_offsets": offsets([session.segments for session in sessions]),
        "session_start_s": np.array([seconds(session.start_ps) for session in sessions]),
        "edge_offsets": offsets([r.after for r in requests]),
        "edge_request": flat([[before for before, _, _ in r.after] for r in requests], np.int32),
        "edge_kind": flat(
            [[EDGE_KINDS.index(kind) for _, kind, _ in r.after] for r in requests], np.uint8
        ),
        "edge_delay_s": flat([[seconds(ps) for _, _, ps in r.after] for r in requests], np.float64),
        "use_offsets": offsets([r.uses for r in requests]),
        "use_segment": flat([[segment for segment, _ in r.uses] for r in requests], np.int32),
        "use_written": flat([[written for _, written in r.uses] for r in requests], np.int64),
        "output_segment": np.array([r.output_segment for r in requests], np.int32),
        "output_tokens": np.array([r.output_tokens for r in requests], np.int64),
        "tool_offsets": offsets([r.tools for r in requests]),
        "tool_class": flat([r.tools for r in requests], np.uint8),
        "segment_class": np.array([CLASSES.index(s.segment_class) for s in segments], np.uint8),
        "segment_prefix": np.array([prefixes[s.prefix_key] for s in segments], np.int32),
        "segment_closed_by": np.array([BOUNDARIES.index(s.closed_by) for s in segments], np.uint8),
        "segment_closed_after": np.array(closed_after, np.int32),
    }


def scores(workload: Workload) -> NDArray[np.float64]:
    specs = [spec for session in workload.sessions for spec in session.segments]
    return np.array([np.nan if spec.score is None else spec.score for spec in specs])


def run_config(workload: Workload, config: Config) -> dict[str, Any]:
    cost, drawing = config.cost, config.drawing
    load: dict[str, Any] = {"kind": "recorded", "sessions": 1, "ramp_s": 0.0, "sessions_per_s": 1.0}
    if config.arrivals[0] == "closed":
        _, sessions, ramp_ps = config.arrivals
        load |= {"kind": "closed", "sessions": sessions, "ramp_s": seconds(ramp_ps)}
    if config.arrivals[0] == "poisson":
        load |= {"kind": "poisson", "sessions_per_s": config.arrivals[1]}
    return {
        "gpus": config.gpus,
        "hbm_blocks": config.hbm_blocks,
        "hbf_blocks": config.hbf_blocks,
        "block_tokens": config.block_tokens,
        "slots": config.slots,
        "ttft_reference_s": seconds(config.ttft_ref_ps),
        "cost": _engine.StepCost(
            local_ps=cost.local_ps,
            shared_ps=cost.shared_ps,
            context_ps=cost.context_ps,
            window_ps=cost.window_ps,
            window=cost.window,
            window_kind=cost.window_kind,
            flush_ps=cost.flush_ps,
            overhead_ps=cost.overhead_ps,
        ),
        "load": load,
        "draws": config.draws,
        "scores": scores(workload) if config.policy.ranking else None,
        "seed": drawing.seed,
        "tool_mean_s": list(drawing.tool_mean_s),
        "tool_sigma": drawing.tool_sigma,
        "user_median_s": drawing.user_median_s,
        "user_sigma": drawing.user_sigma,
        "turn_end": config.turn_end,
        "landing": config.landing,
        "aged": False,
        "ttft_limit_s": 1.0,
        "tpot_limit_s": 1.0,
        "timeline_interval_s": None,
        "keep_requests": True,
        "check_blocks": True,
    }


def run_policy(config: Config) -> dict[str, Any]:
    """A policy by its own name, so that its own code places; any other as a map of classes."""
    targets = [config.policy.targets[name] for name in CLASSES]
    by_class = config.policy.name == "by-class"
    return {
        "name": config.policy.name,
        "targets": targets if by_class else None,
        "options": asdict(config.policy.ranking) if config.policy.ranking else None,
    }


DRAINED = {
    "kind": "drained",
    "precision": 0.01,
    "warm_up_turnovers": 0.0,
    "measured_turnovers": 1.0,
    "horizon_s": 1e6,
    "fail_fast": False,
}


def replay(
    workload: Workload,
    settings: dict[str, Any],
    config: Config,
    stop: dict[str, Any] = DRAINED,
) -> dict[str, Any]:
    loaded = _engine.Workload(**columns(workload))
    try:
        return _engine.replay(loaded, settings, run_policy(config), stop)
    except _engine.EngineError as error:
        if error.args[0] == "SessionTooLarge":
            raise MemoryTooSmallError(error.args[1]) from error
        raise


def simulate(workload: Workload, config: Config, *, gives_draws: bool = True) -> Result:
    """Run the engine on one case, its census of blocks taken at every instant.

    Unless `gives_draws` the engine finds the list of draws by itself.

    Raises `MemoryTooSmallError` where a request can never have its blocks.
    """
    settings = run_config(workload, config)
    outcome = replay(workload, settings if gives_draws else settings | {"draws": None}, config)
    whole = outcome["whole"]
    result = Result(
        end_ps=whole["time_ps"],
        materialised={name: list(pair) for name, pair in whole["materialised_tokens"].items()},
        rematerialised={name: list(pair) for name, pair in whole["rematerialised_tokens"].items()},
        fallbacks=whole["fallback_blocks"],
        preemptions=whole["preemptions"],
        session_losses=whole["session_losses"],
        reclaimed_blocks=whole["reclaimed_blocks"],
        steps=whole["steps"],
        free=[list(pair) for pair in outcome["free_blocks"]],
    )
    for draw, request, ready, admitted, first_token, end in outcome["requests"]:
        times = {"ready": ready, "admitted": admitted, "first_token": first_token, "end": end}
        session = workload.sessions[config.draws[draw]]
        if session.requests[request].output_tokens == 0:
            assert times.pop("first_token") == 0
        result.requests[draw, request] = times
    return result

"""Where a result comes from: version, command, trace, presets and what was changed in them."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec

from lachesis import __version__
from lachesis.errors import printable
from lachesis.presets import LatencyPreset, Preset, Settings
from lachesis.presets.base import value_at
from lachesis.presets.overrides import USER_SOURCE
from lachesis.simulation import Comparison, Load, LoadSearch, Plan, Replay, SearchPrecision
from lachesis.traces import Trace
from lachesis.traces.batches import TraceSummary

#: What is true of every built-in corpus so far; the figures stand in ``traces/README.md``.
CORPUS_STATEMENT = (
    "synthetic, generated from a specification with a pinned seed: sessions and requests are those "
    "of Table 3 of arXiv:2610.08378, tokens and lifetimes are fitted to its Table 3, Figures 4 to "
    "6 and section 3; the spawn signal is planted; token counts are generated, not tokenised; "
    "traces/README.md says figure by figure what is met and what is missed"
)
_CALIBRATED = "calibrated"
#: The parts of `lachesis.presets.Settings` that are presets, in their order.
PARTS = ("model", "hardware", "flash", "latency", "slo", "node")


def provenance(
    comparison: Comparison, *, command: Sequence[str], corpora: Sequence[str]
) -> dict[str, Any]:
    """The `provenance` of a run's document.

    Args:
        comparison: the replays and their searches.
        command: the arguments that decide the result, without what only decides where it goes.
        corpora: names of the built-in corpora among the inputs.
    """
    plan, trace = comparison.plan, comparison.trace
    return {
        "version": __version__,
        "command": printable(shlex.join(command)),
        "seed": plan.seed,
        "config_sha256": config_sha256(comparison),
        **_trace_origin(trace, corpora),
        "presets": preset_names(plan.settings),
        "options": options(comparison),
        "overrides": list(values_from(plan.settings, USER_SOURCE)),
        "calibrated": list(_calibrated(plan)),
        "policies": {
            replay.policy.name: {
                "summary": replay.policy.summary,
                "source": replay.policy.source,
                "chosen_for": dict(replay.policy.chosen_for),
            }
            for replay in comparison.replays
        },
        "searches": [search_object(search) for search in comparison.searches],
    }


def measured_provenance(
    trace: Trace,
    *,
    latency: LatencyPreset,
    seed: int,
    command: Sequence[str],
    corpora: Sequence[str],
) -> dict[str, Any]:
    """The `provenance` of what is measured of a trace on the reference clock, without a replay.

    Args:
        trace: what was measured.
        latency: the latencies of the reference clock.
        seed: of its draws.
        command: the arguments that decide the result.
        corpora: names of the built-in corpora among the inputs.
    """
    return {
        "version": __version__,
        "command": printable(shlex.join(command)),
        "seed": seed,
        **_trace_origin(trace, corpora),
        "presets": {"latency": latency.name},
    }


def _trace_origin(trace: Trace, corpora: Sequence[str]) -> dict[str, Any]:
    return {
        "trace_sha256": trace.sha256,
        "trace_source": trace.source,
        "trace_sessions": len(trace),
        "trace_requests": trace.requests.num_rows,
        "trace_tokenizer": trace.tokenizer,
        "trace_quality": trace.quality.to_json(),
        "corpora": dict.fromkeys(corpora, CORPUS_STATEMENT),
    }


def config_sha256(comparison: Comparison, replay: Replay | None = None) -> str:
    """A digest of every value that decides the result, the trace apart; of one policy if given.

    Sources and titles do not enter, so that a value counts the same wherever it was written.
    """
    replays = comparison.replays if replay is None else (replay,)
    decided = {
        **plan_values(comparison.plan, comparison.asked_load, comparison.search),
        "policies": [each.policy.engine() for each in replays],
    }
    return digest(decided)


def plan_values(plan: Plan, load: Load, search: SearchPrecision) -> dict[str, Any]:
    """Every value that decides a run, its trace and its policy apart."""
    return {
        "presets": _preset_values(plan.settings),
        "memory": str(plan.settings.memory),
        "options": _plan_options(plan, load, search),
    }


def digest(values: object) -> str:
    """SHA-256 of a value's canonical JSON, in hex."""
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256(canonical.encode()).hexdigest()


# Many runs share their presets.
@lru_cache(maxsize=64)
def _preset_values(settings: Settings) -> dict[str, dict[str, Any]]:
    return {part: _values(getattr(settings, part)) for part in PARTS}


def options(comparison: Comparison) -> dict[str, Any]:
    """What decides a run beside presets and policies."""
    return _plan_options(comparison.plan, comparison.asked_load, comparison.search)


def _plan_options(plan: Plan, load: Load, search: SearchPrecision) -> dict[str, Any]:
    return {
        "seed": plan.seed,
        "load": load.kind,
        "load_sessions": load.sessions if load.kind == "closed" else None,
        "load_sessions_per_s": load.sessions_per_s if load.kind == "poisson" else None,
        "load_longest_gap_s": load.longest_gap_s if math.isfinite(load.longest_gap_s) else None,
        "step_time_s": plan.step_time_s,
        "aged": plan.aged,
        "precision": plan.stopping.precision,
        "turnovers": plan.stopping.turnovers,
        "horizon_s": plan.stopping.horizon_s,
        "search": asdict(search) if load.is_searched else None,
    }


def preset_names(settings: Settings) -> dict[str, str]:
    """The preset that each part started from, and the memory split."""
    names = {part: getattr(settings, part).name for part in PARTS}
    return {**names, "memory": str(settings.memory)}


def values_from(settings: Settings, start: str) -> Iterator[dict[str, Any]]:
    """Values of the presets whose source begins with `start`: key, value and source."""
    for part in PARTS:
        preset: Preset = getattr(settings, part)
        values = _values(preset)
        for field, source in preset.sources:
            if source.startswith(start):
                yield {"key": f"{part}.{field}", "value": value_at(values, field), "source": source}


def trace_summary(trace: Trace | TraceSummary) -> dict[str, Any]:
    """What a trace holds: rows of each table, source, hash and quality."""
    summary = TraceSummary.of(trace) if isinstance(trace, Trace) else trace
    return {
        "trace_source": summary.source,
        "trace_sha256": summary.sha256,
        "trace_tokenizer": summary.tokenizer,
        "rows": summary.totals.rows,
        "quality": summary.quality.to_json(),
    }


def _calibrated(plan: Plan) -> Iterator[dict[str, Any]]:
    for found in values_from(plan.settings, _CALIBRATED):
        # A constant step leaves out whatever a step is priced from.
        if plan.step_time_s is None or not found["key"].startswith("hardware."):
            yield found


def search_object(search: LoadSearch) -> dict[str, Any]:
    """A search for a load: the policy, what was admitted, and every load tried."""
    return {
        "policy": search.policy,
        "admitted_sessions": search.sessions,
        "bounded": search.bounded,
        "tried": [{"sessions": sessions, "passes": passes} for sessions, passes in search.tried],
    }


def _values(preset: Preset) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(preset)
    return {key: value for key, value in values.items() if key not in ("sources", "title")}

"""One policy's replay as ``run --json`` gives it: tokens become bytes, rates and years."""

from __future__ import annotations

from typing import Any

from lachesis.policy import Policy
from lachesis.results.notes import notes_on, warnings_on
from lachesis.results.wear import flash_wear
from lachesis.simulation import Comparison, Load, Plan, Replay
from lachesis.traces.schema import SegmentClass

TIERS = ("hbm", "hbf")


def run_object(comparison: Comparison, replay: Replay) -> dict[str, Any]:
    """Everything about one replay; the keys are described in ``run.schema.json``.

    Bytes are those of the simulated GPUs over the measured window, without write amplification.
    """
    plan, measured = comparison.plan, replay.measured
    window, whole = measured["window"], measured["whole"]
    settings = plan.settings
    capacity, gpus = settings.kv_capacity(), plan.gpus
    measured_s: float = window["time_s"]
    written = written_bytes(replay, plan)
    by_tier = {tier: sum(written[name][tier] for name in written) for tier in TIERS}
    total_bytes = sum(by_tier.values())
    search = comparison.search_of(replay.policy.name)
    flash_rate = per_second(by_tier["hbf"], measured_s) / gpus
    wear = flash_wear(plan, replay, flash_rate)
    blocks = {"hbm": capacity.hbm_blocks * gpus, "hbf": capacity.hbf_blocks * gpus}
    occupancy = dict(zip(TIERS, window["blocks_in_use_mean"], strict=True))
    return {
        "policy": replay.policy.name,
        **what_was_asked(plan, replay.load),
        "admitted_sessions": None if search is None else search.sessions,
        "meets_slo": replay.meets_slo,
        "settled": measured["settled"],
        "aged_start": starts_aged(plan, replay.policy),
        "simulated_s": whole["time_s"],
        "measured_s": measured_s,
        "measured_from_s": measured["window_start_s"],
        "batches": measured["batches"],
        "turnovers": measured["turnovers"],
        "wall_s": replay.wall_s,
        "sessions": window["sessions"],
        "requests": window["requests"],
        "requests_simulated": whole["requests"],
        "session_repeats": measured["repeats"],
        "decode_steps": window["steps"],
        "tpot_p50_s": measured["tpot_p50_s"],
        "tpot_p90_s": measured["tpot_p90_s"],
        "tpot_p99_s": measured["tpot_p99_s"],
        "ttft_p50_s": measured["ttft_p50_s"],
        "ttft_p90_s": measured["ttft_p90_s"],
        "ttft_p99_s": measured["ttft_p99_s"],
        "output_tokens_per_s": per_second(window["output_tokens"], measured_s),
        "written_tokens_per_s": per_second(_written_tokens(window), measured_s),
        "hbm_write_bytes": by_tier["hbm"],
        "hbf_write_bytes": by_tier["hbf"],
        "hbm_write_share": by_tier["hbm"] / total_bytes if total_bytes else None,
        "hbm_capacity_share": capacity.hbm_share,
        "write_bytes_by_class": written,
        "rematerialized_bytes": _bytes_of(window["rematerialised_tokens"], plan),
        "demoted_bytes": _bytes_of(window.get("demoted_tokens", {}), plan),
        "preemptions": window["preemptions"],
        "session_losses": window["session_losses"],
        "fallback_bytes": window["fallback_blocks"] * capacity.block_bytes,
        "reclaimed_bytes": window["reclaimed_blocks"] * capacity.block_bytes,
        "hbm_occupancy_mean": _share(occupancy["hbm"], blocks["hbm"]),
        "hbf_occupancy_mean": _share(occupancy["hbf"], blocks["hbf"]),
        "landing_duty": measured["landing_duty"] / plan.longer_writes,
        "hbf_bytes_per_gpu": capacity.hbf_bytes,
        "hbf_write_bytes_per_s_per_gpu": flash_rate,
        "hbf_refresh_bytes_per_s_per_gpu": wear.refresh_bytes_per_s,
        **wear_settings(plan),
        "hbf_lifetime_years": wear.lifetime_years(),
        "hbf_lifetime_years_ci95": wear.interval(),
        "gain_over_hbm_first": None,
        "notes": notes_on(comparison, replay),
        "warnings": warnings_on(comparison, replay),
    }


def what_was_asked(plan: Plan, load: Load) -> dict[str, Any]:
    """Model, memory, SLO, seed and load of a run: what is known before it."""
    settings = plan.settings
    return {
        "model": settings.model.name,
        "memory": str(settings.memory),
        "slo": slo_name(plan),
        "slo_tpot_p99_s": settings.slo.tpot_p99_s,
        "slo_ttft_p99_s": settings.slo.ttft_p99_s,
        "seed": plan.seed,
        "load": load.kind,
        "load_sessions": load.sessions if load.kind == "closed" else None,
        "load_sessions_per_s": load.sessions_per_s if load.kind == "poisson" else None,
    }


def wear_settings(plan: Plan) -> dict[str, Any]:
    """What turns a rate of writes into device-years."""
    settings = plan.settings
    return {
        "duty_cycle": settings.node.duty_cycle,
        "refresh_hours": settings.flash.refresh_hours,
        "pe_cycles": settings.flash.pe_cycles,
        "write_amplification": settings.flash.write_amplification,
        "warranty_years": settings.flash.warranty_years,
    }


def written_bytes(replay: Replay, plan: Plan) -> dict[str, dict[str, int]]:
    """Bytes written in the window by class and tier, whether for the first time or again."""
    window = replay.measured["window"]
    tables = [window["materialised_tokens"], window["rematerialised_tokens"]]
    tables += [window["demoted_tokens"]] if "demoted_tokens" in window else []
    return {
        str(name): {
            tier: to_bytes(sum(table[name][column] for table in tables), plan)
            for column, tier in enumerate(TIERS)
        }
        for name in SegmentClass
    }


def to_bytes(tokens: int, plan: Plan) -> int:
    """Bytes that so many tokens of KV occupy and write; whole, as blocks of them are."""
    node = plan.settings.node
    return round(tokens * plan.settings.kv_capacity().block_bytes / node.block_tokens)


def slo_name(plan: Plan) -> str:
    """The preset's name, or ``custom`` where a limit was changed."""
    slo = plan.settings.slo
    changed = any(source.startswith("set by user") for _, source in slo.sources)
    return "custom" if changed else slo.name


def starts_aged(plan: Plan, policy: Policy) -> bool:
    """Whether the run began from a memory full of dead blocks: only what keeps them can."""
    return plan.aged and not policy.frees_at_boundaries


def per_second(amount: float, seconds: float) -> float:
    """A rate; 0 where no time passed."""
    return amount / seconds if seconds > 0.0 else 0.0


def _written_tokens(window: dict[str, Any]) -> int:
    tables = (window["materialised_tokens"], window["rematerialised_tokens"])
    return sum(sum(tiers) for table in tables for tiers in table.values())


def _bytes_of(table: dict[str, tuple[int, int]], plan: Plan) -> int:
    return to_bytes(sum(sum(tiers) for tiers in table.values()), plan)


def _share(part: float, whole: int) -> float | None:
    # A mean over time of a memory that is always full may round to just above it.
    return min(1.0, part / whole) if whole else None

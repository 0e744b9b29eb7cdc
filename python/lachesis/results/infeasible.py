"""Runs that cannot be: a row with what was asked and the reason, and no measurement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lachesis import __version__
from lachesis.policy import choose_policy
from lachesis.results.measures import wear_settings, what_was_asked
from lachesis.results.provenance import digest, plan_values
from lachesis.results.rows import INFEASIBLE, run_columns
from lachesis.simulation import Load, Plan, SearchPrecision


def infeasible_row(
    plan: Plan,
    load: Load,
    search: SearchPrecision,
    policy: str,
    *,
    reason: str,
    run_id: str,
    cell_id: str,
    trace: str,
    trace_sha256: str,
    overrides: Sequence[str],
) -> dict[str, Any]:
    """A row of `run_columns` with ``status`` ``infeasible``; whatever a replay would say is null.

    Args:
        plan: presets, seed, stopping.
        load: as asked for.
        search: how finely it would be searched for.
        policy: its name as asked for.
        reason: why it cannot be run.
        run_id: stable, of cell and policy.
        cell_id: stable, of everything but the policy.
        trace: the names of the traces, joined by ``+``.
        trace_sha256: of the trace.
        overrides: values that were set, each ``key=value``.

    Example:
        >>> from lachesis.presets import Settings
        >>> row = infeasible_row(
        ...     Plan(Settings.choose()), Load.parse("8"), SearchPrecision(), "hbm-only",
        ...     reason="too large", run_id="r", cell_id="c", trace="t", trace_sha256="0",
        ...     overrides=[],
        ... )
        >>> row["status"], row["reason"], row["load_sessions"], row["requests"]
        ('infeasible', 'too large', 8, None)
    """
    chosen = choose_policy(policy)
    asked = {
        "run": run_id,
        "cell": cell_id,
        "trace": trace,
        "policy": chosen.name,
        **what_was_asked(plan, load),
        # A load that would be searched for is one of closed sessions, of which none was found.
        "load": "closed" if load.is_searched else load.kind,
        **wear_settings(plan),
        "notes": [],
        "warnings": [],
        "status": INFEASIBLE,
        "reason": reason,
        "overrides": list(overrides),
        "config_sha256": digest({**plan_values(plan, load, search), "policies": [chosen.engine()]}),
        "trace_sha256": trace_sha256,
        "version": __version__,
    }
    return dict.fromkeys(run_columns().names) | asked

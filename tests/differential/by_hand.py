"""What the cases worked out by hand share: how they are replayed, how results are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .case import CLASSES, POLICIES, Config, Ranking, Result, Session, StepCost, Workload

FLAT = StepCost(local_ps=[0, 10, 16], shared_ps=[0, 0, 0, 0, 0])
Replay = Callable[..., Result]


def times(ready: int, admitted: int, first_token: int, end: int) -> dict[str, int]:
    return {"ready": ready, "admitted": admitted, "first_token": first_token, "end": end}


def tokens(**by_class: list[int]) -> dict[str, list[int]]:
    return {name: by_class.get(name.replace("-", "_"), [0, 0]) for name in CLASSES}


def replay_with(
    simulate: Replay,
    *sessions: Session,
    policy: str = "hbm-first",
    ranking: Ranking | None = None,
    **settings: Any,
) -> Result:
    """One GPU, blocks of 4 tokens, prefill of 100 ps, steps of 10, or 16 ps for two requests."""
    defaults: dict[str, Any] = {
        "gpus": 1,
        "hbm_blocks": 10,
        "hbf_blocks": 10,
        "slots": 2,
        "ttft_ref_ps": 100,
        "cost": FLAT,
        "draws": list(range(len(sessions))),
        "block_tokens": 4,
    }
    placed = replace(POLICIES[policy], ranking=ranking) if ranking else POLICIES[policy]
    config = Config(policy=placed, **(defaults | settings))
    return simulate(Workload(list(sessions)), config)

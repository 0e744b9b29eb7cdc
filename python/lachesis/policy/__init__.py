"""Placement policies: their names, what they do, and how the engine is told of them."""

from lachesis.policy.policies import (
    POLICIES,
    Policy,
    RankingOptions,
    choose_policy,
    policy_names,
)

__all__ = ["POLICIES", "Policy", "RankingOptions", "choose_policy", "policy_names"]

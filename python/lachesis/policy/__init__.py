"""Placement policies: their names, what they do, and how the engine is told of them."""

from lachesis.policy.policies import POLICIES, Policy, choose_policy, policy_names

__all__ = ["POLICIES", "Policy", "choose_policy", "policy_names"]

"""Placement policies: their names, what they do, and how the engine is told of them."""

from lachesis.policy.policies import (
    POLICIES,
    Policy,
    choose_policy,
    policy_names,
)
from lachesis.policy.python_policy import PolicyError, PythonPolicy
from lachesis.policy.ranking import RankingOptions

__all__ = [
    "POLICIES",
    "Policy",
    "PolicyError",
    "PythonPolicy",
    "RankingOptions",
    "choose_policy",
    "policy_names",
]

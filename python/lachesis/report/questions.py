"""Runs sorted by the question that they answer.

A question is everything that was asked except what answers it, the memory split and the policy:
trace, model, SLO, load, seed, and changed preset values. Runs of one question stand in one plot and
compete for the longest life; runs of different questions never do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Run = dict[str, Any]

#: What a question is made of, with the word for each; `variant` tells apart what no column does.
DIMENSIONS = {
    "trace": "Trace",
    "model": "Model",
    "slo": "SLO",
    "load": "Load",
    "seed": "Seed",
    "overrides": "Changed values",
    "variant": "Variant",
}
SEARCHED = "the most that the SLO admits"

_POLICIES = (
    "hbm-first", "hbf-only", "hbm-only", "frequency", "read-write-ratio",
    "lachesis-deterministic", "lachesis", "lachesis-oracle", "offline-optimal",
)  # fmt: skip
_BOUNDS = ("lachesis-oracle", "offline-optimal")


@dataclass(frozen=True)
class Question:
    """One question and its runs, by memory split and then policy.

    Attributes:
        asked: words for each of `DIMENSIONS`.
        runs: the rows of the table of runs.
    """

    asked: dict[str, str]
    runs: tuple[Run, ...]

    @property
    def memories(self) -> list[str]:
        """Its memory splits in order."""
        return list(dict.fromkeys(run["memory"] for run in self.runs))

    @property
    def policies(self) -> list[str]:
        """Its policies in order."""
        return in_policy_order(run["policy"] for run in self.runs)


def questions(runs: Iterable[Run]) -> list[Question]:
    """The runs by question, in the order in which the questions first appear.

    Example:
        >>> run = {"trace": "tau3", "model": "m", "slo": "tight", "slo_tpot_p99_s": 0.06,
        ...        "slo_ttft_p99_s": 2.0, "load": "closed", "load_sessions": 8, "seed": 1,
        ...        "admitted_sessions": None, "overrides": [], "cell": "c", "policy": "lachesis"}
        >>> found = questions([run | {"memory": "4/4"}, run | {"memory": "2/6", "cell": "d"}])
        >>> [question.memories for question in found], found[0].asked["slo"]
        ([['2/6', '4/4']], 'tight (p99 TPOT 60 ms, TTFT 2 s)')
    """
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        groups.setdefault(tuple(_asked(run).values()), []).append(run)
    found = []
    for key, group in groups.items():
        for variant, of_variant in _variants(group):
            asked = dict(zip(DIMENSIONS, (*key, variant), strict=True))
            found.append(Question(asked, tuple(_sorted(of_variant))))
    return found


def dimensions_that_vary(found: Sequence[Question]) -> list[str]:
    """The dimensions in which the questions differ."""
    return [name for name in DIMENSIONS if len({question.asked[name] for question in found}) > 1]


def families(found: Sequence[Question]) -> list[list[Question]]:
    """Questions that differ in nothing but the SLO, tightest first."""
    groups: dict[tuple[str, ...], list[Question]] = {}
    for question in found:
        rest = tuple(words for name, words in question.asked.items() if name != "slo")
        groups.setdefault(rest, []).append(question)
    return [sorted(group, key=_limits) for group in groups.values()]


def is_bound(policy: str) -> bool:
    """Whether a policy is a bound that nobody can run, such as one that knows the future."""
    return policy.partition(":")[0] in _BOUNDS


def in_policy_order(policies: Iterable[str]) -> list[str]:
    """Each policy once, simple ones first; a user's own stand last.

    Example:
        >>> in_policy_order(["lachesis", "mine.py:Mine", "hbm-first", "lachesis"])
        ['hbm-first', 'lachesis', 'mine.py:Mine']
    """
    return sorted(dict.fromkeys(policies), key=_policy_key)


def in_memory_order(memories: Iterable[str]) -> list[str]:
    """Each split once, by its HBM stacks; the daisy chain last.

    Example:
        >>> in_memory_order(["8/8*", "4/4", "1/7"])
        ['1/7', '4/4', '8/8*']
    """
    return sorted(dict.fromkeys(memories), key=_memory_key)


def slo_text(run: Run) -> str:
    """The SLO with its limits."""
    return (
        f"{run['slo']} (p99 TPOT {run['slo_tpot_p99_s'] * 1e3:g} ms, "
        f"TTFT {run['slo_ttft_p99_s']:g} s)"
    )


def load_text(run: Run) -> str:
    """The load of a run: sessions, a rate, or the recorded starts."""
    if run["load"] == "closed":
        sessions = run["load_sessions"]
        return f"{sessions:,} {'session' if sessions == 1 else 'sessions'}"
    return f"{run['load_sessions_per_s']:g} sessions/s" if run["load"] == "poisson" else "recorded"


def _asked(run: Run) -> dict[str, str]:
    searched = run["admitted_sessions"] is not None
    return {
        "trace": run["trace"],
        "model": run["model"],
        "slo": slo_text(run),
        "load": SEARCHED if searched else load_text(run),
        "seed": str(run["seed"]),
        "overrides": ", ".join(run["overrides"]) or "none",
    }


def _variants(group: list[Run]) -> list[tuple[str, list[Run]]]:
    """The runs apart where a split and policy were run more than once on one question.

    They differ in what has no column (how long to measure, say), and must not stand in one plot.
    """
    cells: dict[str, dict[str, int]] = {}
    variants: dict[int, list[Run]] = {}
    for run in group:
        of_memory = cells.setdefault(run["memory"], {})
        number = of_memory.setdefault(run["cell"], len(of_memory))
        variants.setdefault(number, []).append(run)
    if _meet(variants):
        return [(str(number + 1), runs) for number, runs in variants.items()]
    # Several cells, and yet no policy twice: policies that were run one by one.
    return [("1", group)]


def _meet(variants: dict[int, list[Run]]) -> bool:
    places = [(run["memory"], run["policy"]) for runs in variants.values() for run in runs]
    return len(set(places)) < len(places)


def _sorted(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: (_memory_key(run["memory"]), _policy_key(run["policy"])))


def _limits(question: Question) -> tuple[float, float]:
    first = question.runs[0]
    return first["slo_tpot_p99_s"], first["slo_ttft_p99_s"]


def _policy_key(policy: str) -> tuple[int, str]:
    base = policy.partition(":")[0]
    return (_POLICIES.index(base) if base in _POLICIES else len(_POLICIES), policy)


def _memory_key(memory: str) -> tuple[bool, int, str]:
    stacks = memory.partition("/")[0]
    return (memory.endswith("*"), int(stacks) if stacks.isdigit() else 0, memory)

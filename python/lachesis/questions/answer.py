"""What a question is answered with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lachesis.policy import choose_policy
from lachesis.results.schema import shipped_schema

SCHEMA_VERSION = 1

#: One run as `lachesis.results.document.run_objects` gives it.
Run = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """The answer under one policy.

    Attributes:
        policy: under which it holds.
        found: what was asked for, by name with the unit in it; None where there is no answer.
        sentence: the same in words; says why where there is none.
    """

    policy: str
    found: dict[str, Any] | None
    sentence: str


@dataclass(frozen=True)
class Answer:
    """Findings, and every run that they rest on.

    Attributes:
        question: as the command is called.
        asked: what was wished for.
        findings: one a policy.
        runs: in the order in which they were run; each with ``hbm_gb_per_gpu`` and, where the
            question has scenarios, its ``scenario``.
        infeasible: what was tried and cannot be run: policy, memory, reason.
    """

    question: str
    asked: dict[str, Any]
    findings: tuple[Finding, ...]
    runs: tuple[Run, ...]
    infeasible: tuple[dict[str, Any], ...] = ()

    def document(self, provenance: dict[str, Any]) -> dict[str, Any]:
        """The answer as JSON has it: what `answer_schema` describes.

        Args:
            provenance: from `lachesis.questions.Scenario.provenance`.
        """
        return {
            "schema": SCHEMA_VERSION,
            "question": self.question,
            "asked": self.asked,
            "provenance": provenance,
            "findings": [
                {"policy": each.policy, "found": each.found, "sentence": each.sentence}
                for each in self.findings
            ],
            "runs": list(self.runs),
            "infeasible": list(self.infeasible),
        }


def answer_schema() -> dict[str, Any]:
    """The JSON Schema of `Answer.document`, with the meaning and unit of every key.

    Example:
        >>> answer_schema()["properties"]["question"]["enum"]
        ['smallest-hbm', 'largest-load', 'cheapest-split', 'effect']
    """
    return shipped_schema("find")


def years_of(run: Run) -> float:
    """Device-years of a run under a policy that writes generated KV to flash.

    Infinite where the run wrote nothing there and nothing is refreshed: that flash outlives any
    wish. 0 under a policy that never writes generated KV there, or without flash: such a run
    answers no question about it.

    Example:
        >>> run = {"hbf_lifetime_years": None, "policy": "hbm-first", "hbf_bytes_per_gpu": 1}
        >>> years_of(run), years_of(run | {"policy": "hbm-only"})
        (inf, 0.0)
    """
    if run["hbf_lifetime_years"] is not None:
        return float(run["hbf_lifetime_years"])
    wears = run["hbf_bytes_per_gpu"] > 0 and choose_policy(run["policy"]).writes_flash
    return math.inf if wears else 0.0


def lives(run: Run, years: float) -> bool:
    """Whether a run's flash lasts so many years."""
    return years_of(run) >= years


def written(years: float) -> str:
    """Device-years in words.

    Example:
        >>> written(4.96), written(123.4)
        ('4.96 years', '123 years')
        >>> written(math.inf)
        'for ever, as nothing is written to it'
    """
    if math.isinf(years):
        return "for ever, as nothing is written to it"
    return f"{years:.3g} years" if years < 1_000 else f"{years:,.0f} years"

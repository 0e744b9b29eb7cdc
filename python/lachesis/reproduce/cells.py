"""The cells that the evaluation's figures need: which trace, model, memory split and SLO."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from lachesis.reproduce.published_evaluation import evaluation

BASELINE, WITHOUT_RANKING, LACHESIS = "hbm-first", "lachesis-deterministic", "lachesis"
WITH_REVIEWER, WITHOUT_REVIEWER = "multi-agent", "multi-agent-no-reviewer"
MULTI_AGENT = (WITH_REVIEWER, WITHOUT_REVIEWER)
SINGLE_AGENT = ("tau3", "bfclv4")
TIGHT, LOOSE = "tight", "loose"
SLOS = (TIGHT, LOOSE)


@dataclass(frozen=True, order=True)
class Cell:
    """What decides a load: everything about a run but its policy."""

    trace: str
    model: str
    memory: str
    slo: str

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies that the paper draws there.

        A single agent has no workers to rank, so that both of Lachesis's paths are the same.
        """
        if self.trace in SINGLE_AGENT:
            return (BASELINE, LACHESIS)
        return (BASELINE, WITHOUT_RANKING, LACHESIS)

    def __str__(self) -> str:
        return f"{self.trace}, {self.model}, {self.memory}, {self.slo}"


def multi_agent_cells() -> list[Cell]:
    """Figure 9: both multi-agent traces at both SLOs.

    Example:
        >>> len(multi_agent_cells())
        40
    """
    return _cells(MULTI_AGENT, evaluation().cells.models, SLOS)


def composition_cells() -> list[Cell]:
    """Figure 10: the first model at the loose SLO.

    Example:
        >>> sorted({(cell.model, cell.slo) for cell in composition_cells()})
        [('llama-4-maverick', 'loose')]
    """
    return _cells(MULTI_AGENT, evaluation().cells.models[:1], SLOS[1:])


def single_agent_cells() -> list[Cell]:
    """Figures 11 and 12: the single-agent traces, at the tight SLO alone.

    Example:
        >>> len(single_agent_cells())
        20
    """
    return _cells(SINGLE_AGENT, evaluation().cells.models, SLOS[:1])


def single_agent_composition_cells() -> list[Cell]:
    """Figure 12: the second model.

    Example:
        >>> sorted({cell.model for cell in single_agent_composition_cells()})
        ['qwen3-235b-a22b']
    """
    return _cells(SINGLE_AGENT, evaluation().cells.models[1:], SLOS[:1])


def _cells(traces: Collection[str], models: Collection[str], slos: Collection[str]) -> list[Cell]:
    """In the order of the paper's panels, the memory splits innermost."""
    return [
        Cell(trace, model, memory, slo)
        for trace in traces
        for model in models
        for slo in slos
        for memory in evaluation().cells.memories
    ]

"""What the paper publishes of its evaluation, as data with sources."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

#: How a claim is measured; `lachesis.reproduce.claims` says each.
Quantity = Literal[
    "years",
    "gain",
    "hbm_share",
    "hbm_share_ratio",
    "class_to_flash",
    "absorbed",
    "years_lost",
    "peak_slots",
]


class _Table(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What all tables of the file share: unknown keys are refused."""


class Tolerance(_Table, frozen=True, kw_only=True):
    """By how much a range is widened at each end, and a single number may be off."""

    ratio: float
    years: float


class EvaluatedCells(_Table, frozen=True, kw_only=True):
    """Models and memory splits of the evaluation."""

    source: str
    models: tuple[str, ...]
    divided: tuple[str, ...]
    chain: str
    warranty_years: float

    @property
    def memories(self) -> tuple[str, ...]:
        """The splits in the order of the paper's bars."""
        return (*self.divided, self.chain)


class Setting(_Table, frozen=True, kw_only=True):
    """A value of the presets that the reproduction changes, and why."""

    key: str
    value: str
    because: str


class PredictorFigures(_Table, frozen=True, kw_only=True):
    """How well workers are ranked at their spawn."""

    source: str
    corpus: str
    kendall_tau: float
    selected_share: float
    shortest_found: float
    longest_taken: float


class EvaluationClaim(_Table, frozen=True, kw_only=True):
    """A number or a range that the text states, and the cells that it is stated of.

    Attributes:
        policy: whose quantity it is; `over` the policy that it is divided by.
        segment_class: whose writes, where the quantity is of one class.
        models: all of the evaluation if left out.
        splits: those that divide the slots, the daisy chain, or both.
        range, value: what is published; one of them.
        reading: what was taken where the paper leaves it open.
    """

    figure: str
    says: str
    quantity: Quantity
    policy: str
    over: str | None = None
    segment_class: str | None = None
    traces: tuple[str, ...]
    models: tuple[str, ...] | None = None
    slos: tuple[str, ...]
    splits: Literal["divided", "chain", "all"]
    range: tuple[float, float] | None = None
    value: float | None = None
    decimals: int
    source: str
    reading: str = ""

    def __post_init__(self) -> None:
        if (self.range is None) == (self.value is None):
            raise ValueError(f"{self.says}: publishes a range or a value")


class Bar(_Table, frozen=True, kw_only=True):
    """A bar whose height is written over it."""

    trace: str
    model: str
    policy: str
    years: float


class Labels(_Table, frozen=True, kw_only=True):
    """The bars of a figure that its axis cuts off."""

    figure: str
    says: str
    source: str
    reading: str
    decimals: int
    slo: str
    memory: str
    bars: tuple[Bar, ...]


class PublishedEvaluation(_Table, frozen=True, kw_only=True):
    """Sections 3.5 and 5."""

    tolerance: Tolerance
    cells: EvaluatedCells
    settings: tuple[Setting, ...]
    predictor: PredictorFigures
    claims: tuple[EvaluationClaim, ...]
    labels: tuple[Labels, ...]


@cache
def evaluation() -> PublishedEvaluation:
    """The published evaluation.

    Example:
        >>> evaluation().cells.memories
        ('1/7', '2/6', '3/5', '4/4', '8/8*')
    """
    text = resources.files("lachesis.reproduce").joinpath("data/evaluation.toml")
    return msgspec.convert(tomllib.loads(text.read_text("utf-8")), PublishedEvaluation)

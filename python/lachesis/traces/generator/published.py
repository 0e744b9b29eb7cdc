"""The published figures that the corpora are measured against (``data/published.toml``)."""

from __future__ import annotations

import tomllib
from functools import cache

import msgspec

from lachesis.traces.generator.specification import DATA_DIRECTORY


class Figure4b(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Tokens a turn writes, by workload and figure."""

    source: str
    tolerance: float
    unfit: list[str]
    """``workload figure`` of what cannot be met together with the rest."""
    workloads: dict[str, dict[str, int]]


class Band(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The range of a figure over the published workloads."""

    figure: str
    says: str
    range: tuple[float, float]
    decimals: int
    """Digits after the point to which the range is published."""
    source: str


class Predictor(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What the published predictor reaches."""

    source: str
    kendall_tau: float
    shortest_tenth_found: float
    longest_tenth_taken: float
    tolerance: float


class Published(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """All published figures but Table 3, which stands in the specifications."""

    figure_4b: Figure4b
    bands: list[Band]
    predictor: Predictor


@cache
def load() -> Published:
    """Read the published figures.

    >>> load().figure_4b.workloads["tau3-airline"]["laden_tokens_mean"]
    1519
    """
    document = tomllib.loads((DATA_DIRECTORY / "published.toml").read_text("utf-8"))
    return msgspec.convert(document, Published)

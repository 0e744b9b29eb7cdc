"""What the paper publishes of its characterisation, as data with sources."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Literal

import msgspec


class _Table(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What all tables of the file share: unknown keys are refused."""


class Counts(_Table, frozen=True, kw_only=True):
    """A row of Table 3."""

    sessions: int
    requests: int
    tokens_written: int
    tokens_processed: int | None = None


class Table3(_Table, frozen=True, kw_only=True):
    """Table 3, by corpus."""

    source: str
    tolerance: float
    workloads: dict[str, Counts]


class TurnTokens(_Table, frozen=True, kw_only=True):
    """Tokens that a turn writes into a class."""

    median: int
    mean: int


class TurnClasses(_Table, frozen=True, kw_only=True):
    """Both classes of a panel of Figure 4(b)."""

    laden: TurnTokens
    stripped: TurnTokens


class Figure4b(_Table, frozen=True, kw_only=True):
    """Figure 4(b), by corpus; `notes` by ``workload class statistic``."""

    source: str
    tolerance: float
    workloads: dict[str, TurnClasses]
    notes: dict[str, str]


class Band(_Table, frozen=True, kw_only=True):
    """A published range over workloads.

    Attributes:
        statistic: attribute of `WorkloadStats`; `pair` or `part` say which of its values.
        regime: the workloads it is over.
        decimals: digits after the point to which it is published.
        ends: whether the ends belong to this very statistic, so that ours can be held to them.
    """

    figure: str
    statistic: str
    pair: str | None = None
    part: str | None = None
    says: str
    regime: Literal["temporal", "structural"]
    range: tuple[float, float]
    decimals: int
    source: str
    ends: bool = True


class Bands(_Table, frozen=True, kw_only=True):
    """All ranges; `near_end` is how near the outermost of our workloads must come to an end."""

    near_end: float
    figures: list[Band]


class Characterisation(_Table, frozen=True, kw_only=True):
    """Section 3 and Appendix A."""

    table_3: Table3
    figure_4b: Figure4b
    bands: Bands


@cache
def characterisation() -> Characterisation:
    """The published characterisation.

    Example:
        >>> characterisation().table_3.workloads["webarena"].requests
        2190
    """
    text = resources.files("lachesis.reproduce").joinpath("data/characterisation.toml")
    return msgspec.convert(tomllib.loads(text.read_text("utf-8")), Characterisation)

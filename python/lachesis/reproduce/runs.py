"""Rows of simulated runs, found by cell and policy, with the intervals of what they measure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lachesis.errors import InternalError
from lachesis.reproduce.cells import Cell
from lachesis.results.measures import TIERS
from lachesis.traces.schema import SegmentClass

#: A run as one flat row; the keys are the columns of ``runs/*.parquet``.
RunRow = Mapping[str, Any]


@dataclass(frozen=True)
class Measured:
    """A value with the half-width of its 95 % interval, relative to the value.

    Example:
        >>> Measured(2.0, 0.03).over(Measured(1.0, 0.04)).relative
        0.05
    """

    value: float
    relative: float = 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the 95 % interval."""
        return self.value * (1.0 - self.relative), self.value * (1.0 + self.relative)

    def over(self, other: Measured) -> Measured:
        """The quotient. Errors add in quadrature, as of independent runs.

        Runs of one cell replay the same sessions, so that theirs partly cancel: the interval is
        then somewhat too wide.
        """
        if other.value == 0.0:
            return Measured(math.inf)
        return Measured(self.value / other.value, math.hypot(self.relative, other.relative))

    def below_one(self) -> Measured:
        """One minus the value; the error is the value's own.

        Example:
            >>> Measured(0.8, 0.01).below_one()
            Measured(value=0.19999999999999996, relative=0.04000000000000001)
        """
        rest = 1.0 - self.value
        return Measured(rest, abs(self.value * self.relative / rest) if rest else 0.0)


@dataclass(frozen=True)
class Run:
    """One policy's run in one cell."""

    row: RunRow

    @property
    def flash_error(self) -> float:
        """Half-width of the 95 % interval of the flash's write rate, relative.

        The row holds years / (1 + error) as the lower end of its interval.
        """
        low: float | None = self.row["hbf_lifetime_years_low"]
        return math.inf if low is None else float(self.row["hbf_lifetime_years"]) / low - 1.0

    @property
    def years(self) -> Measured:
        """Device-years of the flash."""
        if self.row["hbf_lifetime_years"] is None:
            raise InternalError(f"{self.row['run']} has no device-years")
        return Measured(float(self.row["hbf_lifetime_years"]), self.flash_error)

    @property
    def flash_rate(self) -> Measured:
        """Bytes a second that reach a GPU's flash."""
        return Measured(float(self.row["hbf_write_bytes_per_s_per_gpu"]), self.flash_error)

    @property
    def hbm_share(self) -> Measured:
        """HBM's share of the bytes written."""
        return self._share_of_hbm(float(self.row["hbm_write_share"]))

    def to_flash(self, segment_class: str) -> Measured:
        """The part of a class's bytes that is written to flash."""
        by_tier = {tier: self.written(segment_class, tier) for tier in TIERS}
        total = sum(by_tier.values())
        if not total:
            raise InternalError(f"no {segment_class} was written in {self.row['run']}")
        return self._share_of_hbm(by_tier["hbm"] / total).below_one()

    def written(self, segment_class: str, tier: str) -> int:
        """Bytes of a class that were written to a tier."""
        column = f"write_bytes_{segment_class.replace('-', '_')}_{tier}"
        return int(self.row[column] or 0)

    def composition(self) -> dict[tuple[str, str], float]:
        """Shares of all bytes written, by (class, tier)."""
        written = {
            (str(name), tier): self.written(str(name), tier)
            for name in SegmentClass
            for tier in TIERS
        }
        total = sum(written.values())
        return {key: amount / total for key, amount in written.items()} if total else {}

    def _share_of_hbm(self, share: float) -> Measured:
        # HBM takes what it has room for, so that what varies is what flash takes: with HBM's part
        # held still, an error e of flash's (1 - s) moves the share s by e·s·(1 - s).
        return Measured(share, self.flash_error * (1.0 - share))


class Runs:
    """All runs of the evaluation that were made."""

    def __init__(self, rows: Iterable[RunRow]) -> None:
        self.rows = list(rows)
        self._by_place = {
            (Cell(row["trace"], row["model"], row["memory"], row["slo"]), row["policy"]): row
            for row in self.rows
        }

    def __contains__(self, cell: Cell) -> bool:
        return all((cell, policy) in self._by_place for policy in cell.policies)

    def of(self, cell: Cell, policy: str) -> Run:
        """The run of a policy in a cell that was asked for."""
        try:
            return Run(self._by_place[cell, policy])
        except KeyError:
            raise InternalError(f"no run of {policy} in {cell}") from None

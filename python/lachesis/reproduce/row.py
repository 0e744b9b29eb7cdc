"""One published number or range, what we have for it, and whether the two agree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Claim:
    """What the paper says about something, whatever workload it is said of.

    Attributes:
        figure: where it is published: ``Table 3``, ``Figure 4(a)``.
        statistic: what is compared.
        source: the place in the paper.
        decimals: digits after the point to which it is published; None for whole counts.
    """

    figure: str
    statistic: str
    source: str
    decimals: int | None = None


@dataclass(frozen=True)
class Row:
    """A comparison.

    Attributes:
        claim: what is said where.
        subject: of what: a workload, or the lowest or highest of several.
        workloads: the corpora that were measured for it.
        published: a number, or the ends of a range.
        ours: what we measure.
        deviation: ours over published, minus 1; of a range 0 inside, and outside it against the
            nearer end.
        within: whether that is close enough.
        tolerance: the largest deviation that is.
        note: what else a reader should know; empty mostly.
        interval: the 95 % interval of `ours`, where there is one.
    """

    claim: Claim
    subject: str
    workloads: tuple[str, ...]
    published: float | tuple[float, float]
    ours: float
    deviation: float
    within: bool
    tolerance: float
    note: str = ""
    interval: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        """Subject and statistic in one."""
        return f"{self.subject}: {self.claim.statistic}"

    def to_json(self) -> dict[str, Any]:
        """As ``comparison.json`` holds it; a range as a list of two."""
        published = self.published
        return {
            "figure": self.claim.figure,
            "name": self.name,
            "workloads": list(self.workloads),
            "published": list(published) if isinstance(published, tuple) else published,
            "ours": self.ours,
            "ours_ci95": None if self.interval is None else list(self.interval),
            "deviation": self.deviation,
            "within": self.within,
            "tolerance": self.tolerance,
            "source": self.claim.source,
            "note": self.note,
        }


def number_row(
    claim: Claim,
    workload: str,
    published: float,
    ours: float,
    *,
    tolerance: float,
    note: str = "",
) -> Row:
    """Compare with a published number; at a tolerance of 0 the two must be equal.

    Example:
        >>> row = number_row(Claim("Table 3", "requests", "Appendix A"), "w", 200, 198,
        ...                  tolerance=0.02)
        >>> row.name, row.deviation, row.within
        ('w: requests', -0.01, True)
    """
    off = (ours - published) / published
    return Row(
        claim, workload, (workload,), published, ours, off, abs(off) <= tolerance, tolerance, note
    )


def band_row(
    claim: Claim, workload: str, published: tuple[float, float], ours: float, *, note: str = ""
) -> Row:
    """Compare with a published range, whose ends are rounded to the claim's decimals.

    Example:
        >>> claim = Claim("Figure 4(a)", "separability", "Section 3.3", decimals=2)
        >>> row = band_row(claim, "w", (0.96, 0.99), 0.9951)
        >>> row.within, round(row.deviation, 4)
        (False, 0.0052)
    """
    inside = inside_band(claim, published, ours)
    off = 0.0
    if not inside:
        end = published[0] if ours < published[0] else published[1]
        off = (ours - end) / end
    return Row(claim, workload, (workload,), published, ours, off, inside, 0.0, note)


def end_rows(
    claim: Claim, published: tuple[float, float], ours: Mapping[str, float], *, near: float
) -> list[Row]:
    """Compare both ends of a published range with the lowest and the highest of our workloads.

    An end holds if ours is inside the range and within `near` of it: a range that ours fill only
    in part is published by workloads that differ more than ours do. `ours` is by workload.

    Example:
        >>> claim = Claim("Figure 5(a)", "ratio", "Section 3.4", decimals=1)
        >>> rows = end_rows(claim, (4.0, 6.1), {"a": 4.2, "b": 5.3}, near=0.1)
        >>> [(row.subject, row.ours, row.within, row.note) for row in rows]
        [('lowest', 4.2, True, 'a'), ('highest', 5.3, False, 'b')]
    """
    by_value = sorted(ours, key=lambda name: (ours[name], name))
    rows = []
    for subject, workload, end in (
        ("lowest", by_value[0], published[0]),
        ("highest", by_value[-1], published[1]),
    ):
        value = ours[workload]
        off = (value - end) / end
        holds = inside_band(claim, published, value) and abs(off) <= near
        rows.append(
            Row(claim, subject, tuple(sorted(ours)), end, value, off, holds, near, workload)
        )
    return rows


def inside_band(claim: Claim, band: tuple[float, float], value: float) -> bool:
    """Whether `value` lies in a range at the precision of the range's ends."""
    return math.isfinite(value) and band[0] <= round(value, claim.decimals) <= band[1]

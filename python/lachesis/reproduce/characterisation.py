"""Table 3 and Figures 4 to 6: the corpora's characterisation against the published one."""

from __future__ import annotations

from lachesis.characterise.workload import Separability, WorkerSpread, WorkloadStats
from lachesis.errors import InternalError
from lachesis.reproduce.evidence import Evidence
from lachesis.reproduce.published import Band, characterisation
from lachesis.reproduce.row import Claim, Row, band_row, end_rows, number_row
from lachesis.traces.schema import SegmentClass


def table_3(evidence: Evidence) -> list[Row]:
    """Sessions and requests, which must be exact, and tokens."""
    published = characterisation().table_3
    rows = []
    for column, tolerance in (
        ("sessions", 0.0),
        ("requests", 0.0),
        ("tokens_processed", published.tolerance),
        ("tokens_written", published.tolerance),
    ):
        claim = Claim("Table 3", column.replace("_", " "), published.source)
        rows += [
            number_row(
                claim, workload, value, getattr(evidence.stats(workload), column),
                tolerance=tolerance,
            )
            for workload, counts in published.workloads.items()
            if (value := getattr(counts, column)) is not None
        ]  # fmt: skip
    return rows


def figure_4(evidence: Evidence) -> list[Row]:
    """Lifetimes of laden and stripped segments, and tokens that a turn writes."""
    return [*_bands(evidence, "Figure 4"), *_tokens_per_turn(evidence)]


def figure_5(evidence: Evidence) -> list[Row]:
    """Lifetimes and reuse of leads, workers and reviewers."""
    return _bands(evidence, "Figure 5")


def figure_6(evidence: Evidence) -> list[Row]:
    """How workers differ among themselves."""
    return _bands(evidence, "Figure 6")


def _tokens_per_turn(evidence: Evidence) -> list[Row]:
    published = characterisation().figure_4b
    rows = []
    for short, kind in (("laden", SegmentClass.LADEN), ("stripped", SegmentClass.STRIPPED)):
        for statistic in ("median", "mean"):
            claim = Claim(
                "Figure 4(b)", f"{short} tokens a turn writes, {statistic}", published.source
            )
            for workload, panel in published.workloads.items():
                found = evidence.stats(workload).tokens_per_turn[str(kind)]
                ours = found.p50 if statistic == "median" else found.mean
                name = f"{workload} {short} {statistic}"
                rows.append(
                    number_row(
                        claim, workload, getattr(getattr(panel, short), statistic),
                        _there(ours, name), tolerance=published.tolerance,
                        note=published.notes.get(name, ""),
                    )
                )  # fmt: skip
    return rows


def _bands(evidence: Evidence, figure: str) -> list[Row]:
    bands = characterisation().bands
    rows = []
    for band in bands.figures:
        if not band.figure.startswith(figure):
            continue
        claim = Claim(band.figure, band.says, band.source, band.decimals)
        ours: dict[str, float] = {}
        for workload in _workloads(band):
            stats = evidence.stats(workload)
            ours[workload] = _there(_value(stats, band), f"{workload} {band.says}")
            note = _interval(stats, band)
            rows.append(band_row(claim, workload, band.range, ours[workload], note=note))
        if band.ends:
            rows += end_rows(claim, band.range, ours, near=bands.near_end)
    return rows


def _workloads(band: Band) -> list[str]:
    """The corpora of the band's regime; those of Figure 4(b) are the temporal ones."""
    published = characterisation()
    temporal = published.figure_4b.workloads
    wanted = band.regime == "temporal"
    return [name for name in published.table_3.workloads if (name in temporal) == wanted]


def _value(stats: WorkloadStats, band: Band) -> float | None:
    found = getattr(stats, band.statistic)
    if band.pair is not None:
        found = found[band.pair]
    if isinstance(found, Separability):
        return found.value
    if isinstance(found, WorkerSpread):
        found = getattr(found, str(band.part))
    return None if found is None else float(found)


def _interval(stats: WorkloadStats, band: Band) -> str:
    if band.statistic != "separability" or band.pair is None:
        return ""
    found = stats.separability[band.pair]
    if found.low is None or found.high is None:
        return ""
    return f"95 % over sessions {found.low:.3f} to {found.high:.3f}"


def _there(value: float | None, what: str) -> float:
    """A built-in corpus has every statistic that is published of it."""
    if value is None:
        raise InternalError(f"the built-in corpora do not show: {what}")
    return value

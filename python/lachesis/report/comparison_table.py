"""Published against ours: a table for the terminal, and a Markdown page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.text import Text

from lachesis import __version__
from lachesis.reproduce.row import Row

QUICK_NOTE = (
    "Measured at the lower precision of --quick: one of the node's eight GPUs, and runs of less "
    "than a turnover of the sessions, too short to tell their own error, so that figures of runs "
    "have no interval. Against full precision loads lie within 4 to 8 % (one standard deviation), "
    "device-years within 7 to 9 % and 1 to 4 % low; docs/reproduction.md says more."
)

_GAP = "  "
#: Of the columns behind the names, in characters; the verdict comes last.
_WIDTHS = (14, 9, 13, 7)
_NAMES, _NAMES_MIN = 24, 8
_BESIDE_NAMES = sum(_WIDTHS) + len(_GAP) * (len(_WIDTHS) + 1) + len("missed")


def print_comparison(console: Console, rows: Sequence[Row], *, quick: bool = False) -> None:
    """Print every row, grouped by figure and statistic, and how many hold."""
    names_width = max(_NAMES_MIN, min(_NAMES, console.width - _BESIDE_NAMES))
    for claim, group in groupby(rows, key=lambda row: row.claim):
        lines = [Text(f"{claim.figure}: {claim.statistic}", style="bold")]
        lines.append(_line("", ("published", "ours", "95 %", "off"), names_width, style="dim"))
        for row in group:
            values = (
                published_text(row), number_text(row.ours), interval_text(row), deviation_text(row),
            )  # fmt: skip
            lines.append(_line(row.subject, values, names_width))
            lines[-1].append(*("met", "green") if row.within else ("missed", "bold red"))
        # What is too narrow for a line wraps it, so that no verdict is lost.
        console.print(Text("\n").join(lines), soft_wrap=True)
        console.print()
    if quick:
        console.print(Text(QUICK_NOTE))
    for sentence in summary(rows):
        console.print(Text(sentence))


def _line(name: str, values: Sequence[str], names_width: int, style: str = "") -> Text:
    """A line of the table up to its last column; a table of rich's own takes ten times as long."""
    line = Text(name)
    line.truncate(names_width, overflow="ellipsis", pad=True)
    for value, width in zip(values, _WIDTHS, strict=True):
        line.append(f"{_GAP}{value:>{width}}", style)
    return line.append(_GAP)


def summary(rows: Sequence[Row]) -> list[str]:
    """How many rows hold, and each that does not, with what is known of it."""
    missed = [row for row in rows if not row.within]
    said = [f"{len(rows) - len(missed):,} of {len(rows):,} published figures are met."]
    by_figure: dict[str, list[Row]] = {}
    for row in rows:
        by_figure.setdefault(row.claim.figure.partition("(")[0], []).append(row)
    if len(by_figure) > 1:
        counts = (
            f"{figure}: {sum(row.within for row in group)} of {len(group)}"
            for figure, group in by_figure.items()
        )
        said.append(f"{'; '.join(counts)}.")
    for row in missed:
        note = f" ({row.note})" if row.note else ""
        said.append(
            f"Missed: {row.claim.figure}, {row.name}: published {published_text(row)}, ours "
            f"{number_text(row.ours)}{note}."
        )
    return said


def comparison_page(
    rows: Sequence[Row], *, seed: int, figures: Sequence[str], quick: bool = False
) -> str:
    """The comparison as Markdown.

    Args:
        rows: all of them.
        seed: of the measurement.
        figures: names of image files beside the page, in the order in which they are shown.
        quick: whether it was measured at the lower precision.
    """
    lines = [
        "# Published against ours",
        "",
        f"Lachesis {__version__}, seed {seed}. Published: arXiv:2610.08378v1. Ours: the built-in "
        "corpora, which are synthetic and fitted to these very figures; agreement says that the "
        "fit holds, not that the corpora are the paper's traces.",
        "",
        *([QUICK_NOTE, ""] if quick else []),
        *(f"{sentence}  " for sentence in summary(rows)),
    ]
    for figure, of_figure in groupby(rows, key=lambda row: row.claim.figure):
        lines += ["", f"## {figure}"]
        for claim, group in groupby(of_figure, key=lambda row: row.claim):
            lines += [
                "", f"**{claim.statistic}** ({claim.source})", "",
                "| | published | ours | 95 % | off | | |", "|---|--:|--:|--:|--:|---|---|",
            ]  # fmt: skip
            for row in group:
                mark = "met" if row.within else "**missed**"
                lines.append(
                    f"| {row.subject} | {published_text(row)} | {number_text(row.ours)} | "
                    f"{interval_text(row)} | {deviation_text(row)} | {mark} | {row.note} |"
                )
    if figures:
        lines += ["", "## Figures", ""]
        lines += [f"![{name}]({name})" for name in figures]
    return "\n".join(lines) + "\n"


def published_text(row: Row) -> str:
    """A published number, or the ends of a range, with the digits that are published.

    Example:
        >>> from lachesis.reproduce.row import Claim, band_row
        >>> claim = Claim("Figure 5(a)", "separability", "Section 3.4", decimals=2)
        >>> published_text(band_row(claim, "w", (0.9, 1.0), 0.95))
        '0.90 to 1.00'
    """
    ends = row.published if isinstance(row.published, tuple) else (row.published,)
    return " to ".join(f"{end:,.{row.claim.decimals or 0}f}" for end in ends)


def number_text(value: float) -> str:
    """Whole numbers as they are, others with three digits.

    Example:
        >>> [number_text(value) for value in (591248, 0.9191, 38.26, 1517.6)]
        ['591,248', '0.919', '38.3', '1,518']
    """
    if float(value).is_integer() or value >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def interval_text(row: Row) -> str:
    """The ends of the 95 % interval; empty where there is none, or no width.

    Example:
        >>> from lachesis.reproduce.claims import evaluated_row
        >>> from lachesis.reproduce.row import Claim
        >>> from lachesis.reproduce.runs import Measured
        >>> claim = Claim("Figure 9", "gain", "Section 5.3", decimals=2)
        >>> interval_text(evaluated_row(claim, "lowest", ("w",), 1.5, Measured(1.4, 0.02), 0.1))
        '1.37–1.43'
    """
    if row.interval is None or row.interval[0] == row.interval[1]:
        return ""
    return "–".join(number_text(end) for end in row.interval)


def deviation_text(row: Row) -> str:
    """How far off, as a percentage; a range that holds has none."""
    if isinstance(row.published, tuple) and row.within:
        return "inside"
    return "0" if row.deviation == 0 else f"{row.deviation:+.1%}"

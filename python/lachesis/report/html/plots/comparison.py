"""Published figures against ours: how far off each is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lachesis.report.html.plots.panel import INK, Panel, Plot, drawn_text, rounded
from lachesis.report.run_plot import BAR_COLOUR

_CAPTION = (
    "Each symbol is a published figure: how far ours lies from it, in percent of it. Circles are "
    "within the tolerance of their figure, crosses are not."
)
_ROW_PX = 30
_FRAME_PX = 150
MISSED_COLOUR = "#D55E00"


def comparison_plot(comparison: Sequence[Mapping[str, Any]]) -> Plot | None:
    """The plot, a row a figure or table of the paper; None without a deviation to show."""
    rated = [row for row in comparison if isinstance(row["deviation"], (int, float))]
    if not rated:
        return None
    figures = list(dict.fromkeys(str(row["figure"]) for row in rated))
    data = [
        _symbols([row for row in rated if bool(row["within"]) == within], within=within)
        for within in (True, False)
    ]
    return Plot(
        "comparison",
        "Published against ours",
        _CAPTION,
        [
            [
                Panel(
                    "",
                    [trace for trace in data if trace["x"]],
                    {
                        "xaxis": {"title": {"text": "ours against published, %"},
                                  "zeroline": True},
                        "yaxis": {
                            "type": "category",
                            "categoryorder": "array",
                            "categoryarray": [drawn_text(name) for name in reversed(figures)],
                        },
                    },
                    height_px=_FRAME_PX + _ROW_PX * len(figures),
                    rows=True,
                    wide=True,
                )
            ]
        ],
        follows=False,
    )  # fmt: skip


def _symbols(rows: Sequence[Mapping[str, Any]], *, within: bool) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{'met' if within else 'missed'} ({len(rows):,})",
        "x": [rounded(100.0 * row["deviation"]) for row in rows],
        "y": [drawn_text(str(row["figure"])) for row in rows],
        "marker": {
            "symbol": "circle" if within else "x",
            "size": 10,
            "color": BAR_COLOUR if within else MISSED_COLOUR,
            "line": {"color": INK, "width": 1},
        },
        "customdata": [drawn_text(str(row["name"])) for row in rows],
        "hovertemplate": "%{customdata}<br>%{x:+.3g} %<extra></extra>",
    }

"""How long segments live and how large they are, by class: cumulative distributions."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lachesis.report.html.plots.panel import Panel, Plot, drawn_text, rounded
from lachesis.report.run_plot import CLASS_COLOURS

_CAPTION = (
    "Share of a class's segments that live at most so long on the reference clock (T_norm), and "
    "that hold at most so many tokens. Every segment counts once."
)
_DASHES = {
    "prompt": "longdashdot",
    "reasoning-laden": "solid",
    "reasoning-stripped": "dash",
    "lead": "solid",
    "worker": "dash",
    "reviewer": "dot",
    "summary": "dashdot",
}
_VALUES = (
    ("t_norm_s", "Lifetimes", "T_norm, seconds (logarithmic)", "s"),
    ("tokens_per_segment", "Sizes", "tokens a segment (logarithmic)", "tokens"),
)


def distribution_plot(lifetimes: pa.Table) -> Plot | None:
    """The plot, with a selector of its own over traces; None where there is no segment."""
    rows = lifetimes.to_pylist()
    traces = list(dict.fromkeys(row["trace"] for row in rows))
    if not traces:
        return None
    return Plot(
        "distribution",
        "Lifetimes of segments",
        _CAPTION,
        [_panels([row for row in rows if row["trace"] == trace]) for trace in traces],
        follows=False,
        labels=traces,
        label="Trace",
    )


def _panels(rows: Sequence[dict[str, object]]) -> list[Panel]:
    panels = []
    for key, title, axis, unit in _VALUES:
        data = []
        for name in dict.fromkeys(str(row["class"]) for row in rows):
            of_class = [row for row in rows if row["class"] == name]
            # A logarithmic axis has no place for 0: the line then begins above the share of 0.
            points = [
                (row[key], row["quantile"])
                for row in of_class
                if isinstance(row[key], float) and row[key] > 0.0  # type: ignore[operator]
            ]
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": f"{drawn_text(name)} ({of_class[0]['segments']:,})",
                    "x": [rounded(value) for value, _ in points],  # type: ignore[arg-type]
                    "y": [rounded(share) for _, share in points],  # type: ignore[arg-type]
                    "line": {
                        "color": CLASS_COLOURS.get(name, "#882255"),
                        "width": 2.5,
                        "dash": _DASHES.get(name, "longdash"),
                    },
                    "hovertemplate": f"%{{y:.0%}} up to %{{x:,.4g}} {unit}",
                }
            )
        panels.append(
            Panel(
                title,
                data,
                {
                    "xaxis": {"title": {"text": axis}, "type": "log"},
                    "yaxis": {
                        "title": {"text": "share of segments"},
                        "range": [0, 1.02],
                        "tickformat": ".0%",
                    },
                },
            )
        )
    return panels

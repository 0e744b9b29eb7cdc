"""What was written where: shares of the written bytes by segment class, to HBM and to flash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lachesis.report.html.plots.panel import INK, Panel, Plot, drawn_text, rounded
from lachesis.report.questions import Question, Run
from lachesis.report.run_plot import CLASS_COLOURS
from lachesis.report.write_shares import tier_share, write_shares
from lachesis.results.measures import TIERS
from lachesis.results.rows import write_column

_CAPTION = (
    "Shares of all written bytes of a run: to HBM on the left, to flash on the right (hatched), by "
    "the class of the segment. What lies on the right wears the flash."
)
_ROW_PX = 24
_FRAME_PX = 170


def writes_plot(families: Sequence[Sequence[Question]]) -> Plot:
    """The plot, a choice a family of questions, a panel an SLO."""
    return Plot(
        "writes",
        "Write composition",
        _CAPTION,
        [
            [panel for question in family if (panel := _panel(question)) is not None]
            for family in families
        ],
    )


def _panel(question: Question) -> Panel | None:
    shares = [(run, found) for run in question.runs if (found := write_shares(run))]
    if not shares:
        return None
    classes = [
        name
        for name in CLASS_COLOURS
        if any((name, tier) in f for _, f in shares for tier in TIERS)
    ]
    reach = max(tier_share(found, tier) for _, found in shares for tier in TIERS)
    end = 25 * -(-reach // 25)
    return Panel(
        title=f"SLO {question.asked['slo']}",
        data=[_bars(shares, name, tier) for tier in TIERS for name in classes],
        layout={
            "barmode": "relative",
            "bargap": 0.25,
            "xaxis": {
                "title": {"text": "◂ to HBM, %  ·  to flash, % ▸"},
                "tickvals": list(range(-100, 101, 50)),
                "ticktext": ["100", "50", "0", "50", "100"],
                "range": [-end - 3, end + 3],
                "zeroline": True,
            },
            "yaxis": {"type": "multicategory", "autorange": "reversed", "showgrid": False},
        },
        height_px=_FRAME_PX + _ROW_PX * len(shares),
        rows=True,
    )


def _bars(
    shares: Sequence[tuple[Run, dict[tuple[str, str], float]]], name: str, tier: str
) -> dict[str, Any]:
    sign = -1.0 if tier == "hbm" else 1.0
    sizes = [found.get((name, tier), 0.0) for _, found in shares]
    told = "HBM" if tier == "hbm" else "flash"
    marker: dict[str, Any] = {
        "color": CLASS_COLOURS[name],
        "line": {"color": INK, "width": 0.6},
    }
    if tier == "hbf":
        marker["pattern"] = {
            "shape": "/",
            "size": 6,
            "solidity": 0.25,
            "fgcolor": "#222222",
            "fillmode": "overlay",
        }
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "legendgroup": name,
        # A class stands once in the legend; the side says the tier.
        "showlegend": tier == "hbf",
        "meta": {"policies": [run["policy"] for run, _ in shares]},
        "x": [rounded(sign * size) for size in sizes],
        "y": [
            [drawn_text(run["memory"]) for run, _ in shares],
            [drawn_text(run["policy"]) for run, _ in shares],
        ],
        "customdata": [
            f"<b>{name}</b> to {told}<br>{drawn_text(run['policy'])}, memory "
            f"{drawn_text(run['memory'])}<br>{size:.3g} % of written bytes, "
            f"{run[write_column(name, tier)] / 1e9:,.4g} GB in the window"
            for (run, _), size in zip(shares, sizes, strict=True)
        ],
        "marker": marker,
        "hovertemplate": "%{customdata}<extra></extra>",
    }

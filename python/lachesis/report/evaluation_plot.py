"""Figures 9 to 12, drawn like the paper's: the same panels, axes and order of bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lachesis.reproduce.cells import (
    BASELINE,
    LACHESIS,
    LOOSE,
    SINGLE_AGENT,
    TIGHT,
    WITH_REVIEWER,
    WITHOUT_RANKING,
    WITHOUT_REVIEWER,
    Cell,
)
from lachesis.reproduce.published_evaluation import evaluation
from lachesis.reproduce.runs import Runs
from lachesis.traces.schema import SegmentClass

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK = "#222222"
# Okabe and Ito's palette; hatches tell the bars apart in grey too.
_POLICIES: dict[str, tuple[str, str, str]] = {
    BASELINE: ("HBM-first", "#BBBBBB", ""),
    WITHOUT_RANKING: ("w/o predictive path", "#56B4E9", "///"),
    LACHESIS: ("Lachesis", "#0072B2", ""),
}
_CLASSES: dict[SegmentClass, tuple[str, str, str]] = {
    SegmentClass.LEAD: ("lead agent", "#0072B2", ""),
    SegmentClass.WORKER: ("worker", "#D55E00", "///"),
    SegmentClass.REVIEWER: ("reviewer", "#CC79A7", "..."),
    SegmentClass.LADEN: ("reasoning-laden", "#D55E00", "///"),
    SegmentClass.STRIPPED: ("reasoning-stripped", "#0072B2", ""),
    SegmentClass.PROMPT: ("prompt", "#999999", "xx"),
}
#: Where the paper cuts its axes.
_YEARS_MAX = 12.0
#: Room over a panel for the numbers of cut-off bars, in points.
_TITLE_PAD = 24.0


def figure_9(runs: Runs) -> Figure:
    """Device-years on the multi-agent traces; SLOs downwards, models and reviewers across."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 5.0), layout="constrained")
    panels = figure.subplots(2, 4, sharey=True)
    for down, slo in enumerate((TIGHT, LOOSE)):
        places = [
            (model, trace)
            for model in evaluation().cells.models
            for trace in (WITHOUT_REVIEWER, WITH_REVIEWER)
        ]
        for across, (model, trace) in enumerate(places):
            axes = panels[down, across]
            _years(axes, runs, trace, model, slo, tuple(_POLICIES))
            reviewer = "w/ reviewer" if trace == WITH_REVIEWER else "w/o reviewer"
            if down == 0:
                axes.set_title(f"{_model(model)}, {reviewer}", pad=_TITLE_PAD)
        panels[down, 0].set_ylabel(f"HBF lifetime (years)\n{slo} SLO")
    _legend(figure, [_POLICIES[policy] for policy in _POLICIES], warranty=True)
    return figure


def figure_10(runs: Runs) -> Figure:
    """Write bytes by class and tier, the first model at the loose SLO."""
    model = evaluation().cells.models[0]
    panels = [
        (f"{reviewer}\n{_POLICIES[policy][0]}", trace, policy)
        for trace, reviewer in ((WITHOUT_REVIEWER, "w/o reviewer"), (WITH_REVIEWER, "w/ reviewer"))
        for policy in _POLICIES
    ]
    classes = (SegmentClass.LEAD, SegmentClass.WORKER, SegmentClass.REVIEWER)
    return _composition(runs, panels, model, LOOSE, classes)


def figure_11(runs: Runs) -> Figure:
    """Device-years on the single-agent traces at the tight SLO; traces down, models across."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 5.0), layout="constrained")
    panels = figure.subplots(2, 2, sharey=True)
    for down, trace in enumerate(SINGLE_AGENT):
        for across, model in enumerate(evaluation().cells.models):
            axes = panels[down, across]
            _years(axes, runs, trace, model, TIGHT, (BASELINE, LACHESIS))
            if down == 0:
                axes.set_title(_model(model), pad=_TITLE_PAD)
        panels[down, 0].set_ylabel(f"HBF lifetime (years)\n{_trace(trace)}")
    _legend(figure, [_POLICIES[BASELINE], _POLICIES[LACHESIS]], warranty=True)
    return figure


def figure_12(runs: Runs) -> Figure:
    """Write bytes by class and tier, the second model on the single-agent traces."""
    model = evaluation().cells.models[1]
    panels = [
        (f"{_trace(trace)}\n{_POLICIES[policy][0]}", trace, policy)
        for trace in SINGLE_AGENT
        for policy in (BASELINE, LACHESIS)
    ]
    classes = (SegmentClass.LADEN, SegmentClass.STRIPPED)
    return _composition(runs, panels, model, TIGHT, classes)


def _years(
    axes: Axes, runs: Runs, trace: str, model: str, slo: str, policies: Sequence[str]
) -> None:
    """Bars of device-years by split and policy, cut off at the axis with the number above."""
    memories = evaluation().cells.memories
    width = 0.8 / len(policies)
    for place, policy in enumerate(policies):
        _, colour, hatch = _POLICIES[policy]
        for group, memory in enumerate(memories):
            years = runs.of(Cell(trace, model, memory, slo), policy).years
            x = group + (place - (len(policies) - 1) / 2) * width
            cut = years.value > _YEARS_MAX
            low, high = years.interval
            axes.bar(
                x, min(years.value, _YEARS_MAX), width=width, color=colour, hatch=hatch,
                edgecolor=_INK, linewidth=0.6,
                yerr=None if cut else [[years.value - low], [high - years.value]],
                error_kw={"elinewidth": 0.8, "ecolor": _INK},
            )  # fmt: skip
            if cut:
                axes.annotate(
                    f"{years.value:.1f}", (x, _YEARS_MAX), (0, 2), textcoords="offset points",
                    ha="center", va="bottom", fontsize=7, rotation=90, color=_INK,
                )  # fmt: skip
    axes.axhline(evaluation().cells.warranty_years, color=_INK, linestyle="--", linewidth=1.0)
    axes.set_ylim(0.0, _YEARS_MAX)
    axes.set_yticks([0, 3, 6, 9, 12])
    axes.set_xticks(range(len(memories)), memories)
    axes.grid(visible=True, axis="y", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)


def _composition(
    runs: Runs,
    panels: Sequence[tuple[str, str, str]],
    model: str,
    slo: str,
    classes: Sequence[SegmentClass],
) -> Figure:
    """Stacked shares of all bytes written: a row of panels for HBM, and one for HBF."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.0 * len(panels) + 1.0, 4.6), layout="constrained")
    grid = figure.subplots(2, len(panels), sharey=True, squeeze=False)
    shown = [*classes, SegmentClass.PROMPT]
    memories = evaluation().cells.memories
    for across, (title, trace, policy) in enumerate(panels):
        for down, tier in enumerate(("hbm", "hbf")):
            axes = grid[down, across]
            for group, memory in enumerate(memories):
                shares = runs.of(Cell(trace, model, memory, slo), policy).composition()
                bottom = 0.0
                for kind in shown:
                    share = 100.0 * shares.get((str(kind), tier), 0.0)
                    _, colour, hatch = _CLASSES[kind]
                    axes.bar(
                        group, share, bottom=bottom, width=0.75, color=colour, hatch=hatch,
                        edgecolor=_INK, linewidth=0.5,
                    )  # fmt: skip
                    bottom += share
            axes.set_ylim(0.0, 100.0)
            axes.set_yticks([0, 50, 100])
            axes.set_xticks(range(len(memories)), memories, rotation=90)
            axes.set_axisbelow(True)
        grid[0, across].set_title(title, fontsize=9)
    grid[0, 0].set_ylabel("HBM")
    grid[1, 0].set_ylabel("HBF")
    figure.supylabel("KV write bytes (% of trace total)", fontsize=10)
    _legend(figure, [_CLASSES[kind] for kind in shown])
    return figure


def _legend(
    figure: Figure, entries: Sequence[tuple[str, str, str]], *, warranty: bool = False
) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=_INK, label=label)
        for label, colour, hatch in entries
    ]
    if warranty:
        label = f"{evaluation().cells.warranty_years:g}-year warranty"
        handles.append(Line2D([], [], color=_INK, linestyle="--", linewidth=1.0, label=label))
    figure.legend(
        handles=handles, loc="outside upper center", ncols=len(handles), frameon=False, fontsize=9
    )


def _model(name: str) -> str:
    return {"llama-4-maverick": "Llama-4-Maverick", "qwen3-235b-a22b": "Qwen3-235B-A22B"}.get(
        name, name
    )


def _trace(name: str) -> str:
    return {"tau3": "τ³-bench", "bfclv4": "BFCLv4"}.get(name, name)

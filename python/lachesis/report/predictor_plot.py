"""Figures of ``predictor evaluate --plots``, as the paper's Figure 7(a) and (b).

``quartiles.png``: lifetimes by quarter of the scores. ``selection.png``: what the k lowest scores
select, at each k, against a random selection.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lachesis.results.files import replaced
from lachesis.results.folders import make_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INK = "#222222"
# From light to dark in the order of the quarters, so that grey tells them apart too.
_QUARTERS = ("#CFE4F2", "#8FC1E0", "#4A95C6", "#0B5A94")
# Okabe and Ito's palette, with a line style and a marker each.
_SHARES = {
    "avoids_longest_k": ("not among the k longest-lived", "#009E73", "^", (0, (5, 2))),
    "shortest_2k": ("among the 2k shortest-lived", "#0072B2", "s", (0, (5, 1.5, 1, 1.5))),
    "shortest_k": ("among the k shortest-lived", "#D55E00", "o", "-"),
}
_STYLE = {"font.size": 10, "axes.titlesize": 10.5}
_SOURCE_CHARACTERS = 48


def draw_evaluation(document: dict[str, Any], folder: str | Path) -> list[str]:
    """Draw both figures into a folder, made if absent; say where they lie, or why one does not.

    Args:
        document: from `results.predictor_document.evaluation_document`; equal ones, equal files.
        folder: where to.

    Raises:
        InputError: the folder or a file cannot be written.
    """
    import matplotlib as mpl

    place = make_folder(folder)
    said = []
    with mpl.rc_context(_STYLE):
        for name, draw in (("quartiles", _quartiles), ("selection", _selection)):
            figure = draw(document)
            if figure is None:
                said.append(f"No figure {name}: fewer than four workers.")
                continue
            path = place / f"{name}.png"
            with replaced(path) as scratch:
                figure.savefig(scratch, format="png", dpi=150, metadata={})
            said.append(f"Drew {path}.")
    return said


def _quartiles(document: dict[str, Any]) -> Figure | None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    quartiles: list[dict[str, Any]] | None = document["quartiles"]
    if quartiles is None:
        return None
    figure = Figure(figsize=(5.6, 4.2), layout="constrained")
    axes = figure.subplots()
    # A lifetime of 0 has no place on a logarithmic axis; it stands at the smallest positive value.
    floor = min((value for each in quartiles for value in each.values() if value > 0), default=1.0)
    for place, (each, colour) in enumerate(zip(quartiles, _QUARTERS, strict=True)):
        p10, q1, middle, q3, p90 = (
            max(each[key], floor) for key in ("p10", "p25", "p50", "p75", "p90")
        )
        axes.bxp(
            [{"med": middle, "q1": q1, "q3": q3, "whislo": p10, "whishi": p90}],
            positions=[place], widths=0.55, showfliers=False, patch_artist=True,
            boxprops={"facecolor": colour, "edgecolor": _INK},
            medianprops={"color": "#E69F00", "linewidth": 2.2},
            whiskerprops={"color": _INK}, capprops={"color": _INK}, manage_ticks=False,
        )  # fmt: skip
        axes.annotate(
            f"{each['p50']:,.0f} s" if each["p50"] >= 10 else f"{each['p50']:.2g} s",
            (place + 0.29, middle), (3, 0), textcoords="offset points", fontsize=8.5,
            va="center", color=_INK,
        )  # fmt: skip
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 300 * low else (1.0,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(-0.6, 3.8)
    axes.set_xticks(range(4), ["Q1\n(lowest score)", "Q2", "Q3", "Q4\n(highest score)"])
    axes.set_ylabel("T_norm of the workers, s (log)")
    axes.set_title(
        f"{_title(document)}\n(box: quartiles and median; whiskers: 10th and 90th percentile)"
    )
    axes.grid(visible=True, axis="y", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _selection(document: dict[str, Any]) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    axes = figure.subplots()
    chosen: list[dict[str, Any]] = list(document["top_k"].values())
    k = [100.0 * each["k"] / document["workers"] for each in chosen]
    handles = []
    for name, (label, colour, marker, style) in _SHARES.items():
        axes.plot(
            k, [100.0 * each[name] for each in chosen], color=colour, marker=marker,
            linestyle=style, markersize=5, linewidth=1.8,
        )  # fmt: skip
        axes.plot(
            k, [100.0 * each["random"][name] for each in chosen], color=colour, linewidth=1.1,
            linestyle=(0, (1, 1.6)),
        )  # fmt: skip
        handles.append(
            Line2D([], [], color=colour, marker=marker, linestyle=style, markersize=5, label=label)
        )
    handles.append(
        Line2D([], [], color=_INK, linestyle=(0, (1, 1.6)), label="the same, selected at random")
    )
    axes.set_xlim(0, 62)
    axes.set_ylim(0, 104)
    axes.set_xlabel("k, % of workers")
    axes.set_ylabel("share of the selection, %")
    axes.grid(visible=True, color="#DDDDDD", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(_title(document))
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _title(document: dict[str, Any]) -> str:
    source: str = document["provenance"]["trace_source"]
    if len(source) > _SOURCE_CHARACTERS:
        source = f"{source[: _SOURCE_CHARACTERS - 1]}…"
    tau = document["kendall_tau"]
    told = "" if tau is None else f", τ = {tau:.2f}"
    return f"{source}: {document['workers']:,} workers, {document['kind']}{told}"

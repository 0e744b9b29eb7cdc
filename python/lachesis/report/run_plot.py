"""The plot of a run: device-years by policy, and what was written where.

On the left a bar a policy with its 95 % interval, against the warranty. On the right what each
policy writes, as shares of its written bytes: to HBM leftwards, to flash rightwards, by class.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lachesis.errors import InputError
from lachesis.report.run_summary import years_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")

#: Okabe and Ito's palette: told apart with every common colour vision, and in grey by its order.
CLASS_COLOURS = {
    "prompt": "#999999",
    "reasoning-laden": "#E69F00",
    "reasoning-stripped": "#F0E442",
    "lead": "#0072B2",
    "worker": "#D55E00",
    "reviewer": "#CC79A7",
    "summary": "#009E73",
}
BAR_COLOUR = "#56B4E9"
INK = "#222222"
WARRANTY_COLOUR = "#A50026"
#: Beyond this span of device-years a linear axis hides how the shorter lives compare with the
#: warranty; in every plot.
LINEAR_SPAN = 8.0
_SOURCE_CHARACTERS = 60


def plot_format(path: str | Path) -> str:
    """The format that a file's ending asks for.

    Raises:
        InputError: none of png, svg and pdf.

    Example:
        >>> plot_format("run.svg")
        'svg'
    """
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise InputError(
            f"a plot's name ends in {', '.join('.' + name for name in FORMATS)}", path=path
        )
    return ending


def plot_run(document: dict[str, Any], path: Path) -> None:
    """Draw a run's document into a file; equal documents give equal files.

    Args:
        document: from `lachesis.results.run_document`.
        path: where to; its ending names the format.
    """
    import matplotlib as mpl

    no_dates: dict[str, dict[str, Any]] = {
        "png": {},
        "svg": {"Date": None},
        "pdf": {"CreationDate": None},
    }
    ending = plot_format(path)
    # Identifiers in an SVG are made when it is written.
    with mpl.rc_context({"svg.hashsalt": "lachesis"}):
        run_figure(document).savefig(path, format=ending, dpi=150, metadata=no_dates[ending])


def run_figure(document: dict[str, Any]) -> Figure:
    """The plot of a run's document, to be shown or saved."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    runs: list[dict[str, Any]] = document["runs"]
    with mpl.rc_context({"font.size": 10, "hatch.linewidth": 0.6}):
        figure = Figure(figsize=(11.0, 1.7 + 0.6 * len(runs)), layout="constrained")
        lifetime, written = figure.subplots(1, 2, sharey=True, width_ratios=(1.0, 1.25))
        _draw_lifetimes(lifetime, runs)
        _draw_writes(written, runs)
        figure.suptitle(_title(document), fontsize=10.5, color=INK)
    return figure


def _draw_lifetimes(axes: Axes, runs: list[dict[str, Any]]) -> None:
    warranty: float = runs[0]["warranty_years"]
    rated = [run["hbf_lifetime_years"] for run in runs if run["hbf_lifetime_years"] is not None]
    lowest, highest = min([*rated, warranty]), max([*rated, warranty])
    logarithmic = highest > LINEAR_SPAN * lowest
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(lowest / 3, highest * (highest / lowest) ** 0.5)
    else:
        axes.set_xlim(0, highest * 1.36)
    for row, run in enumerate(runs):
        years = run["hbf_lifetime_years"]
        if years is None:
            axes.annotate(
                "no device-years", (warranty, row), (7, 0), textcoords="offset points", va="center",
                style="italic", color=INK,
            )  # fmt: skip
            continue
        # A bar's length means nothing on an axis without a zero.
        if logarithmic:
            axes.plot(years, row, "o", markersize=9, color=BAR_COLOUR, markeredgecolor=INK)
        else:
            axes.barh(row, years, height=0.6, color=BAR_COLOUR, edgecolor=INK, linewidth=0.6)
        low, high = run["hbf_lifetime_years_ci95"] or (years, years)
        axes.errorbar(years, row, xerr=[[years - low], [high - years]], color=INK, capsize=3)
        label = years_text(years)
        if run["gain_over_hbm_first"] is not None and run["policy"] != "hbm-first":
            label += f"  ({run['gain_over_hbm_first']:.2f}×)"
        axes.annotate(
            label, (high, row), (8, 0), textcoords="offset points", va="center", weight="bold"
        )
    axes.axvline(warranty, color=WARRANTY_COLOUR, linestyle=(0, (5, 3)), linewidth=1.6, zorder=4)
    axes.text(
        warranty, 1.01, f"{warranty:g}-year warranty", transform=axes.get_xaxis_transform(),
        ha="center", va="bottom", color=WARRANTY_COLOUR, fontsize=9,
    )  # fmt: skip
    axes.set_yticks(range(len(runs)), [_policy_label(run) for run in runs])
    axes.set_ylim(len(runs) - 0.5, -0.5)
    axes.set_xlabel(f"device-years with 95 % interval{' (logarithmic)' if logarithmic else ''}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _draw_writes(axes: Axes, runs: list[dict[str, Any]]) -> None:
    shown = [
        name
        for name in CLASS_COLOURS
        if any(sum(run["write_bytes_by_class"][name].values()) for run in runs)
    ]
    reach = {"hbm": 0.0, "hbf": 0.0}
    for row, run in enumerate(runs):
        total = run["hbm_write_bytes"] + run["hbf_write_bytes"]
        ends = {"hbm": 0.0, "hbf": 0.0}
        for name in shown if total else ():
            for tier, sign in (("hbm", -1.0), ("hbf", 1.0)):
                share = 100.0 * run["write_bytes_by_class"][name][tier] / total
                axes.barh(
                    row, sign * share, left=sign * ends[tier], height=0.6,
                    color=CLASS_COLOURS[name], edgecolor=INK, linewidth=0.5,
                    hatch="////" if tier == "hbf" else None,
                )  # fmt: skip
                ends[tier] += share
        for tier, sign in (("hbm", -1.0), ("hbf", 1.0)):
            reach[tier] = max(reach[tier], ends[tier])
            axes.annotate(
                f"{ends[tier]:.0f} %" if ends[tier] >= 1.0 or not ends[tier] else "< 1 %",
                (sign * ends[tier], row), (sign * 5, 0), textcoords="offset points",
                ha="right" if sign < 0 else "left", va="center", fontsize=9,
            )  # fmt: skip
    axes.axvline(0, color=INK, linewidth=1.2)
    room = 0.13 * (reach["hbm"] + reach["hbf"]) + 4.0
    axes.set_xlim(-reach["hbm"] - room, reach["hbf"] + room)
    ticks = [
        tick for tick in range(-100, 101, 25) if axes.get_xlim()[0] < tick < axes.get_xlim()[1]
    ]
    axes.set_xticks(ticks, [str(abs(tick)) for tick in ticks])
    axes.set_xlabel("share of written bytes, %")
    for side, words in (("right", "to HBM  "), ("left", "  to flash (hatched)")):
        axes.text(
            0.0, 1.01, words, transform=axes.get_xaxis_transform(), ha=side, va="bottom",
            fontsize=9, color=INK,
        )  # fmt: skip
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    _add_legend(axes, shown)


def _add_legend(axes: Axes, shown: list[str]) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=CLASS_COLOURS[name], edgecolor=INK, linewidth=0.5, label=name)
        for name in shown
    ]
    if handles:
        axes.legend(
            handles=handles, loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False,
            title="segment class", alignment="left", handlelength=1.2,
        )  # fmt: skip


def _policy_label(run: dict[str, Any]) -> str:
    faults = []
    if not run["meets_slo"]:
        faults.append("misses SLO")
    if not run["settled"]:
        faults.append("not settled")
    return f"{run['policy']}\n({', '.join(faults)})" if faults else str(run["policy"])


def _title(document: dict[str, Any]) -> str:
    run = document["runs"][0]
    source: str = document["provenance"]["trace_source"]
    if run["load"] == "closed":
        loads = sorted({each["load_sessions"] for each in document["runs"]})
        load = f"load {' to '.join(f'{end:,}' for end in dict.fromkeys((loads[0], loads[-1])))}"
        load += " sessions"
    elif run["load"] == "poisson":
        load = f"{run['load_sessions_per_s']:g} sessions/s"
    else:
        load = "recorded arrivals"
    limits = f"p99 TPOT {run['slo_tpot_p99_s'] * 1e3:g} ms"
    place = source if len(source) <= _SOURCE_CHARACTERS else source[: _SOURCE_CHARACTERS - 1] + "…"
    return f"{place} · {run['model']} · memory {run['memory']} · {limits} · {load}"

"""Plots of many runs, from their table, for notebooks: what the page draws, by the same rules.

A panel is a question (`lachesis.report.questions`), the seeds of which are repetitions: drawn is
their mean, and whiskers reach from the least to the greatest. Loads stand in panels of their own,
or along the axis where they are more than the memory splits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import fill, wrap
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from lachesis.errors import InputError
from lachesis.report.html.plots.load import is_common
from lachesis.report.html.plots.years import axis_title, years_axis
from lachesis.report.infeasible_words import infeasible_sentence
from lachesis.report.load_curves import LoadCurve, load_curves
from lachesis.report.panel_axes import (
    class_patch,
    draw_loads,
    draw_writes,
    draw_years_by_load,
    draw_years_by_memory,
    legend,
    policy_line,
    years_legend,
)
from lachesis.report.policy_style import policy_styles
from lachesis.report.questions import (
    DIMENSIONS,
    Question,
    Run,
    dimensions_that_vary,
    in_policy_order,
    questions,
)
from lachesis.report.repetitions import over_seeds
from lachesis.report.run_plot import BAR_COLOUR, CLASS_COLOURS, INK
from lachesis.report.write_shares import write_shares
from lachesis.results.rows import infeasible_runs, measured_runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Shown = TypeVar("Shown")

_PANELS_MAX = 12
_COLUMNS_MAX = 3
_TITLE_CHARACTERS = 62
_NARROW_TITLE_CHARACTERS = 40
_ROW_INCHES = 0.2
_CHARACTERS_AN_INCH = 14


def device_years_figure(runs: pa.Table) -> Figure:
    """Device-years with intervals and the warranty, a line a policy.

    Against the memory split, a panel a question; against the load, a panel a split, where more
    loads were given than splits. Hollow symbols miss their SLO.

    Args:
        runs: columns as in `lachesis.results.rows.run_columns`.

    Raises:
        InputError: no run has device-years.
    """
    found = _questions(runs)
    rated = [
        question
        for question in found
        if any(run["hbf_lifetime_years"] is not None for run in question.runs)
    ]
    if not rated:
        raise InputError("no run has device-years; the column notes says why")
    every = [run for question in rated for run in question.runs]
    shown = [run for run in every if run["hbf_lifetime_years"] is not None]
    policies = in_policy_order(run["policy"] for run in shown)
    styles = policy_styles(policies)
    curves = load_curves(rated)
    loads = {run["load_sessions"] for curve in curves for run in curve.runs}
    if len(loads) > len({run["memory"] for run in every}):

        def draw_curve(axes: Axes, curve: LoadCurve) -> None:
            axis = years_axis(curve.runs)
            present = [name for name in policies if name in {run["policy"] for run in curve.runs}]
            draw_years_by_load(axes, curve.runs, present, styles, axis)
            axes.set_ylabel(axis_title(axis))

        figure = _panels(curves, draw_curve, _curve_title, every)
    else:

        def draw(axes: Axes, question: Question) -> None:
            axis = years_axis(question.runs)
            draw_years_by_memory(axes, question.runs, question.memories, policies, styles, axis)
            axes.set_ylabel(axis_title(axis))

        figure = _panels(rated, draw, _titles(found), every)
    years_legend(figure, policies, styles, every)
    _say_what_is_left_out(figure, runs)
    return figure


def load_figure(runs: pa.Table) -> Figure:
    """The load that the SLO admits by memory split: a bar where all policies have the same.

    Raises:
        InputError: no load was searched for.
    """
    found = _questions(runs)
    searched = [
        question
        for question in found
        if any(run["admitted_sessions"] is not None for run in question.runs)
    ]
    if not searched:
        raise InputError('every load was given: a load is drawn where it is searched for ("auto")')
    every = [run for question in searched for run in question.runs]
    styles = policy_styles(run["policy"] for run in every)
    apart = [question for question in searched if not is_common(question)]

    def draw(axes: Axes, question: Question) -> None:
        memories = question.memories
        if question in apart:
            draw_loads(axes, question.runs, memories, styles, "admitted_sessions")
        else:
            loads = {run["memory"]: run["admitted_sessions"] or 0 for run in question.runs}
            bars = axes.bar(
                range(len(memories)), [loads[name] for name in memories], 0.6, color=BAR_COLOUR,
                edgecolor=INK, linewidth=0.6,
            )  # fmt: skip
            axes.bar_label(bars, fmt="{:,.0f}", fontsize=8, padding=2)
            axes.set_xticks(range(len(memories)), memories)
            axes.set_xlabel("memory split, HBM / HBF stacks")
        highest = 1.0
        for run in question.runs:
            low, high = run["admitted_range"] or (run["admitted_sessions"] or 0,) * 2
            highest = max(highest, high)
            if high > low:
                axes.vlines(memories.index(run["memory"]), low, high, color=INK)
        axes.set_ylim(0, 1.12 * highest)
        axes.set_xlim(-0.5, len(memories) - 0.5)
        axes.set_ylabel("live sessions of the node")

    figure = _panels(searched, draw, _titles(found), every)
    if apart:
        used = in_policy_order(run["policy"] for question in apart for run in question.runs)
        legend(figure, [policy_line(policy, styles[policy]) for policy in used])
    _say_what_is_left_out(figure, runs)
    return figure


def writes_figure(runs: pa.Table) -> Figure:
    """What is written, by class: to HBM leftwards, to flash rightwards; a bar a split and policy.

    Raises:
        InputError: nothing was written.
    """
    found = _questions(runs)
    shares = {
        place: rows
        for place, question in enumerate(found)
        if (rows := [(run, share) for run in question.runs if (share := write_shares(run))])
    }
    if not shares:
        raise InputError("nothing was written")
    used: set[str] = set()

    def draw(axes: Axes, place: int) -> None:
        used.update(draw_writes(axes, shares[place]))

    title = _titles(found)
    figure = _panels(
        list(shares),
        draw,
        lambda place: title(found[place]),
        [run for rows in shares.values() for run, _ in rows],
        height=1.5 + _ROW_INCHES * max(map(len, shares.values())),
        told="Shares of all that the seeds wrote.",
        width=_NARROW_TITLE_CHARACTERS,
    )
    legend(figure, [class_patch(name) for name in CLASS_COLOURS if name in used])
    _say_what_is_left_out(figure, runs)
    return figure


def _say_what_is_left_out(figure: Figure, runs: pa.Table) -> None:
    """Above the figure, how many runs cannot be run, and why."""
    infeasible = infeasible_runs(runs).to_pylist()
    if not infeasible:
        return
    sentence = infeasible_sentence(infeasible).replace("$", r"\$")
    told = fill(sentence, round(_CHARACTERS_AN_INCH * figure.get_figwidth()))
    figure.suptitle(f"{figure.get_suptitle()}\n{told}".strip(), fontsize=9, color=INK)


def _questions(runs: pa.Table) -> list[Question]:
    return over_seeds(questions(measured_runs(runs).to_pylist()))


def _titles(found: Sequence[Question]) -> Callable[[Question], list[str]]:
    """Words for a question: trace, model, SLO and load, and what else sets questions apart."""
    more = [name for name in ("overrides", "variant") if name in dimensions_that_vary(found)]

    def title(question: Question) -> list[str]:
        run, asked = question.runs[0], question.asked
        words = [run["trace"], run["model"], run["slo"], f"load {asked['load']}"]
        words += [f"{DIMENSIONS[name]}: {asked[name]}" for name in more]
        return words

    return title


def _curve_title(curve: LoadCurve) -> list[str]:
    run = curve.runs[0]
    fixed = [run["trace"], run["model"], run["slo"], f"memory {run['memory']}"]
    changed = ", ".join(run["overrides"])
    return [*fixed, changed] if changed and changed in curve.told else fixed


def _lines(words: Sequence[str], width: int) -> str:
    """Words with dots between them, in lines of about so many characters.

    Example:
        >>> print(_lines(["corpus", "model", "tight"], 15))
        corpus · model
        tight
    """
    lines: list[str] = []
    for word in words:
        joined = f"{lines[-1]} · {word}" if lines else word
        if lines and len(joined) <= width:
            lines[-1] = joined
        else:
            lines += wrap(word, width)
    return "\n".join(lines)


def _panels(
    every: Sequence[Shown],
    draw: Callable[[Axes, Shown], None],
    title: Callable[[Shown], list[str]],
    runs: Sequence[Run],
    *,
    height: float = 3.2,
    told: str = "Means over the seeds; whiskers reach from the least to the greatest.",
    width: int = _TITLE_CHARACTERS,
) -> Figure:
    """A figure with a panel for each, and a line on what the seeds are."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    shown = every[:_PANELS_MAX]
    across = min(_COLUMNS_MAX, len(shown))
    down = -(-len(shown) // across)
    with mpl.rc_context({"font.size": 9, "hatch.linewidth": 0.6}):
        size = (max(5.2, 4.4 * across), 0.9 + height * down)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(down, across, squeeze=False)
        for axes in grid.flat[len(shown) :]:
            axes.set_visible(False)
        for axes, each in zip(grid.flat, shown, strict=False):
            draw(axes, each)
            # Matplotlib reads what stands between dollars as mathematics.
            words = _lines(title(each), width).replace("$", r"\$")
            axes.set_title(words, fontsize=8.5, color=INK)
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(visible=True, color="#DDDDDD", linewidth=0.6)
            axes.set_axisbelow(True)
        said = []
        if any(run["repetitions"] > 1 for run in runs):
            said.append(told)
        if len(every) > len(shown):
            said.append(f"{len(every) - len(shown):,} more panels are not drawn.")
        if said:
            figure.suptitle(" ".join(said), fontsize=9, color=INK)
    return figure

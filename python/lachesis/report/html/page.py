"""Puts the page together: one file that needs no network.

Plotly's own JavaScript is embedded once; a content security policy lets nothing else run and
nothing be fetched. Whatever comes from outside is escaped: by the template engine in the page, by
JSON in the data, and by `drawn_text` in plots. Equal results give equal bytes.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

from lachesis.report.html.configuration import configuration
from lachesis.report.html.phrases import count
from lachesis.report.html.plots.comparison import comparison_plot
from lachesis.report.html.plots.distribution import distribution_plot
from lachesis.report.html.plots.lifetime import lifetime_plot
from lachesis.report.html.plots.load import load_plot
from lachesis.report.html.plots.load_curve import load_curve_plot
from lachesis.report.html.plots.panel import Plot
from lachesis.report.html.plots.timeline import timeline_plot
from lachesis.report.html.plots.writes import writes_plot
from lachesis.report.html.table import run_table
from lachesis.report.html.words import answer
from lachesis.report.load_curves import load_curves
from lachesis.report.over_time import runs_over_time
from lachesis.report.policy_style import policy_styles
from lachesis.report.questions import (
    DIMENSIONS,
    Question,
    Run,
    dimensions_that_vary,
    families,
    in_policy_order,
    questions,
)
from lachesis.results.files import write_text
from lachesis.results.results_directory import StoredResults

_SCRIPTS = ("theme.js", "walk.js", "plots.js", "table.js")
# Beyond it the paragraphs fold away.
_PARAGRAPHS_OPEN = 6


def write_report(results: StoredResults, path: str | Path, *, title: str) -> None:
    """Write the page, whole or not at all.

    Raises:
        InputError: the place cannot be written.
    """
    write_text(path, report_page(results, title=title))


def report_page(results: StoredResults, *, title: str) -> str:
    """The page as HTML.

    Args:
        results: from `lachesis.results.results_directory.read_stored_results`.
        title: names what is reported on.
    """
    # The command's --help needs neither engine nor plots.
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    runs: list[Run] = results.measured.to_pylist()
    found = questions(runs)
    plots = _plots(results, runs, found)
    plotly = resources.files("plotly").joinpath("package_data/plotly.min.js").read_text("utf-8")
    script = "\n".join(_own_file(name) for name in _SCRIPTS)
    environment = Environment(
        loader=PackageLoader("lachesis.report", "html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    page: str = environment.get_template("page.html").render(
        title=title,
        version=str(results.origin.get("version", "")),
        answer=answer(
            runs,
            unfinished=results.unfinished,
            cells=results.cells,
            failures=results.failures,
            infeasible=results.infeasible.to_pylist(),
        ),
        paragraphs_open=_PARAGRAPHS_OPEN,
        has_runs=bool(runs),
        plots=plots,
        selectors=_selectors(found),
        policies=in_policy_order(run["policy"] for run in runs),
        configuration=configuration(results.origin),
        comparison=[_compared(row) for row in results.comparison],
        compared=_compared_sentence(results.comparison),
        data=_data(plots, found, runs),
        style=Markup(_own_file("style.css")),
        plotly=Markup(plotly),
        script=Markup(script),
        script_hashes=[_hash(plotly), _hash(script)],
    )
    return page


def _plots(results: StoredResults, runs: Sequence[Run], found: Sequence[Question]) -> list[Plot]:
    groups = families(found)
    styles = policy_styles(run["policy"] for run in runs)
    plots: list[Plot | None] = [comparison_plot(results.comparison)]
    if runs:
        plots += [
            lifetime_plot(groups, styles),
            writes_plot(groups),
            load_plot(groups, styles),
            load_curve_plot(load_curves(found), styles),
        ]
    if results.timelines is not None:
        plots.append(timeline_plot(runs_over_time(results.timelines, runs), styles))
    if results.lifetimes is not None:
        plots.append(distribution_plot(results.lifetimes))
    return [plot for plot in plots if plot is not None and any(plot.choices)]


def _selectors(found: Sequence[Question]) -> list[dict[str, Any]]:
    """What the reader chooses between: every dimension that varies, the SLO apart."""
    return [
        {
            "name": name,
            "label": DIMENSIONS[name],
            "options": list(dict.fromkeys(question.asked[name] for question in found)),
        }
        for name in dimensions_that_vary(found)
        if name != "slo"
    ]


def _data(plots: Sequence[Plot], found: Sequence[Question], runs: Sequence[Run]) -> dict[str, Any]:
    return {
        "families": [
            {name: words for name, words in family[0].asked.items() if name != "slo"}
            for family in families(found)
        ],
        "plots": [plot.to_json() for plot in plots],
        "table": run_table(runs),
    }


def _compared_sentence(comparison: Sequence[Mapping[str, Any]]) -> str:
    met, total = sum(bool(row["within"]) for row in comparison), len(comparison)
    if not total:
        return ""
    if met == total:
        one = "The published figure is met."
        return one if total == 1 else f"All {total:,} published figures are met."
    return f"{met:,} of {count(total, 'published figure')} {'is' if met == 1 else 'are'} met."


def _compared(row: Mapping[str, Any]) -> dict[str, Any]:
    published = row["published"]
    ends = published if isinstance(published, list) else [published]
    deviation = row["deviation"]
    return {
        "figure": row["figure"],
        "name": row["name"],
        "published": " to ".join(_number(end) for end in ends),
        "ours": _number(row["ours"]),
        "deviation": f"{deviation:+.2%}" if isinstance(deviation, (int, float)) else "–",
        "within": bool(row["within"]),
        "note": row.get("note") or "",
    }


def _number(value: object) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return "–" if value is None else str(value)


def _own_file(name: str) -> str:
    return resources.files("lachesis.report.html").joinpath(name).read_text("utf-8")


def _hash(script: str) -> str:
    return f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}"

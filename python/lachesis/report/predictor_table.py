"""The tables and sentences of ``predictor evaluate``, readable at 80 columns."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lachesis.report.run_summary import quality_sentences

_NONE = "–"
# With fewer workers or sessions than these, a figure is an anecdote, and the reader is told.
_WORKERS_FEW = 100
_SESSIONS_FEW = 10
_SHOWN_FRACTIONS = ("0.05", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6")


def print_evaluation(console: Console, document: dict[str, Any]) -> None:
    """Print an evaluation from the document of `results.predictor_document`."""
    origin = document["provenance"]
    for sentence in (headline(document), f"Reference clock, seed {origin['seed']}."):
        console.print(Text(sentence))
    console.print()
    console.print(order_table(document))
    console.print(selection_table(document))
    if document["quartiles"] is not None:
        console.print(quartile_table(document))
    for sentence in quality_sentences(origin["trace_quality"]):
        console.print(Text(sentence))
    for warning in warnings(document):
        console.print(Text.assemble(("warning: ", "bold yellow"), warning))


def headline(document: dict[str, Any]) -> str:
    """What was scored, by what."""
    source = document["provenance"]["trace_source"]
    workers, sessions = (_count(document[key], key) for key in ("workers", "sessions"))
    how = "; no worker is scored by a model that saw its session"
    if document["kind"] == "instruction-length":
        how = ", the baseline that is not trained"
    return f"{source}: {workers} in {sessions}, kind {document['kind']}{how}."


def order_table(document: dict[str, Any]) -> Padding:
    """Kendall's tau of all workers and within each workload."""
    table = _table("\nworkers of")
    for header in ("\nworkers", "\nsessions", "Kendall's\ntau", "95 %\ninterval"):
        table.add_column(header, justify="right", no_wrap=True)
    rows = dict(document["by_workload"])
    if len(rows) > 1:
        rows["all"] = document
    for name, order in rows.items():
        interval = order["kendall_tau_ci95"]
        table.add_row(
            Text(name, style="bold" if order is document else ""),
            f"{order['workers']:,}",
            f"{order['sessions']:,}",
            _number(order["kendall_tau"]),
            _NONE if interval is None else " to ".join(_number(end) for end in interval),
        )
    return Padding(table, (0, 0, 1, 0))


def selection_table(document: dict[str, Any]) -> Padding:
    """What the k lowest scores select, and in brackets what chance would."""
    table = _table("\nlowest scores")
    for header in (
        "\nk",
        "among the\nk shortest",
        "among the\n2k shortest",
        "not among the\nk longest",
    ):
        table.add_column(header, justify="right", no_wrap=True)
    for fraction in _SHOWN_FRACTIONS:
        chosen = document["top_k"][fraction]
        table.add_row(
            f"{float(fraction):.0%}",
            f"{chosen['k']:,}",
            *(
                f"{chosen[name]:.1%} ({chosen['random'][name]:.0%})"
                for name in ("shortest_k", "shortest_2k", "avoids_longest_k")
            ),
        )
    table.caption = "In brackets: a random selection."
    table.caption_justify = "left"
    return Padding(table, (0, 0, 1, 0))


def quartile_table(document: dict[str, Any]) -> Padding:
    """Lifetimes by quarter of the scores, and how surely each outlives the one before."""
    table = _table("\nscores")
    for header in ("\nworkers", "T_norm, s\np10", "\nmedian", "\np90", "outlives the\none before"):
        table.add_column(header, justify="right", no_wrap=True)
    names = ("Q1, lowest", "Q2", "Q3", "Q4, highest")
    separability = (None, *document["quartile_separability"])
    for name, quartile, surely in zip(names, document["quartiles"], separability, strict=True):
        table.add_row(
            name,
            f"{quartile['workers']:,}",
            *(f"{quartile[key]:,.1f}" for key in ("p10", "p50", "p90")),
            _number(surely),
        )
    return Padding(table, (0, 0, 1, 0))


def warnings(document: dict[str, Any]) -> list[str]:
    """What a reader must know before quoting the figures."""
    said = []
    if document["workers"] < _WORKERS_FEW or document["sessions"] < _SESSIONS_FEW:
        workers, sessions = (_count(document[key], key) for key in ("workers", "sessions"))
        said.append(f"these figures rest on {workers} of {sessions}: too few to tell")
    if document["kendall_tau"] is None:
        said.append("no order to measure: all scores, or all lifetimes, are alike")
    if document["workers_left_out"]:
        left_out = _count(document["workers_left_out"], "workers")
        said.append(f"left out {left_out} of sessions that the predictor was trained on")
    return said


def _table(first: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    # The rest of the widest table takes 44 columns; names give way to numbers.
    table.add_column(first, no_wrap=True, overflow="ellipsis", max_width=36)
    return table


def _number(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"


def _count(number: int, plural: str) -> str:
    return f"{number:,} {plural if number != 1 else plural.removesuffix('s')}"

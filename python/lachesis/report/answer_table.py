"""An answer to a question the other way round: its sentences, and the runs that it rests on."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lachesis.questions import Answer
from lachesis.questions.answer import Run
from lachesis.report.infeasible_words import infeasible_sentence
from lachesis.report.run_summary import years_text

_NONE = "–"


def print_answer(console: Console, answer: Answer) -> None:
    """Print the findings, then every run in the order in which they were run."""
    for finding in answer.findings:
        console.print(Text(finding.sentence, style="bold" if finding.found else ""))
    if answer.infeasible:
        console.print(Text(infeasible_sentence(answer.infeasible)))
    if not answer.runs:
        return
    console.print()
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    named = "scenario" in answer.runs[0]
    if named:
        table.add_column("\n", no_wrap=True)
    table.add_column("\npolicy", overflow="fold")
    for header in (
        "\nsplit",
        "HBM,\nGB/GPU",
        "\nload",
        "device-\nyears",
        "TPOT p99,\nms",
        "meets\nSLO",
    ):
        table.add_column(header, justify="right", no_wrap=True)
    priced = "cost_per_gpu" in answer.runs[0]
    if priced:
        table.add_column("cost,\na GPU", justify="right", no_wrap=True)
    for run in answer.runs:
        front = [run["scenario"]] if named else []
        table.add_row(
            *front,
            run["policy"],
            run["memory"],
            f"{run['hbm_gb_per_gpu']:g}",
            _load(run),
            _NONE if run["hbf_lifetime_years"] is None else years_text(run["hbf_lifetime_years"]),
            _NONE if run["tpot_p99_s"] is None else f"{run['tpot_p99_s'] * 1e3:.1f}",
            "yes" if run["meets_slo"] else "no",
            *([f"{run['cost_per_gpu']:,.6g}"] if priced else []),
        )
    console.print(table)


def _load(run: Run) -> str:
    return _NONE if run["load_sessions"] is None else f"{run['load_sessions']:,}"

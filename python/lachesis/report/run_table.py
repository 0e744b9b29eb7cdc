"""The tables of a run, readable at 80 columns."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lachesis.report.run_summary import headline, sentences, warnings, years_text

_NONE = "–"


def print_run(console: Console, document: dict[str, Any]) -> None:
    """Print headline, tables, sentences and warnings of a run's document."""
    # Plain text throughout: names of files may hold what looks like markup.
    console.print(Text(headline(document)))
    console.print()
    console.print(lifetime_table(document))
    console.print(service_table(document))
    for sentence in sentences(document):
        console.print(Text(sentence))
    for warning in warnings(document):
        console.print(Text.assemble(("warning: ", "bold yellow"), warning))


def lifetime_table(document: dict[str, Any]) -> Padding:
    """Device-years with their interval, and what decides them: load and flash writes."""
    table = _table()
    for header in ("load", "device-\nyears", "95 %\ninterval", "gain", "to HBF,\nMB/s/GPU"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("HBM\nshare", justify="right", no_wrap=True)
    for run in document["runs"]:
        years, interval = run["hbf_lifetime_years"], run["hbf_lifetime_years_ci95"]
        gain = run["gain_over_hbm_first"]
        table.add_row(
            run["policy"],
            _load(run),
            _NONE if years is None else years_text(years),
            _NONE if interval is None else " to ".join(years_text(end) for end in interval),
            _NONE if gain is None else f"{gain:.2f}x",
            _rate(run["hbf_write_bytes_per_s_per_gpu"] / 1e6),
            _percent(run["hbm_write_share"]),
        )
    return Padding(table, (0, 0, 1, 0))


def service_table(document: dict[str, Any]) -> Padding:
    """Latencies, throughput, how full the memory is, and what was written again."""
    table = _table()
    headers = (
        "TPOT p99,\nms", "TTFT p99,\ns", "meets\nSLO", "output,\ntokens/s", "HBM\nfull",
        "HBF\nfull",
    )  # fmt: skip
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    for run in document["runs"]:
        table.add_row(
            run["policy"],
            _number(run["tpot_p99_s"], 1e3, ".1f"),
            _number(run["ttft_p99_s"], 1.0, ".2f"),
            "yes" if run["meets_slo"] else "no",
            f"{run['output_tokens_per_s']:,.0f}",
            _percent(run["hbm_occupancy_mean"]),
            _percent(run["hbf_occupancy_mean"]),
        )
    return Padding(table, (0, 0, 1, 0))


def _table() -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("\npolicy", no_wrap=True)
    return table


def _load(run: dict[str, Any]) -> str:
    if run["load"] == "closed":
        return f"{run['load_sessions']:,}"
    return f"{run['load_sessions_per_s']:g}/s" if run["load"] == "poisson" else "recorded"


def _number(value: float | None, factor: float, form: str) -> str:
    return _NONE if value is None else format(value * factor, form)


def _percent(share: float | None) -> str:
    return _NONE if share is None else f"{share:.1%}"


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"

"""The tables and sentences of ``trace stats``, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lachesis.report.run_summary import quality_sentences

_NONE = "–"
_PLURALS = {
    "reasoning-stripped": "Reasoning-stripped segments",
    "reasoning-laden": "reasoning-laden ones",
    "lead": "Leads",
    "worker": "workers",
    "reviewer": "reviewers",
}


def print_stats(console: Console, document: dict[str, Any]) -> None:
    """Print what a trace's contexts look like, from the document of `results.stats_document`."""
    workloads: list[dict[str, Any]] = document["workloads"]
    origin = document["provenance"]
    console.print(Text(f"{origin['trace_source']}, on the reference clock, seed {origin['seed']}"))
    console.print()
    console.print(size_table(workloads))
    for workload in workloads:
        console.print(Text(workload["workload"], style="bold"))
        console.print(class_table(workload))
        for sentence in comparison_sentences(workload):
            console.print(Text(sentence))
        console.print()
    for sentence in quality_sentences(origin["trace_quality"]):
        console.print(Text(sentence))
    console.print(
        Text(
            "Tokens written: input that no context held, and output; a prompt that sessions share "
            "once (trace import: in each). "
            "T_norm: seconds that a segment must stay readable on the reference clock. "
            "rho: tokens read from it per token written to it.",
            style="dim",
        )
    )


def size_table(workloads: list[dict[str, Any]]) -> Padding:
    """Sessions, turns, agents, requests and tokens of each workload, as in the paper's Table 3."""
    table = _table()
    table.add_column("\nworkload", no_wrap=True, overflow="ellipsis")
    for name in (
        "\nsessions", "\nturns", "\nagents", "\nrequests", "tokens\nprocessed", "tokens\nwritten",
        "of it\noutput",
    ):  # fmt: skip
        table.add_column(name, justify="right", no_wrap=True)
    for each in workloads:
        table.add_row(
            Text(each["workload"]),
            *(f"{each[key]:,}" for key in ("sessions", "turns", "agents", "requests")),
            f"{each['tokens_processed']:,}",
            f"{each['tokens_written']:,}",
            _share(each["output_tokens"], each["tokens_written"]),
        )
    return Padding(table, (0, 0, 1, 0))


def class_table(workload: dict[str, Any]) -> Table:
    """Segments, writes, lifetimes and reuse of each class."""
    table = _table()
    table.add_column("\nclass", no_wrap=True)
    headers = (
        "\nsegments", "of all\nwrites", "tokens\nmedian", "\nmean", "T_norm, s\np10", "\nmedian",
        "\np90", "rho\nmedian",
    )  # fmt: skip
    for name in headers:
        table.add_column(name, justify="right", no_wrap=True)
    for name, each in workload["classes"].items():
        life, tokens = each["t_norm_s"], each["tokens_per_segment"]
        table.add_row(
            name,
            f"{each['segments']:,}",
            _share(each["tokens_written"], workload["tokens_written"]),
            *(_number(tokens[key]) for key in ("p50", "mean")),
            *(_number(life[key]) for key in ("p10", "p50", "p90")),
            _number(each["rho_rw"]["p50"]),
        )
    return table


def comparison_sentences(workload: dict[str, Any]) -> Iterator[str]:
    """How the classes differ, one sentence a comparison that exists.

    Example:
        >>> list(comparison_sentences({"worker_tau": 0.6, "worker_spread":
        ...     {"t_norm_s": 5.03, "tokens_written": None}}))
        ['Workers: p90 over p10 of lifetime 5.03, of writes –; their order agrees at tau 0.600.']
    """
    if "laden_share" in workload and workload["laden_share"] is not None:
        per_turn = workload["tokens_per_turn"]
        laden, stripped = per_turn["reasoning-laden"], per_turn["reasoning-stripped"]
        yield (
            f"A turn writes {_number(laden['p50'])} laden tokens (median; mean "
            f"{_number(laden['mean'])}) and carries {_number(stripped['p50'])} forward (mean "
            f"{_number(stripped['mean'])}): {workload['laden_share']:.1%} laden."
        )
    for pair, ratio in workload.get("lifetime_ratio", {}).items():
        longer, shorter = pair.split("/")
        value, low, high = workload["separability"][pair]
        interval = (
            "one session, so no interval"
            if low is None
            else f"95 % over sessions {low:.3f} to {high:.3f}"
        )
        times = _NONE if ratio is None else f"{_number(ratio)} times"
        yield (
            f"{_PLURALS[longer]} against {_PLURALS[shorter]}: median lifetime {times}, "
            f"separability {value:.3f} ({interval})."
        )
    if "lead_waiting_share" in workload:
        overlap = workload.get("rho_overlap")
        reuse = "" if overlap is None else f"; lead and worker overlap in rho by {overlap:.2f}"
        yield f"The lead waits {workload['lead_waiting_share']:.0%} of its life (median){reuse}."
    if "worker_spread" in workload:
        spread = workload["worker_spread"]
        tau = workload.get("worker_tau")
        agree = "" if tau is None else f"; their order agrees at tau {tau:.3f}"
        yield (
            f"Workers: p90 over p10 of lifetime {_number(spread['t_norm_s'])}, of writes "
            f"{_number(spread['tokens_written'])}{agree}."
        )


def _table() -> Table:
    return Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else _NONE


def _number(value: float | None) -> str:
    """Three digits, or all of those before the point."""
    if value is None:
        return _NONE
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"

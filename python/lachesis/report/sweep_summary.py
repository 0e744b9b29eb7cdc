"""What a sweep found, in a few lines: how much ran, what lives longest, what misses the warranty.

Policies that only bound others (an oracle) win no headline.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lachesis.report.run_summary import years_text
from lachesis.results.directory import Manifest

Row = dict[str, Any]

#: Columns that name a scenario: within one, policies and memory splits compete.
_SCENARIO = ("trace", "model", "slo")
_COLUMNS = (
    *_SCENARIO, "memory", "policy", "load_sessions", "hbf_lifetime_years", "warranty_years",
    "settled", "meets_slo", "cell",
)  # fmt: skip
_ROWS_MAX = 20


def print_sweep(console: Console, manifest: Manifest, runs: pa.Table, cells_run: int) -> None:
    """Print the summary of a sweep.

    Args:
        console: where to.
        manifest: of the directory.
        runs: every run of it.
        cells_run: how many cells were run now; the others were there already.
    """
    for sentence in summary(manifest, runs, cells_run):
        console.print(Text(sentence))
    table = best_table(runs)
    if table is not None:
        console.print()
        console.print(table)


def summary(manifest: Manifest, runs: pa.Table, cells_run: int | None = None) -> list[str]:
    """The summary as sentences; `cells_run` is left out where nothing was run now."""
    counts = manifest.counts()
    ended = counts["done"] + counts["failed"]
    told = f"{_count(runs.num_rows, 'run')} in {_count(ended, 'cell')}"
    if cells_run is not None:
        wall_s = manifest.sessions[-1].wall_s
        ran = f"{_count(cells_run, 'cell')} run now in {_duration(wall_s)}"
        told += f"; {ran if cells_run else 'none run now'}"
        told += f", {ended - cells_run:,} were there" if ended > cells_run else ""
    said = [f"{told}."]
    if counts["pending"]:
        said.append(f"{_count(counts['pending'], 'cell')} still to be run.")
    rows: list[Row] = runs.select(_COLUMNS).to_pylist()
    rated = [row for row in rows if row["hbf_lifetime_years"] is not None]
    if rated:
        said.append(_winner(rated))
        said.append(_warranty(rated))
    if unsettled := sum(not row["settled"] for row in rows):
        said.append(
            f"{_count(unsettled, 'run')} not settled: years may drift (raise turnovers, or ask for "
            "less precision)."
        )
    if failed := sum(len(entry.failures) for entry in manifest.cells):
        said.append(f"{_count(failed, 'run')} without a result; the manifest says why.")
    return said


def best_table(runs: pa.Table) -> Padding | None:
    """For each trace, model and SLO the policy and split with the longest mean life."""
    rows = [row for row in runs.select(_COLUMNS).to_pylist() if row["hbf_lifetime_years"]]
    scenarios: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        scenarios[tuple(row[name] for name in _SCENARIO)].append(row)
    if not scenarios:
        return None
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for header in ("trace", "model", "SLO", "longest under", "on"):
        table.add_column(header, overflow="fold")
    table.add_column("years", justify="right", no_wrap=True)
    for scenario, members in list(scenarios.items())[:_ROWS_MAX]:
        best = _best(members)
        if best is not None:
            policy, memory, years = best
            table.add_row(*scenario, policy, memory, years_text(years))
    if len(scenarios) > _ROWS_MAX:
        table.add_row(f"… and {len(scenarios) - _ROWS_MAX:,} more", "", "", "", "", "")
    return Padding(table, (0, 0, 0, 0))


def _best(rows: list[Row]) -> tuple[str, str, float] | None:
    """Policy and split with the longest mean device-years, over whatever else varies."""
    lives: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        if row["policy"].partition(":")[0] != "lachesis-oracle":
            lives[(row["policy"], row["memory"])].append(row["hbf_lifetime_years"])
    if not lives:
        return None
    means = {pair: sum(years) / len(years) for pair, years in lives.items()}
    policy, memory = max(means, key=lambda pair: means[pair])
    return policy, memory, means[(policy, memory)]


def _winner(rated: list[Row]) -> str:
    best = _best(rated)
    if best is None:
        return "Only bounds were run, and no policy that could be served."
    policy, memory, years = best
    splits, policies = {row["memory"] for row in rated}, {row["policy"] for row in rated}
    over = "" if len(rated) == len(splits) * len(policies) else " (mean over all else)"
    return f"The flash lasts longest under {policy} on {memory}: {years_text(years)} years{over}."


def _warranty(rated: list[Row]) -> str:
    short = [row for row in rated if row["hbf_lifetime_years"] < row["warranty_years"]]
    warranties = sorted({row["warranty_years"] for row in rated})
    years = " to ".join(f"{years:g}" for years in dict.fromkeys((warranties[0], warranties[-1])))
    if not short:
        return f"Every run passes the warranty of {years} years."
    cells, all_cells = {row["cell"] for row in short}, {row["cell"] for row in rated}
    lost = all_cells - {
        row["cell"] for row in rated if row["hbf_lifetime_years"] >= row["warranty_years"]
    }
    return (
        f"{len(short):,} of {len(rated):,} runs miss the warranty of {years} years, in "
        f"{len(cells):,} of {len(all_cells):,} cells; in {_count(len(lost), 'cell')} no policy "
        "reaches it."
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _duration(seconds: float) -> str:
    if seconds < 100.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"

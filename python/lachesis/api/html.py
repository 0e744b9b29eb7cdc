"""Results as HTML tables, for notebooks: few columns, text escaped, light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from lachesis.report.run_summary import years_text

_ROWS_MAX = 30
_STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.4em 0"
_CELL = "padding:.15em .8em .15em 0;text-align:{align};border-bottom:1px solid #8884"

#: Columns of a row that are shown, with their heads; those that do not vary are said once above.
SCENARIO = {
    "trace": "trace", "model": "model", "memory": "memory", "slo": "SLO", "seed": "seed",
}  # fmt: skip
_NUMBERS = ("load", "device-years", "gain", "TPOT p99, ms", "meets SLO", "settled")


def html_of(rows: Sequence[dict[str, Any]], sentences: Sequence[str]) -> str:
    """Sentences, and a table of rows as `lachesis.results.rows.run_columns` has them."""
    lines = [f"<p>{escape(sentence)}</p>" for sentence in sentences]
    if not rows:
        return "\n".join(lines)
    varied = [key for key in SCENARIO if len({row[key] for row in rows}) > 1]
    same = [f"{SCENARIO[key]} {rows[0][key]}" for key in SCENARIO if key not in varied]
    if same:
        lines.append(f"<p>{escape(', '.join(same))}</p>")
    heads = [*(SCENARIO[key] for key in varied), "policy", *_NUMBERS]
    texts = len(varied) + 1
    lines.append(f'<table style="{_STYLE}"><thead><tr>')
    lines += [_cell("th", head, index >= texts) for index, head in enumerate(heads)]
    lines.append("</tr></thead><tbody>")
    for row in rows[:_ROWS_MAX]:
        cells = [*(str(row[key]) for key in varied), row["policy"], *_numbers(row)]
        found = "".join(_cell("td", text, index >= texts) for index, text in enumerate(cells))
        lines.append(f"<tr>{found}</tr>")
    lines.append("</tbody></table>")
    if len(rows) > _ROWS_MAX:
        lines.append(f"<p>… and {len(rows) - _ROWS_MAX:,} more rows</p>")
    return "\n".join(lines)


def _numbers(row: dict[str, Any]) -> list[str]:
    load, years, gain = row["load_sessions"], row["hbf_lifetime_years"], row["gain_over_hbm_first"]
    tpot_s = row["tpot_p99_s"]
    return [
        row["load"] if load is None else f"{load:,}",
        "–" if years is None else years_text(years),
        "–" if gain is None else f"{gain:.2f}×",
        "–" if tpot_s is None else f"{tpot_s * 1e3:.1f}",
        "yes" if row["meets_slo"] else "no",
        "yes" if row["settled"] else "no",
    ]


def _cell(tag: str, text: str, number: bool) -> str:
    style = _CELL.format(align="right" if number else "left")
    return f'<{tag} style="{style}">{escape(text)}</{tag}>'

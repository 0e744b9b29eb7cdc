"""The answer of a report as it stands in the page, as it was looked at."""

import re
from pathlib import Path

import pyarrow as pa

from lachesis.report.html.page import report_page
from lachesis.results.results_directory import StoredResults
from report_rows import LOOSE, row

GOLDEN = Path(__file__).with_name("report_answer.html")


def test_the_answer_reads_as_it_was_looked_at() -> None:
    rows = [
        row(policy="hbm-first", admitted_sessions=50, load_sessions=50, years=(5.1, 4.9, 5.3),
            gain_over_hbm_first=1.0),
        row(admitted_sessions=50, load_sessions=50, years=(8.0, 7.8, 8.2),
            gain_over_hbm_first=1.57),
        row(memory="4/4", admitted_sessions=55, load_sessions=55, years=(7.9, 7.7, 8.1),
            settled=False, warnings=["not settled after 3 turnovers"]),
        row(policy="hbm-only", admitted_sessions=50, load_sessions=50, years=None,
            notes=["no device-years: generated KV never reaches flash"]),
        row(policy="hbm-first", admitted_sessions=100, load_sessions=100, years=(2.0, 1.9, 2.1),
            gain_over_hbm_first=1.0, **LOOSE),
        row(admitted_sessions=100, load_sessions=100, years=(4.0, 3.9, 4.1),
            gain_over_hbm_first=2.0, meets_slo=False, tpot_p99_s=0.101, **LOOSE),
    ]  # fmt: skip
    page = report_page(StoredResults(pa.Table.from_pylist(rows), {"version": "1"}), title="golden")
    (answer,) = re.findall(r'<section id="answer".*?</section>\n', page, flags=re.DOTALL)
    assert answer == GOLDEN.read_text("utf-8")

"""Units: what the table and the plots over time show is what the columns hold, times a factor."""

import pyarrow as pa
import pytest

from lachesis.report.html.table import run_table
from lachesis.report.over_time import POINTS_MAX, runs_over_time
from lachesis.results.measures import TIERS
from lachesis.traces.schema import SegmentClass
from report_rows import row


def test_the_table_tells_columns_in_the_units_of_their_labels() -> None:
    run = row(
        tpot_p99_s=0.05, ttft_p99_s=1.25, hbf_write_bytes_per_s_per_gpu=2.5e7, hbm_write_share=0.25
    )
    shown = {column["label"]: column["values"] for column in run_table([run])["columns"]}
    assert shown["TPOT p99, ms"] == [50.0]
    assert shown["TTFT p99, s"] == [1.25]
    assert shown["flash writes, MB/s/GPU"] == [25.0]
    assert shown["HBM share of writes, %"] == [25.0]


def timeline(windows: int) -> pa.Table:
    """Windows of 60 s; lead writes 3 GB/s to flash, workers 1 GB/s, and flash is half full."""
    rates = {
        f"{tier}_write_bytes_per_s_{str(name).replace('-', '_')}": [0.0] * windows
        for tier in TIERS
        for name in SegmentClass
    }
    rates |= {"hbf_write_bytes_per_s_lead": [3e9] * windows}
    rates |= {"hbf_write_bytes_per_s_worker": [1e9] * windows}
    return pa.table(
        {
            "run": ["r"] * windows,
            "time_s": [60.0 * (place + 1) for place in range(windows)],
            "window_s": [60.0] * windows,
            "hbm_occupancy": [0.0] * windows,
            "hbf_occupancy": [0.5] * windows,
            **rates,
        }
    )


@pytest.mark.parametrize("windows", [60, 7 * POINTS_MAX + 3])
def test_a_run_over_time_is_told_in_hours_percent_and_gigabytes(windows: int) -> None:
    ((found,),) = runs_over_time(timeline(windows), [row(run="r")])
    assert len(found.time_h) == min(windows, POINTS_MAX)
    assert found.time_h[-1] == pytest.approx(windows / 60.0)
    assert found.occupancy_percent["hbf"] == pytest.approx(50.0)
    assert found.writes_gb_per_s["hbf"] == pytest.approx(4.0)
    assert found.writes_gb_per_s["hbm"] == pytest.approx(0.0)

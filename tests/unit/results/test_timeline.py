"""The run over time adds up to the run."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from lachesis.errors import InputError
from lachesis.presets import Settings
from lachesis.results.timeline import check_timeline, timeline_table, write_timeline
from lachesis.simulation import Load, Plan, Stopping, compare
from lachesis.traces import open_trace


@pytest.fixture(scope="module")
def comparison():
    stopping = Stopping(turnovers=3.0, warm_up_turnovers=0.0, fixed=True)
    plan = Plan(Settings.choose(memory="2/6"), stopping=stopping, timeline_interval_s=30.0)
    return compare(open_trace("tau3-airline"), plan, load=Load.parse("32"))


def test_rows_are_windows_of_the_interval(comparison):
    table = timeline_table(comparison)
    for replay in comparison.replays:
        rows = table.filter([name == replay.policy.name for name in table["policy"].to_pylist()])
        time_s = rows["time_s"].to_numpy()
        assert np.all(np.diff(time_s) > 0)
        assert np.median(rows["window_s"].to_numpy()) == pytest.approx(30.0, rel=0.01)
        assert rows["live_sessions"].to_numpy().max() == 32


def test_written_bytes_add_up_to_what_the_engine_counted(comparison):
    table = timeline_table(comparison)
    token_bytes = 196_608
    for replay in comparison.replays:
        rows = table.filter([name == replay.policy.name for name in table["policy"].to_pylist()])
        window_s = rows["window_s"].to_numpy()
        whole = replay.measured["whole"]
        last_s = rows["time_s"].to_numpy()[-1]
        assert whole["time_s"] - last_s < 30.1
        for tier, place in (("hbm", 0), ("hbf", 1)):
            rates = [rows[name].to_numpy() for name in rows.column_names
                     if name.startswith(f"{tier}_write_bytes_per_s_")]  # fmt: skip
            seen = float(sum((rate * window_s).sum() for rate in rates)) / token_bytes
            counted = sum(pair[place] for pair in whole["materialised_tokens"].values())
            counted += sum(pair[place] for pair in whole["rematerialised_tokens"].values())
            # The first row and the end of the run lie outside the windows.
            assert 0.9 * counted <= seen <= counted


def test_a_timeline_is_a_parquet_file(comparison, tmp_path):
    path = tmp_path / "time.parquet"
    write_timeline(comparison, str(path))
    assert pq.read_table(path).equals(timeline_table(comparison))
    assert [file.name for file in tmp_path.iterdir()] == ["time.parquet"]
    with pytest.raises(InputError, match=r"\.parquet"):
        check_timeline(str(tmp_path / "time.csv"))

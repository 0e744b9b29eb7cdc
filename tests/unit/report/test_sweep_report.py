"""What a sweep's summary says, from tables written by hand."""

import pyarrow as pa
import pytest

from lachesis.report.sweep_summary import best_table, summary
from lachesis.results.directory import CellEntry, Manifest, Session


def manifest(*cells: CellEntry) -> Manifest:
    return Manifest(
        version="0", specification={}, specification_sha256="", shards=1, cells=list(cells),
        sessions=[Session(started="", wall_s=135.0, workers="2 threads", cells=len(cells))],
    )  # fmt: skip


def cell(name: str, **more) -> CellEntry:
    return CellEntry(
        cell=name, shard=0, trace="t", model="m", memory="1/7", slo="tight", load="8", seed=1,
        policies=["hbm-first"], overrides=[], **more,
    )  # fmt: skip


def table(*rows: tuple[str, str, str, float | None]) -> pa.Table:
    return pa.table(
        {
            "trace": ["t" for _ in rows],
            "model": ["m" for _ in rows],
            "slo": ["tight" for _ in rows],
            "cell": [row[0] for row in rows],
            "memory": [row[1] for row in rows],
            "policy": [row[2] for row in rows],
            "hbf_lifetime_years": [row[3] for row in rows],
            "warranty_years": [5.0 for _ in rows],
            "load_sessions": [8 for _ in rows],
            "settled": [True for _ in rows],
            "meets_slo": [True for _ in rows],
        }
    )


def test_the_longest_life_and_what_misses_the_warranty_are_said():
    runs = table(
        ("a", "1/7", "hbm-first", 4.0), ("a", "1/7", "lachesis", 8.0),
        ("b", "2/6", "hbm-first", 3.0), ("b", "2/6", "lachesis", 4.9),
    )  # fmt: skip
    said = summary(manifest(cell("a", state="done"), cell("b", state="done")), runs, 2)
    assert said == [
        "4 runs in 2 cells; 2 cells run now in 2 min 15 s.",
        "The flash lasts longest under lachesis on 1/7: 8.00 years.",
        "3 of 4 runs miss the warranty of 5 years, in 2 of 2 cells; in 1 cell no policy reaches "
        "it.",
    ]


def test_a_bound_wins_nothing_and_failures_are_counted():
    runs = table(("a", "1/7", "lachesis-oracle", 9.0), ("a", "1/7", "hbm-first", 6.0))
    failed = cell("b", state="failed", failures={"hbm-only": "too large"})
    said = summary(manifest(cell("a", state="done"), failed), runs, 1)
    assert said[0] == "2 runs in 2 cells; 1 cell run now in 2 min 15 s, 1 were there."
    assert said[1].startswith("The flash lasts longest under hbm-first on 1/7: 6.00")
    assert said[2] == "Every run passes the warranty of 5 years."
    assert said[3] == "1 run without a result; the manifest says why."


@pytest.mark.parametrize("years", [None, 0.0])
def test_without_a_life_there_is_no_table(years):
    assert best_table(table(("a", "8/0", "hbm-first", years))) is None

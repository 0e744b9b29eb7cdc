"""Loads that are found for all memory splits of a group together."""

import math
from dataclasses import replace

import numpy as np
import pytest

from lachesis.predict.out_of_fold import segment_scores
from lachesis.presets import load_latency
from lachesis.reproduce.cells import Cell
from lachesis.reproduce.corpora import Corpora
from lachesis.reproduce.execution import LoadMeasurement, with_common_loads
from lachesis.reproduce.loads import Strained, admitted, approach, group_loads, line_slope
from lachesis.reproduce.quick_loads import growing_strain, quick_group_loads, seek
from lachesis.reproduce.runs import Runs
from lachesis.reproduce.simulated import QUICK, simulated, specification
from lachesis.results.results_directory import read_stored_results
from lachesis.simulation import Replay
from lachesis.sweeps import Specification, TraceSource, expand, sweep
from lachesis.traces import open_trace

MEMORIES = ("1/7", "2/6", "3/5", "4/4", "8/8*")


def group():
    cells = [Cell("multi-agent", "llama-4-maverick", memory, "tight") for memory in MEMORIES]
    return expand(Specification.parse(specification(cells, QUICK, seed=1)))


def strain(cell, sessions, *, flush=0.8, slope=0.7, at=600.0):
    """A node that follows the model: strain 1 at `at` sessions with seven stacks."""
    stacks = cell.plan.settings.memory.hbf_stacks
    return (sessions / at) ** slope * math.exp(flush * (1 / stacks - 1 / 7))


def test_a_node_that_follows_the_line_is_answered_exactly():
    cells = group()
    loads = group_loads(cells, strain)
    for cell in cells:
        assert strain(cell, loads[cell.id]) <= 1.0
        assert strain(cell, loads[cell.id] + 1) > 1.0 - 1e-3


def test_each_split_beside_the_middle_is_measured_once():
    asked = []

    def measure(cell, sessions):
        asked.append(str(cell.plan.settings.memory))
        return strain(cell, sessions)

    group_loads(group(), measure)
    assert [asked.count(memory) for memory in ("1/7", "2/6", "4/4", "8/8*")] == [1] * 4
    assert 2 <= asked.count("3/5") <= 4


def test_under_quick_the_ends_tell_the_splits_between():
    cells, asked = group(), []

    def measure(cell, sessions):
        asked.append(str(cell.plan.settings.memory))
        return strain(cell, sessions)

    loads = quick_group_loads(cells, measure)
    assert {"4/4", "8/8*"} <= set(asked) <= {"3/5", "4/4", "8/8*"}
    assert loads == pytest.approx(group_loads(cells, strain), rel=0.02)


def bent(cell, sessions):
    """What is flushed grows with the load, so that no one line holds for all splits."""
    stacks = cell.plan.settings.memory.hbf_stacks
    return (0.2 + 0.8 * (sessions / 600) ** 0.7) * (1 + 9 * (sessions / 900) ** 2 / stacks)


@pytest.mark.parametrize(("find", "near"), [(group_loads, 0.05), (quick_group_loads, 0.1)])
def test_splits_far_from_the_line_are_approached_on_their_own(find, near):
    loads = find(group(), bent)
    for cell in group():
        assert bent(cell, loads[cell.id]) == pytest.approx(1.0, abs=near)
    assert max(loads.values()) > 1.1 * min(loads.values())


@pytest.mark.parametrize("limit", [3, 40, 700, 6_000, 30_000])
@pytest.mark.parametrize("power", [0.7, 1.0, 2.0])
def test_under_quick_a_load_near_the_answer_is_found_from_far_away(limit, power):
    strains = seek(lambda sessions: (sessions / limit) ** power)
    assert min(abs(math.log(value)) for value in strains.values()) <= 0.15
    assert len(strains) <= 6


def test_growing_strain_counts_ttft_from_that_of_an_idle_node():
    (cell, *_) = group()
    slo, idle_s = cell.plan.settings.slo, cell.plan.settings.latency.ttft_ref_s

    def at(ttft_s, tpot_s):
        replay = Replay(None, None, {"ttft_p99_s": ttft_s, "tpot_p99_s": tpot_s}, 0.0)
        return growing_strain(replay, cell)

    assert at(idle_s, 0.1 * slo.tpot_p99_s) == pytest.approx(0.1)
    assert at(slo.ttft_p99_s, 0.1 * slo.tpot_p99_s) == pytest.approx(1.0)
    assert at((idle_s + slo.ttft_p99_s) / 2, 0.1 * slo.tpot_p99_s) == pytest.approx(0.5)
    assert at(idle_s, 1.2 * slo.tpot_p99_s) == pytest.approx(1.2)
    assert at(None, None) == math.inf


def test_noise_of_one_split_is_pooled_over_all():
    cells = group()

    def noisy(cell, sessions):
        return strain(cell, sessions) * (1.05 if str(cell.plan.settings.memory) == "2/6" else 1.0)

    alone = 1.05 ** (1 / 0.7) - 1
    loads, noiseless = group_loads(cells, noisy), group_loads(cells, strain)
    for cell in cells:
        assert abs(loads[cell.id] / noiseless[cell.id] - 1) < alone / 2


@pytest.mark.parametrize("limit", [3, 40, 700, 30_000])
def test_the_approach_ends_near_the_answer_from_far_away(limit):
    strains = approach(lambda sessions: (sessions / limit) ** 0.7)
    assert min(abs(math.log(value)) for value in strains.values()) < 0.15 or limit == 3
    assert len(strains) <= 10


def test_where_ttft_explodes_the_approach_bisects():
    def strain_of(sessions):
        return 0.6 * (sessions / 1000) ** 0.2 if sessions <= 6000 else 40.0

    strains = approach(strain_of)
    passing = [sessions for sessions, value in strains.items() if value <= 1.0]
    failing = [sessions for sessions, value in strains.items() if value > 1.0]
    assert max(passing) <= 6000 < min(failing)
    assert min(failing) / max(passing) < 1.2


def test_a_slope_is_not_read_off_loads_that_lie_close():
    assert line_slope({600: 0.99, 620: 1.03}) == 0.7
    assert line_slope({400: 0.9, 800: 3.0}) == 1.5


def test_more_stacks_never_admit_less():
    found = [Strained(600, 7, 1.05), Strained(600, 4, 0.95)]
    assert admitted(found, 7, 0.7) == admitted(found, 4, 0.7)


def test_measurements_are_bounded_in_requests_and_turnovers():
    measurement = LoadMeasurement(requests=10_000, turnovers=2.0)
    assert measurement.stopping(10, 50.0).turnovers == 2.0
    assert measurement.stopping(100, 50.0).turnovers == 2.0
    assert measurement.stopping(400, 50.0).turnovers == 0.5
    assert measurement.stopping(10_000, 50.0).turnovers == 0.25


def test_runs_are_made_at_the_loads_that_were_found_whatever_the_threads(tmp_path):
    asked = Specification.parse(
        {
            "defaults": {"turnovers": 1, "precision": "20%", "node.landing": "sync",
                         "node.gpus": 1},
            "run": [{"trace": "tau3-airline", "memory": ["1/7", "4/4"], "slo": "tight",
                     "policy": ["hbm-first", "lachesis"]}],
        }
    )  # fmt: skip
    measurement = LoadMeasurement(requests=2_000, turnovers=1.0)
    tables = []
    for threads in (1, 2):
        sweep(asked, tmp_path / str(threads), with_common_loads(threads, measurement))
        tables.append(read_stored_results(tmp_path / str(threads)).runs)
    assert tables[0].equals(tables[1])
    rows = tables[0].to_pylist()
    assert [row["memory"] for row in rows] == ["1/7", "1/7", "4/4", "4/4"]
    assert rows[0]["load_sessions"] == rows[1]["load_sessions"]
    assert rows[0]["load_sessions"] >= rows[2]["load_sessions"] > 1
    for row in rows:
        assert row["admitted_sessions"] == row["load_sessions"]
        if row["policy"] == "hbm-first":
            assert 0.7 < row["tpot_p99_s"] / row["slo_tpot_p99_s"] < 1.3


def test_the_rows_are_the_same_with_a_directory_and_without(tmp_path):
    cells = [Cell("tau3", "llama-4-maverick", memory, "tight") for memory in ("1/7", "4/4")]
    precision = replace(QUICK, load=replace(QUICK.load, requests=2_000, turnovers=0.2))
    written = simulated(cells, precision, seed=1, folder=tmp_path / "runs", jobs=1)
    held = simulated(cells, precision, seed=1, jobs=2)
    assert isinstance(held, Runs)
    assert len(held.rows) == len(written.rows) == 4
    for one, other in zip(held.rows, written.rows, strict=True):
        assert dict(one) == dict(other)


def test_the_specification_names_every_cell_with_the_settings_of_the_reproduction():
    cells = group()
    assert [str(cell.plan.settings.memory) for cell in cells] == list(MEMORIES)
    for cell in cells:
        assert cell.plan.settings.node.landing == "sync"
        assert cell.plan.settings.node.windowed_reads == "full"
        assert cell.policies == ("hbm-first", "lachesis-deterministic", "lachesis")
        assert cell.plan.seed == 1


def test_a_corpus_is_read_once_and_ranked_as_its_own_page_ranks_it():
    corpora = Corpora()
    loaded = corpora.read(TraceSource(("webarena",)))
    assert loaded is corpora.loaded("webarena")
    latency = load_latency()
    table = loaded.workers(latency)
    expected = segment_scores(open_trace("webarena"), latency=latency)[table.segment_row]
    assert np.array_equal(loaded.predicted_lifetimes(latency), expected)

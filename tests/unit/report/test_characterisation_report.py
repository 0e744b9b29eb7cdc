"""Tables, sentences and figures of ``trace stats``."""

import io

import numpy as np
import pytest
from rich.console import Console

from lachesis.characterise.segments import segment_columns
from lachesis.characterise.workload import workload_stats
from lachesis.errors import InputError
from lachesis.presets import load_latency
from lachesis.report.characterisation_plot import WORKLOADS_MAX, draw_figures
from lachesis.report.stats_table import print_stats
from lachesis.results.stats_document import stats_document
from lachesis.traces import TraceBuilder, concat, open_trace


def measured(trace):
    columns = segment_columns(trace, load_latency(), 0)
    return columns, workload_stats(trace, columns, 0)


def printed(trace, width=80):
    latency = load_latency()
    document = stats_document(trace, measured(trace)[1], latency=latency, seed=0)
    screen = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    print_stats(screen, document)
    return screen.file.getvalue()


def plain(workloads=("w",)):
    builder = TraceBuilder(source="plain")
    for name in workloads:
        session = builder.session(name, workload=name, harness="h", stripping="off")
        session.request(input_tokens=50, output_tokens=5)
    return builder.build()


@pytest.fixture(scope="module")
def mixed():
    return open_trace("webarena", "tau3-airline")


def test_tables_and_sentences_of_both_regimes(mixed):
    text = printed(mixed)
    assert max(len(line) for line in text.splitlines()) <= 80
    said = " ".join(text.split())
    airline, webarena = measured(mixed)[1]
    assert f"tau3-airline 58 313 58 709 {airline.tokens_processed:,} 591,248" in said
    laden = airline.tokens_per_turn["reasoning-laden"]
    assert f"A turn writes {laden.p50:.0f} laden tokens (median; mean {laden.mean:,.0f})" in said
    ratio = webarena.lifetime_ratio["lead/worker"]
    value = webarena.separability["lead/worker"].value
    assert (
        f"Leads against workers: median lifetime {ratio:.3g} times, separability {value:.3f}"
        in said
    )
    assert f"The lead waits {webarena.lead_waiting_share:.0%} of its life (median)" in said
    assert f"their order agrees at tau {webarena.worker_tau:.3f}." in said
    assert "Token counts of requests: 2,899 inferred." in said


def test_a_trace_without_comparisons_prints_its_tables(mixed):
    text = printed(plain())
    assert "separability" not in text
    assert "lead" in text


def test_figures_are_png_and_the_same_each_time(mixed, tmp_path):
    columns, stats = measured(mixed)
    first = draw_figures(columns, stats, tmp_path / "one")
    second = draw_figures(columns, stats, tmp_path / "two")
    names = ["lifetimes.png", "read_write_ratios.png", "tokens_per_turn.png", "workers.png"]
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == names
    assert len(first.files) == len(second.files) == 4
    for name in names:
        drawn = (tmp_path / "one" / name).read_bytes()
        assert drawn.startswith(b"\x89PNG")
        assert drawn == (tmp_path / "two" / name).read_bytes()


def test_what_cannot_be_drawn_is_said(tmp_path):
    columns, stats = measured(plain())
    drawn = draw_figures(columns, stats, tmp_path)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "lifetimes.png", "read_write_ratios.png",
    ]  # fmt: skip
    assert "No figure workers: there are no workers." in drawn.sentences
    assert "No figure tokens_per_turn: no reasoning is stripped at a turn's end." in drawn.sentences


def test_a_lifetime_of_nothing_can_be_drawn(tmp_path):
    columns, stats = measured(concat([plain(("a",)), plain(("b",))]))
    columns.t_norm_s[:] = np.where(columns.workload == "a", 0.0, columns.t_norm_s)
    assert len(draw_figures(columns, stats, tmp_path).files) == 2


def test_many_workloads_are_cut_and_said(tmp_path):
    names = [f"w{index:02}" for index in range(WORKLOADS_MAX + 2)]
    columns, stats = measured(plain(names))
    drawn = draw_figures(columns, stats, tmp_path)
    assert drawn.sentences[-1] == "Figures show the 12 largest of 14 workloads."


def test_a_place_that_is_no_folder_is_refused(tmp_path):
    columns, stats = measured(plain())
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is no folder"):
        draw_figures(columns, stats, tmp_path / "file")
    with pytest.raises(InputError, match="no folder"):
        draw_figures(columns, stats, tmp_path / "absent" / "figures")

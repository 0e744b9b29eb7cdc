"""The page: what it holds, that nothing from outside can act in it, and that it never differs."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pyarrow as pa
import pytest

import results_directories
from lachesis.report.evaluation_figures import draw_evaluation
from lachesis.report.html.page import report_page
from lachesis.results.results_directory import StoredResults, read_stored_results
from report_rows import LOOSE, row

HOSTILE = """</script><img src=x onerror="alert('1')">{{ 7*7 }}<b>&amp; $x$ %{y}"""
COMPARED = (
    {"figure": "Table 3", "name": "w: requests", "published": 200, "ours": 198,
     "deviation": -0.01, "within": True},
    {"figure": "Figure 9", "name": HOSTILE, "published": [1.5, 2.5], "ours": 3.0,
     "deviation": 0.2, "within": False, "note": "why"},
)  # fmt: skip


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return results_directories.sweep(
        tmp_path_factory.mktemp("results") / "swept",
        memories=("2/6", "4/4"),
        slos=("tight", "loose"),
        timeline_interval_s=30.0,
        name=HOSTILE,
    )


@pytest.fixture(scope="module")
def results(swept: Path) -> StoredResults:
    return replace(read_stored_results(swept), comparison=COMPARED)


@pytest.fixture(scope="module")
def page(results: StoredResults) -> str:
    return report_page(results, title=HOSTILE)


def of_rows(*rows: dict[str, Any], **manifest: Any) -> StoredResults:
    return StoredResults(pa.Table.from_pylist(list(rows)), {"version": "1", **manifest})


def data_of(page: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="report-data">(.*?)</script>', page)
    data: dict[str, Any] = json.loads(text)
    return data


def without_plotly(page: str) -> str:
    return re.sub(r"<script>/\*\*\n\* plotly\.js.*?</script>", "", page, flags=re.DOTALL)


def test_the_page_holds_every_plot_once_and_plotly_once(page: str) -> None:
    assert [plot["key"] for plot in data_of(page)["plots"]] == [
        "comparison", "lifetime", "writes", "timeline", "distribution",
    ]  # fmt: skip
    assert page.count("* plotly.js v") == 1
    assert page.count("<h1>") == 1


def test_equal_results_give_equal_bytes(swept: Path, page: str) -> None:
    again = replace(read_stored_results(swept), comparison=COMPARED)
    assert report_page(again, title=HOSTILE) == page


def test_nothing_from_outside_becomes_markup(page: str) -> None:
    rest = without_plotly(page)
    assert "<img" not in rest
    assert 'onerror="' not in rest
    assert "{{ 7*7 }}" in rest
    assert ">49<" not in rest
    # One end for each script that begins: data, Plotly's and ours.
    assert page.count("</script") == 3


def test_texts_from_outside_are_escaped_for_plotly_too(page: str) -> None:
    drawn = json.dumps(
        [panel for plot in data_of(page)["plots"] for each in plot["choices"] for panel in each]
    )
    assert "<img" not in drawn
    assert "<b>&amp;" not in drawn


def test_nothing_can_be_fetched_or_run_beside_our_scripts(page: str) -> None:
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', page)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert policy.count("'sha256-") == 2
    assert "unsafe-eval" not in policy
    rest = without_plotly(page)
    assert not re.findall(r"""(?:src|href)=["'](?!#)""", rest.replace("src=x", ""))


def test_every_panel_is_what_plotly_takes(page: str) -> None:
    panels = [
        panel for plot in data_of(page)["plots"] for each in plot["choices"] for panel in each
    ]
    assert len(panels) > 10
    for panel in panels:
        text = json.dumps({"data": panel["data"], "layout": panel["layout"]})
        go.Figure(json.loads(re.sub(r'"@\w+"', '"#000000"', text)))


def test_the_warranty_and_every_interval_are_drawn(page: str, results: StoredResults) -> None:
    (lifetime,) = [plot for plot in data_of(page)["plots"] if plot["key"] == "lifetime"]
    tight, loose = lifetime["choices"][0]
    assert (tight["title"], loose["title"]) == (
        "SLO tight (p99 TPOT 60 ms, TTFT 2 s)", "SLO loose (p99 TPOT 100 ms, TTFT 2 s)",
    )  # fmt: skip
    assert tight["data"][0]["name"] == "5-year warranty"
    assert tight["data"][0]["y"] == [5.0, 5.0]
    drawn = {
        trace["meta"]["policy"]: trace
        for trace in tight["data"]
        if "policy" in trace.get("meta", {})
    }
    for run in results.runs.to_pylist():
        if run["slo"] == "tight" and run["hbf_lifetime_years_low"] is not None:
            line = drawn[run["policy"]]
            at = line["y"].index(pytest.approx(run["hbf_lifetime_years"], rel=1e-4))
            top = line["y"][at] + line["error_y"]["array"][at]
            assert top == pytest.approx(run["hbf_lifetime_years_high"], rel=1e-3)
    # The panels of one choice share their axis, so that they compare at a glance.
    assert tight["layout"]["yaxis"]["range"] == loose["layout"]["yaxis"]["range"]


def test_write_shares_of_a_run_add_up(page: str) -> None:
    (writes,) = [plot for plot in data_of(page)["plots"] if plot["key"] == "writes"]
    panel = writes["choices"][0][0]
    rows = len(panel["data"][0]["x"])
    for at in range(rows):
        assert sum(abs(bars["x"][at]) for bars in panel["data"]) == pytest.approx(100.0, abs=0.1)
    # hbf-only writes nothing to HBM.
    for bars in panel["data"]:
        if all(x <= 0 for x in bars["x"]):
            assert [x for x, policy in zip(bars["x"], bars["meta"]["policies"], strict=True)
                    if policy == "hbf-only" and x] == []  # fmt: skip


def test_searched_loads_have_a_plot_and_given_ones_have_none() -> None:
    given = report_page(of_rows(row(), row(memory="4/4")), title="t")
    assert "plot-load" not in given
    searched = report_page(
        of_rows(
            row(admitted_sessions=50, policy="hbm-first"), row(admitted_sessions=50),
            row(admitted_sessions=90, policy="hbm-first", **LOOSE),
            row(admitted_sessions=90, **LOOSE),
        ),
        title="t",
    )  # fmt: skip
    (load,) = [plot for plot in data_of(searched)["plots"] if plot["key"] == "load"]
    assert [bars["y"] for bars in load["choices"][0][0]["data"]] == [[50], [90]]


def test_loads_that_differ_by_policy_are_drawn_by_policy() -> None:
    page = report_page(
        of_rows(row(admitted_sessions=50, policy="hbm-first"), row(admitted_sessions=70)), title="t"
    )
    (load,) = [plot for plot in data_of(page)["plots"] if plot["key"] == "load"]
    assert {line["name"]: line["y"] for line in load["choices"][0][0]["data"]} == {
        "hbm-first": [50], "lachesis": [70],
    }  # fmt: skip


def test_given_loads_are_drawn_against_years(tmp_path: Path) -> None:
    rows = [
        row(load_sessions=load, policy=policy, years=(600 / load, 590 / load, 610 / load))
        for load in (200, 100)
        for policy in ("hbm-first", "lachesis")
    ]
    page = report_page(of_rows(*rows), title="t")
    (curve,) = [plot for plot in data_of(page)["plots"] if plot["key"] == "load-curve"]
    warranty, _, first, _, _ = curve["choices"][0][0]["data"]
    assert warranty["x"] == [100, 200]
    assert (first["name"], first["x"], first["y"]) == ("hbm-first", [100.0, 200.0], [6.0, 3.0])
    assert "device_years_by_load.svg" in draw_evaluation(of_rows(*rows), tmp_path / "figures")


def test_hollow_and_dotted_symbols_mark_misses_and_unsettled_runs() -> None:
    page = report_page(of_rows(row(meets_slo=False, settled=False), row(memory="4/4")), title="t")
    (lifetime,) = [plot for plot in data_of(page)["plots"] if plot["key"] == "lifetime"]
    line = lifetime["choices"][0][0]["data"][2]
    assert line["marker"]["symbol"] == ["circle-open-dot", "circle"]


def test_runs_without_device_years_give_a_page() -> None:
    page = report_page(of_rows(row(policy="hbm-only", years=None)), title="t")
    assert "No run has device-years." in page
    assert "lifetime" not in [plot["key"] for plot in data_of(page)["plots"]]


def test_a_comparison_alone_gives_a_page(tmp_path: Path) -> None:
    (tmp_path / "comparison.json").write_text(json.dumps(COMPARED), "utf-8")
    page = report_page(read_stored_results(tmp_path), title="t")
    assert "There are no runs here" in page
    assert "1 of 2 published figures is met." in page
    assert '<table id="runs-table"' not in page
    assert "<td>1.5 to 2.5</td>" in page.replace(' class="number"', "")


def test_the_configuration_names_sources() -> None:
    page = report_page(
        of_rows(
            row(),
            presets={"flash": {"hbf-slc": {"title": "SLC", "values": {
                "pe_cycles": {"value": 100000, "unit": None, "source": "Son et al."},
                "write": {"value": 16.0, "unit": "GB/s", "source": HOSTILE},
            }}}},
        ),
        title="t",
    )  # fmt: skip
    assert '<th scope="row">flash.hbf-slc.pe_cycles</th><td>100,000</td><td>Son et al.</td>' in page
    assert "<td>16.0 GB/s</td><td>&lt;/script&gt;" in page


def test_numbers_beyond_javascript_stay_exact() -> None:
    table = report_page(of_rows(row(seed=2**63 - 1), row(seed=1)), title="t")
    seeds = next(each for each in data_of(table)["table"]["columns"] if each["key"] == "seed")
    assert seeds["values"] == ["9223372036854775807", "1"]


def test_figures_for_papers_are_drawn_twice_alike(results: StoredResults, tmp_path: Path) -> None:
    few = replace(results, timelines=None, lifetimes=None)
    names = draw_evaluation(few, tmp_path / "one")
    assert draw_evaluation(few, tmp_path / "two") == names
    assert [name for name in names if name.endswith(".png")] == [
        "device_years.png", "write_composition.png",
        "published_against_ours.png",
    ]  # fmt: skip
    for name in names:
        drawn = (tmp_path / "one" / name).read_bytes()
        assert drawn == (tmp_path / "two" / name).read_bytes()
        assert drawn.startswith(b"\x89PNG" if name.endswith(".png") else b"<?xml")


def test_runs_over_time_are_drawn_for_papers(results: StoredResults, tmp_path: Path) -> None:
    one = results.runs["run"][0].as_py()
    assert results.timelines is not None
    rows = results.timelines.filter(pa.compute.equal(results.timelines["run"], one))
    names = draw_evaluation(
        StoredResults(results.runs.slice(0, 1), {}, timelines=rows, lifetimes=results.lifetimes),
        tmp_path / "figures",
    )
    assert [name[:9] for name in names if name.endswith(".svg")] == [
        "device_ye", "write_com", "over_time", "segments_",
    ]  # fmt: skip

"""`lachesis.simulate`: the same as the command line, in the shapes that notebooks want."""

import json
import sys
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import lachesis
from lachesis.errors import InputError
from lachesis.results.rows import run_columns
from lachesis.simulation import Watcher


@pytest.fixture(scope="module")
def result() -> lachesis.Result:
    return lachesis.simulate("tau3-airline", load=8, turnovers=2, timeline_interval="600s")


def test_a_result_holds_one_run_a_policy(result: lachesis.Result) -> None:
    assert result.policies == ("hbm-first", "lachesis-deterministic")
    assert len(result) == len(list(result)) == 2
    assert result["hbm-first"]["policy"] == "hbm-first"
    with pytest.raises(KeyError, match="there are hbm-first, lachesis-deterministic"):
        result["hbf-only"]
    assert "Load: 8 sessions, as given." in result.summary()
    assert repr(result).startswith("Result('The flash lasts")


def test_frames_hold_the_same(result: lachesis.Result) -> None:
    table = result.to_arrow()
    assert table.schema.equals(run_columns())
    years = [run["hbf_lifetime_years"] for run in result]
    assert isinstance(result.to_polars(), pl.DataFrame)
    assert result.to_polars()["hbf_lifetime_years"].to_list() == years
    assert isinstance(result.to_pandas(), pd.DataFrame)
    assert list(result.to_pandas()["hbf_lifetime_years"]) == years
    assert table["hbf_lifetime_years"].to_pylist() == years
    assert result.timeline()["policy"].unique().to_pylist() == list(result.policies)


def test_json_is_that_of_the_command_line(result: lachesis.Result, tmp_path: Path) -> None:
    text = result.to_json(tmp_path / "result.json")
    assert (tmp_path / "result.json").read_text() == text
    assert json.loads(text) == result.document


def test_the_plot_is_a_figure(result: lachesis.Result, tmp_path: Path) -> None:
    result.plot().savefig(tmp_path / "plot.svg")
    assert "hbm-first" in (tmp_path / "plot.svg").read_text()


def test_html_escapes_what_files_are_called(tmp_path: Path) -> None:
    rows = [
        {"session": "a", "turn": 0, "input_tokens": 400, "output_tokens": 40},
        {"session": "a", "turn": 0, "input_tokens": 500, "output_tokens": 30},
    ]
    log = tmp_path / "a<b>&.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    html = lachesis.simulate(log, policy="hbf-only", load=1, turnovers=2)._repr_html_()
    assert "a&lt;b&gt;&amp;.jsonl" in html
    assert "<b>" not in html


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_library_that_is_absent_is_named(
    result: lachesis.Result, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=rf"pip install 'lachesis\[{library}\]'"):
        getattr(result, f"to_{library}")()


def test_options_are_those_of_the_command_line() -> None:
    trace = lachesis.open_trace("tau3-airline")
    result = lachesis.simulate(
        trace, model="qwen3-235b-a22b", memory="1/7", slo="loose", policies=["hbf-only"],
        load="4", seed=3, set={"flash.pe_cycles": 7, "node.windowed_kv": "trim"}, step_time=0.03,
        turnovers=2, precision="50%",
    )  # fmt: skip
    run = result["hbf-only"]
    shown = ("model", "memory", "slo", "load_sessions", "seed", "pe_cycles")
    assert [run[key] for key in shown] == ["qwen3-235b-a22b", "1/7", "loose", 4, 3, 7]
    assert run["tpot_p99_s"] == pytest.approx(0.03, rel=3e-3)  # a histogram with bins of 0.2 %
    assert result.document["provenance"]["options"]["precision"] == 0.5
    set_by_user = {each["key"] for each in result.document["provenance"]["overrides"]}
    assert set_by_user == {"flash.pe_cycles", "node.windowed_kv"}


def test_mistakes_are_told_in_one_line() -> None:
    for wrong, said in (
        ({"policy": "hbf-only", "policies": ["hbm-first"]}, "has no effect beside policies"),
        ({"policy": "lachesos"}, "did you mean lachesis?"),
        ({"set": {"flash.pe_cyclos": 3}}, "did you mean pe_cycles?"),
        ({"load": "many"}, "must be a number of sessions"),
        ({"timeline_interval": "3"}, "must be a time"),
    ):
        with pytest.raises(InputError, match=said):
            lachesis.simulate("tau3-airline", **{"load": 8, "turnovers": 2, **wrong})
    plain = lachesis.simulate("tau3-airline", policy="hbf-only", load=2, turnovers=2)
    with pytest.raises(InputError, match='timeline_interval="60s"'):
        plain.timeline()


def test_an_interrupt_reaches_the_caller() -> None:
    class Stops(Watcher):
        def replay_started(self, policy, load):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lachesis.simulate("tau3-airline", load=8, turnovers=2, watcher=Stops(), threads=2)

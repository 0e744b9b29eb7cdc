"""The commands as users type them, tables and figures included."""

import json
from pathlib import Path

import jsonschema
import pytest
from delegations import LONG, SHORT, delegating, telling
from rich.console import Console

from lachesis.cli.entry import execute
from lachesis.predict import load
from lachesis.report.predictor_table import print_evaluation
from lachesis.results.predictor_document import evaluation_schema


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    telling().save("telling.trace")
    delegating([[(SHORT, 77), (LONG, 777)], [(SHORT, 88)]]).save("fresh.trace")

    def call(*arguments):
        code = execute(["predictor", *arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return call


def test_train_then_evaluate_on_other_sessions(run):
    code, out, err = run("train", "./telling.trace", "-o", "p.json", "--alpha", "2")
    assert (code, err) == (0, "")
    assert "kind ridge from 36 workers of 12 sessions." in " ".join(out.split())
    assert "Wrote p.json." in out
    assert load("p.json").alpha == 2.0
    code, out, err = run("evaluate", "./fresh.trace", "--predictor", "p.json", "--json", "-")
    assert code == 0
    document = json.loads(out)
    jsonschema.validate(document, evaluation_schema())
    assert document["kendall_tau"] > 0
    assert document["provenance"]["command"].endswith("--seed 0 --predictor p.json")
    assert "these figures rest on 3 workers of 2 sessions: too few to tell" in " ".join(err.split())


def test_training_reports_itself_as_json(run):
    code, out, _ = run(
        "train", "./telling.trace", "-o", "p.json", "--kind", "counts", "--json", "-"
    )
    document = json.loads(out)
    assert code == 0
    assert document["kind"] == "counts"
    assert document["trained_on"]["workers"] == 36
    assert document["features"] == {"words": False, "word_buckets": 4096, "tool_buckets": 256}


@pytest.mark.parametrize("kind", ["ridge", "counts", "online", "instruction-length"])
def test_every_kind_evaluates_and_says_the_same_twice(run, kind):
    found = [
        run("evaluate", "./telling.trace", "--kind", kind, "--json", "-", "--quiet")
        for _ in range(2)
    ]
    assert found[0] == found[1]
    code, out, err = found[0]
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["kind"] == kind
    assert list(document["by_workload"]) == ["w"]
    assert set(document["top_k"]["0.1"]) == {
        "k", "shortest_k", "shortest_2k", "avoids_longest_k", "random",
    }  # fmt: skip


def test_the_tables_fit_eighty_columns(run):
    _, out, _ = run("evaluate", "./telling.trace", "--json", "e.json")
    document = json.loads(Path("e.json").read_text())
    document["by_workload"]["a-workload-with-a-name-that-is-very-long-indeed"] = document[
        "by_workload"
    ]["w"]
    for width in (60, 80):
        with Path("table.txt").open("w") as file:
            print_evaluation(Console(file=file, width=width), document)
        lines = Path("table.txt").read_text().splitlines()
        assert max(map(len, lines)) <= width
    text = Path("table.txt").read_text()
    for word in ("Kendall's", "a-workload-with", "lowest scores", "Q4, highest", "outlives the"):
        assert word in text
    assert "36 workers in 12 sessions" in " ".join(out.split())


def test_figures_are_drawn_and_are_the_same_twice(run):
    found = []
    for folder in ("one", "two"):
        code, out, _ = run("evaluate", "./telling.trace", "--plots", folder)
        assert code == 0
        assert f"Drew {folder}/quartiles.png." in out
        found.append(
            [(Path(folder) / f"{name}.png").read_bytes() for name in ("quartiles", "selection")]
        )
    assert found[0] == found[1]
    assert all(image.startswith(b"\x89PNG") for image in found[0])


def test_too_few_workers_for_quartiles_say_so(run):
    code, out, _ = run("evaluate", "./fresh.trace", "--plots", "plots")
    assert code == 0
    assert "No figure quartiles: fewer than four workers." in out
    assert [path.name for path in Path("plots").iterdir()] == ["selection.png"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "-o", "p.json"], "TRACE, name at least one trace"),
        (
            ["train", "./telling.trace", "-o", "no/p.json"],
            "no/p.json: cannot be written: no folder",
        ),
        (["train", "./telling.trace", "-o", "."], ".: cannot be written: is a folder"),
        (["train", "./telling.trace"], "requires an argument"),
        (["train", "./telling.trace", "-o", "p", "--alpha", "0"], "alpha = 0.0, must be"),
        (["train", "./telling.trace", "-o", "p", "--kind", "x"], "kind = x, must be one of"),
        (["evaluate"], "TRACE, name at least one trace"),
        (["evaluate", "tau3-airline"], "tau3-airline: holds no worker to evaluate on"),
        (["evaluate", "nothing"], "no such built-in corpus"),
        (["evaluate", "./telling.trace", "--seed", "-1"], "--seed = -1, must be 0 or more"),
        (["evaluate", "./telling.trace", "--predictor", "absent"], "absent: cannot be read"),
        (["evaluate", "./telling.trace", "--plots", "no/where"], "no/where: cannot be written"),
        (["evaluate", "./telling.trace", "--json", "no/e.json"], "no/e.json: cannot be written"),
        (
            ["evaluate", "./telling.trace", "--predictor", "p", "--kind", "ridge"],
            "--kind, a trained predictor has a kind",
        ),
    ],
)
def test_mistakes_take_one_line(run, arguments, said):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("lachesis: error: ")
    assert err.count("\n") == 1
    assert not Path("p.json").exists()


def test_a_predictor_is_not_evaluated_on_what_it_was_trained_on(run):
    run("train", "./telling.trace", "-o", "p.json")
    code, _, err = run("evaluate", "./telling.trace", "--predictor", "p.json")
    assert code == 2
    assert "trained on every session with workers" in err
    code, out, err = run("evaluate", "./telling.trace", "./fresh.trace", "--predictor", "p.json")
    assert code == 0
    assert "left out 36 workers of sessions that the predictor was trained on" in " ".join(
        out.split()
    )

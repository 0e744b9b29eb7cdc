"""The commands on the real sub-agent records beside the project."""

import json

import jsonschema
import numpy as np
import pytest

from lachesis.cli.entry import execute
from lachesis.predict import Kind, load, segment_scores, worker_table
from lachesis.results.predictor_document import evaluation_schema
from lachesis.traces import open_trace

pytestmark = pytest.mark.samples

#: Logs of sub-agents with usage; together they are a few dozen workers.
FOLDERS = (
    "claude_code_spotter",
    "claude_code_log/real_projects",
    "atif_from_claude_code",
    "weka_claude_code",
)


@pytest.fixture(scope="module")
def paths(samples_dir):
    return [str(samples_dir / folder) for folder in FOLDERS]


@pytest.mark.parametrize("kind", list(Kind))
def test_real_workers_are_scored_out_of_fold(paths, kind, capfd, tmp_path):
    code = execute(
        ["predictor", "evaluate", *paths, "--kind", str(kind), "--json", str(tmp_path / "e.json"),
         "--plots", str(tmp_path / "plots")]
    )  # fmt: skip
    out, err = capfd.readouterr()
    assert (code, err) == (0, "")
    document = json.loads((tmp_path / "e.json").read_text())
    jsonschema.validate(document, evaluation_schema())
    assert document["workers"] == len(worker_table(open_trace(*paths))) >= 15
    assert "too few to tell" in " ".join(out.split())


def test_a_predictor_trained_on_one_source_scores_another(paths, tmp_path):
    file = str(tmp_path / "p.json")
    assert execute(["predictor", "train", "multi-agent", "-o", file, "--quiet"]) == 0
    trace = open_trace(*paths)
    scores = segment_scores(trace, load(file))
    workers = np.array(trace.segments["class"].to_pylist()) == "worker"
    assert (np.isfinite(scores) == workers).all()
    assert len(set(scores[workers].tolist())) > 5

"""``run`` on the real records beside the project: folders, single files, several at once."""

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from lachesis.presets import Settings
from lachesis.results import run_document, run_schema, to_json
from lachesis.simulation import Load, Plan, Stopping, compare
from lachesis.traces import open_trace

pytestmark = pytest.mark.samples

Lachesis = Callable[..., tuple[int, str, str]]
FOLDERS = (
    "tau2_bench",
    "tau_bench_v1",
    "claude_code_spotter",
    "claude_code_log/real_projects",
    "atif_from_claude_code",
)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_split_and_both_models(samples_dir: Path, folder: str) -> None:
    trace = open_trace(samples_dir / folder)
    for model in ("llama-4-maverick", "qwen3-235b-a22b"):
        for memory in ("1/7", "2/6", "3/5", "4/4", "8/8*"):
            plan = Plan(
                Settings.choose(model=model, memory=memory), stopping=Stopping(turnovers=2.0)
            )
            document = run_document(compare(trace, plan, load=Load.parse("8")))
            jsonschema.validate(json.loads(to_json(document)), run_schema())
            for run in document["runs"]:
                assert run["requests"] > 0
                assert run["hbm_write_bytes"] + run["hbf_write_bytes"] > 0


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_command_on_a_folder_says_what_repeats(
    samples_dir: Path, folder: str, lachesis_here: Lachesis
) -> None:
    code, out, err = lachesis_here(
        "run", str(samples_dir / folder), "--load", "64", "--turnovers", "2", "--json", "-"
    )
    assert code == 0
    document = json.loads(out)
    sessions = document["provenance"]["trace_sessions"]
    if sessions < 64:
        assert f"{sessions} sessions repeat for ever in the replay" in " ".join(err.split())
    assert document["provenance"]["trace_quality"]["reported"] >= 0


def test_every_single_file_runs_or_holds_no_request(
    samples_dir: Path, lachesis_here: Lachesis
) -> None:
    ran = refused = 0
    for folder in FOLDERS:
        for file in sorted((samples_dir / folder).rglob("*.json*")):
            code, _, err = lachesis_here(
                "run", str(file), "--load", "2", "--turnovers", "1", "--quiet", "--threads", "1"
            )
            if code:
                assert (code, "no request remains" in err) == (2, True), err
                refused += 1
            else:
                assert err == ""
                ran += 1
    # Warm-ups and empty files hold no request.
    assert ran >= 20
    assert refused >= 1


def test_several_formats_are_one_workload(samples_dir: Path, lachesis_here: Lachesis) -> None:
    parts = [str(samples_dir / folder) for folder in FOLDERS]
    code, out, _ = lachesis_here(
        "run", *parts, "tau3-airline", "--load", "8", "--turnovers", "1", "--quiet", "--json", "-"
    )
    assert code == 0
    assert json.loads(out)["provenance"]["trace_sessions"] > 58 + 59

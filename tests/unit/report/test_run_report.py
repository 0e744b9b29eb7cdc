"""Tables, sentences and plots of a run, from documents written by hand."""

import copy
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lachesis.errors import InputError
from lachesis.presets import Settings
from lachesis.report.run_plot import plot_format, plot_run
from lachesis.report.run_summary import outcome_sentence, quality_sentences, sentences, warnings
from lachesis.report.run_table import print_run
from lachesis.results import run_document
from lachesis.simulation import Load, Plan, Stopping, compare
from lachesis.traces import open_trace

POLICIES = ("hbm-first", "hbf-only", "hbm-only", "lachesis-deterministic")


@pytest.fixture(scope="module")
def real_document() -> dict[str, Any]:
    plan = Plan(Settings.choose(), stopping=Stopping(turnovers=2.0))
    outcome = compare(open_trace("tau3-airline"), plan, POLICIES, Load.parse("8"))
    return run_document(outcome, corpora=["tau3-airline"])


@pytest.fixture
def document(real_document: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(real_document)


def rated(policy: str, years: float | None) -> dict[str, Any]:
    return {"policy": policy, "hbf_lifetime_years": years, "warranty_years": 5.0}


@pytest.mark.parametrize(
    ("lifetimes", "said"),
    [
        (
            {"hbm-first": 2.0, "lachesis-deterministic": 3.0, "hbf-only": 1.9},
            "The flash lasts longest under lachesis-deterministic: 3.00 years, 1.50 times as long "
            "as under hbm-first, short of the 5-year warranty.",
        ),
        (
            {"lachesis-deterministic": 6.0, "hbf-only": 3.0},
            "The flash lasts longest under lachesis-deterministic: 6.00 years, 2.00 times as long "
            "as under hbf-only, past the 5-year warranty.",
        ),
        (
            {"hbm-first": 4.0, "hbf-only": 2.0},
            "The flash lasts longest under hbm-first: 4.00 years, 2.00 times as long as under "
            "hbf-only, short of the 5-year warranty.",
        ),
        (
            {"hbm-first": 5.0},
            "Under hbm-first the flash lasts 5.00 years, past the 5-year warranty.",
        ),
        (
            {"hbm-first": 1099.2, "hbf-only": 1099.1},
            "The flash lasts alike under all policies: 1,099 years, past the 5-year warranty.",
        ),
        ({"hbm-only": None}, "No policy here has device-years; the notes say why."),
    ],
)
def test_which_policy_lives_longest(lifetimes: dict[str, float | None], said: str) -> None:
    assert outcome_sentence([rated(*each) for each in lifetimes.items()]) == said


def test_load_settling_and_repeats_are_said_once(document: dict[str, Any]) -> None:
    for run in document["runs"]:
        run["settled"] = True
        run["session_repeats"] = 11.9
        run["notes"] = ["58 sessions repeat for ever in the replay: each was drawn about 12 times"]
    said = sentences(document)
    assert "Load: 8 sessions, as given. All runs have settled." in said
    assert said.count(f"{document['runs'][0]['notes'][0]}.") == 1
    document["runs"][1]["session_repeats"] = 15.2
    document["runs"][1]["notes"] = [
        "58 sessions repeat for ever in the replay: each was drawn about 15 times"
    ]
    assert (
        "58 sessions repeat for ever in the replay: each was drawn about 12 to 15 times."
        in sentences(document)
    )


def test_loads_that_were_searched_for(document: dict[str, Any]) -> None:
    document["provenance"]["options"]["load"] = "auto"
    document["provenance"]["searches"] = [{"policy": "hbm-first"}]
    for run in document["runs"]:
        run.update(admitted_sessions=525, load_sessions=525, settled=False)
    assert "Load: 525 sessions, the most that the SLO admits under hbm-first." in sentences(
        document
    )
    for run in document["runs"]:
        run.update(admitted_sessions=0, load_sessions=1)
    assert "Load: 1 session, although the SLO admits none under hbm-first." in sentences(document)


def test_warnings_that_policies_share_are_said_once(document: dict[str, Any]) -> None:
    for run in document["runs"]:
        run["warnings"] = ["all of them"]
    document["runs"][1]["warnings"].append("one of them")
    assert warnings(document) == ["all of them.", "hbf-only: one of them."]


def test_quality_tells_what_was_recounted_and_left_out() -> None:
    quality = {
        "reported": 24, "recounted": 18, "inferred": 0, "dropped": 1,
        "dropped_reasons": {"no tokens": 1}, "excluded": 3,
        "excluded_reasons": {"greeting": 2, "warm-up": 1}, "adjusted": {"context reset": 2},
        "filled": {"session": {"each request is one": 24}, "turn": {"a user's message": 42}},
        "skipped_files": {"a.txt": "is empty", "b.txt": "is empty"}, "orphan_subagents": 1,
        "empty_sessions": 0,
    }  # fmt: skip
    assert quality_sentences(quality) == [
        "Token counts of requests: 24 reported, 18 recounted.",
        "1 row dropped: 1 x no tokens.",
        "3 calls excluded: 2 x greeting; 1 x warm-up.",
        "Adjusted where the log contradicts itself: 2 x context reset.",
        "Filled in where the log says nothing: session: each request is one (24); "
        "turn: a user's message (42).",
        "2 files skipped: a.txt (is empty), and 1 more.",
        "1 sub-agent without a lead, each a session of its own.",
    ]


def test_the_table_fits_80_columns_with_absurd_figures(document: dict[str, Any]) -> None:
    for run in document["runs"]:
        run["hbf_lifetime_years"] = 123456.0
        run["hbf_lifetime_years_ci95"] = [98765.0, 234567.0]
        run["load_sessions"] = 131072
        run["hbf_write_bytes_per_s_per_gpu"] = 9.9e10
    screen = io.StringIO()
    print_run(Console(file=screen, width=80), document)
    text = screen.getvalue()
    assert max(len(line) for line in text.splitlines()) <= 80
    for word in ("123,456", "98,765 to 234,567", "131,072", "99,000", *POLICIES):
        assert word in text


def test_names_that_look_like_markup_are_printed_as_they_are(document: dict[str, Any]) -> None:
    document["provenance"]["trace_source"] = "[bold]logs[/bold]/:smile:.jsonl"
    screen = io.StringIO()
    print_run(Console(file=screen, width=80), document)
    assert "[bold]logs[/bold]/:smile:.jsonl" in screen.getvalue()


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_plots_are_drawn_and_equal_documents_give_equal_files(
    document: dict[str, Any], tmp_path: Path, ending: str
) -> None:
    for name in ("a", "b"):
        plot_run(document, tmp_path / f"{name}.{ending}")
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    content = (tmp_path / f"a.{ending}").read_bytes()
    assert content.startswith(start)
    assert content == (tmp_path / f"b.{ending}").read_bytes()


def test_a_plot_says_what_it_shows(document: dict[str, Any], tmp_path: Path) -> None:
    document["runs"][0]["hbf_lifetime_years"] = 2.0
    document["runs"][0]["hbf_lifetime_years_ci95"] = None
    plot_run(document, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    # Texts are drawn as outlines with the words beside them in comments.
    for words in (
        "5-year warranty", "device-years with 95 % interval", "share of written bytes, %",
        "to flash (hatched)", "no device-years", "reasoning-laden", "2.00",
    ):  # fmt: skip
        assert words in text
    assert "worker" not in text


def test_a_plot_of_nothing_written(document: dict[str, Any], tmp_path: Path) -> None:
    for run in document["runs"]:
        run.update(hbm_write_bytes=0, hbf_write_bytes=0, hbf_lifetime_years=None,
                   hbf_lifetime_years_ci95=None, gain_over_hbm_first=None)  # fmt: skip
        run["write_bytes_by_class"] = {
            name: {"hbm": 0, "hbf": 0} for name in run["write_bytes_by_class"]
        }
    plot_run(document, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_other_endings_are_refused() -> None:
    with pytest.raises(InputError, match=r"run\.gif: a plot's name ends in \.png, \.svg, \.pdf"):
        plot_format("run.gif")
    assert plot_format("RUN.PNG") == "png"


def test_documents_are_plain_json(document: dict[str, Any]) -> None:
    assert json.loads(json.dumps(document)) == document

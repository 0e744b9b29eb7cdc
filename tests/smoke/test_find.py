"""``lachesis find``: answers that are right, and reasons where there is none."""

import json
from pathlib import Path

import jsonschema
import pytest

from lachesis.questions import answer_schema
from lachesis.questions.boundary import last_passing

QUICK = ("--turnovers", "2", "--precision", "20%")


def asked(lachesis_here, *words):
    ended = lachesis_here("find", *words, *QUICK, "--json", "answer.json")
    assert ended.code == 0, ended.err
    answer = json.loads(Path("answer.json").read_text())
    jsonschema.validate(answer, answer_schema())
    return answer, " ".join(ended.out.split())


def test_the_least_hbm_is_the_first_split_that_lasts(lachesis_here):
    words = ("smallest-hbm", "tau3-airline", "--load", "32", "--policy", "lachesis-deterministic")
    answer, said = asked(lachesis_here, *words, "--years", "1")
    (finding,) = answer["findings"]
    assert finding["found"]["memory"] == "1/7"
    assert finding["found"]["hbm_gb_per_gpu"] == 36
    assert len(answer["runs"]) == 1
    assert finding["sentence"] in said
    assert "misses the SLO" not in said
    # The SLO is not asked for, and a miss is told.
    answer, said = asked(lachesis_here, *words, "--years", "1", "--set", "slo.tpot_p99_ms=1")
    assert answer["findings"][0]["found"]["meets_slo"] is False
    assert "at 32 sessions, and misses the SLO there" in said
    # All the splits are tried before it is said that none will do.
    answer, said = asked(lachesis_here, *words, "--years", "1e8")
    assert answer["findings"][0]["found"] is None
    assert [run["memory"] for run in answer["runs"]] == [f"{h}/{8 - h}" for h in range(1, 8)] + [
        "8/8*"
    ]
    assert "none lasts 1e+08 years; the longest is" in said


def test_with_a_split_that_is_given_the_capacity_varies(lachesis_here):
    # The KV of 400 sessions does not fit the HBM of one stack: more of it keeps more from flash.
    words = ("--load", "400", "--memory", "1/7", "--policy", "lachesis-deterministic")
    lowest = asked(lachesis_here, "smallest-hbm", "tau3-airline", *words, "--years", "0.001")[0][
        "findings"
    ][0]["found"]
    years = lowest["hbf_lifetime_years"]
    assert lowest["hbm_gb_per_stack"] == 1
    answer, _ = asked(
        lachesis_here, "smallest-hbm", "tau3-airline", *words, "--years", f"{1.2 * years}"
    )
    found = answer["findings"][0]["found"]
    assert found["hbm_gb_per_stack"] > 1
    by_gb = {run["hbm_gb_per_gpu"]: run["hbf_lifetime_years"] for run in answer["runs"]}
    assert by_gb[found["hbm_gb_per_stack"]] >= 1.2 * years
    assert max(gb for gb in by_gb if by_gb[gb] < 1.2 * years) < found["hbm_gb_per_stack"]


def test_the_largest_load_lasts_and_one_above_it_does_not(lachesis_here, small_log):
    words = (
        "largest-load", str(small_log), "--policy", "hbf-only", "--set", "flash.pe_cycles=20",
        "--set", "hardware.max_sequences=8", "--set", "slo.ttft_p99_s=1.5",
    )  # fmt: skip
    answer, _ = asked(lachesis_here, *words, "--years", "1e-9")
    found = answer["findings"][0]["found"]
    assert found["bound_by"] == "slo"
    most = found["load_sessions"]
    assert most > 4
    years = 2.0 * found["hbf_lifetime_years"]
    answer, said = asked(lachesis_here, *words, "--years", f"{years}")
    found = answer["findings"][0]["found"]
    assert found["bound_by"] == "years"
    assert 1 <= found["load_sessions"] < most
    lasts = {run["load_sessions"]: run["hbf_lifetime_years"] >= years for run in answer["runs"]}
    assert lasts[found["load_sessions"]]
    assert not lasts[min(load for load in lasts if load > found["load_sessions"])]
    assert "the SLO would admit" in said
    answer, said = asked(lachesis_here, *words, "--years", "1e8")
    assert answer["findings"][0]["found"] is None
    assert "at one live session already the flash lasts" in said


def test_the_cheapest_split_costs_least_of_those_that_last(lachesis_here):
    words = ("cheapest-split", "tau3-airline", "--load", "16", "--years", "1")
    prices = ("--hbm-price", "300", "--hbf-price", "100")
    answer, said = asked(lachesis_here, *words, *prices)
    for finding in answer["findings"]:
        assert finding["found"]["memory"] == "1/7"
        assert finding["found"]["cost_per_gpu"] == 300 + 7 * 100
    assert "1/7, 1,000 a GPU" in said
    # With flash that costs more than HBM, the split with the least flash is the cheapest.
    answer, _ = asked(lachesis_here, *words, "--hbm-price", "100", "--hbf-price", "300")
    assert {finding["found"]["memory"] for finding in answer["findings"]} == {"7/1"}
    ended = lachesis_here("find", *words)
    assert ended.code == 2
    assert "--hbm-price" in ended.err


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        (("--set", "node.duty_cycle=0.4"), 2.5),
        (("--set", "flash.pe_cycles=50_000"), 0.5),
        # Half the bytes a token, but steps are faster too.
        (("--set", "model.kv_bytes_per_value=1"), None),
        (("--model", "qwen3-235b-a22b"), None),
        (("--set", "flash.refresh_hours=24"), None),
    ],
)
def test_the_effect_of_a_change_at_the_same_load(lachesis_here, change, factor):
    answer, said = asked(lachesis_here, "effect", "tau3-airline", "--load", "8", *change)
    before, after = answer["runs"][0::2][0], answer["runs"][2::2][0]
    assert (before["scenario"], after["scenario"]) == ("before", "after, same load")
    assert before["load_sessions"] == after["load_sessions"] == 8
    for finding in answer["findings"]:
        found = finding["found"]["same_load_factor"]
        assert found == pytest.approx(factor) if factor else found != pytest.approx(1.0, rel=1e-3)
    assert "becomes" in said


def test_the_effect_at_the_load_that_the_slo_admits_then(lachesis_here, small_log):
    answer, said = asked(
        lachesis_here, "effect", str(small_log), "--policy", "hbf-only",
        "--from", "hardware.max_sequences=8", "--from", "slo.ttft_p99_s=1.5",
        "--set", "hardware.max_sequences=16",
    )  # fmt: skip
    before, same, own = answer["runs"]
    assert before["load_sessions"] == same["load_sessions"] < own["load_sessions"]
    assert answer["findings"][0]["found"]["load_sessions"] == [
        before["load_sessions"], own["load_sessions"],
    ]  # fmt: skip
    assert "that the SLO admits then" in said


def test_a_change_back_to_what_is_usual_is_one(lachesis_here):
    answer, _ = asked(
        lachesis_here, "effect", "tau3-airline", "--load", "8", "--policy", "hbf-only",
        "--from", "model=qwen3-235b-a22b", "--model", "llama-4-maverick",
    )  # fmt: skip
    assert answer["asked"] == {"change": {"model": "llama-4-maverick"}}
    assert [run["model"] for run in answer["runs"]] == ["qwen3-235b-a22b", "llama-4-maverick"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("effect", "tau3-airline"), "name something that changes"),
        (("effect", "tau3-airline", "--from", "colour=red"), "--from = colour, must be one of"),
        (("smallest-hbm", "tau3-airline", "--years", "0"), "--years = 0.0, must be above 0"),
        (("smallest-hbm", "tau3-airline", "--years", "5", "--memory", "8/0"), "has no flash"),
        (("largest-load", "tau3-airline", "--years", "5", "--load", "8"), "is what is asked for"),
        (("largest-load", "--years", "5"), "name at least one trace"),
        (
            ("cheapest-split", "tau3-airline", "--years", "5", "--hbm-price", "1", "--hbf-price",
             "-1"),
            "--hbf-price = -1.0, must be above 0",
        ),
    ],
)  # fmt: skip
def test_questions_that_are_none_are_refused(lachesis_here, words, said):
    ended = lachesis_here("find", *words)
    assert ended.code == 2
    assert said in ended.err


def test_a_split_that_the_model_does_not_fit_is_left_out_and_said(lachesis_here):
    answer, said = asked(
        lachesis_here, "cheapest-split", "tau3-airline", "--load", "4", "--years", "1",
        "--hbm-price", "100", "--hbf-price", "300", "--policy", "hbm-only", "--policy", "hbf-only",
        "--set", "hardware.hbf_gb_per_stack=90", "--set", "flash.pe_cycles=10000",
    )  # fmt: skip
    # Weights of 125 GB a GPU lie in flash, of which there is one stack at 7/1.
    assert {run["memory"] for run in answer["infeasible"]} == {"7/1"}
    assert [run["policy"] for run in answer["infeasible"]] == ["hbm-only", "hbf-only"]
    assert "2 runs cannot be run, and are left out: memory = 7/1, weights of" in said
    assert {run["memory"] for run in answer["runs"]} >= {"1/7", "6/2", "8/8*"}
    assert answer["findings"][1]["found"]["memory"] == "6/2"


def test_one_policy_that_a_memory_is_too_small_for_takes_no_other_with_it(lachesis_here):
    log = [{"session": "b", "turn": 0, "input_tokens": 500_000, "output_tokens": 40}]
    Path("log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in log))
    answer, said = asked(
        lachesis_here, "cheapest-split", "log.jsonl", "--load", "2", "--years", "1e-6",
        "--hbm-price", "300", "--hbf-price", "100", "--policy", "hbm-only", "--policy", "hbf-only",
    )  # fmt: skip
    assert ("hbm-only", "1/7") in {
        (each["policy"], each["memory"]) for each in answer["infeasible"]
    }
    assert "needs 31253 KV blocks at once" in said
    assert {run["memory"] for run in answer["runs"] if run["policy"] == "hbf-only"} >= {"1/7"}


def test_the_boundary_of_any_falling_margin_is_found():
    for power in (0.3, 1.0, 3.0):
        for boundary in (1, 2, 77, 1_000, 99_999):
            tried = []

            def margin(number, boundary=boundary, power=power, tried=tried):
                tried.append(number)
                return ((boundary + 0.5) / number) ** power

            assert last_passing(margin, 1, 100_000, resolution=0.0) == boundary
            assert len(tried) < 25
    # A cliff is no power.
    assert last_passing(lambda n: 5.0 if n <= 700 else 0.1, 1, 100_000, resolution=0.0) == 700

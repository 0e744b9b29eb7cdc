"""From counts to bytes, rates, years and sentences, on figures that can be checked by hand."""

import json
import math
from typing import Any

import jsonschema
import pytest

from lachesis.policy import choose_policy
from lachesis.presets import Settings, apply_overrides
from lachesis.results import run_document, run_schema, to_json
from lachesis.simulation import Comparison, Load, LoadSearch, Plan, Replay, Stopping
from lachesis.traces import SegmentClass, Trace, TraceBuilder

#: Llama 4 Maverick: 48 layers x 2 x 8 heads x 128 values x 2 bytes.
BYTES_PER_TOKEN = 196_608
GPUS = 8
WINDOW_S = 1000.0


def tokens(**classes: tuple[int, int]) -> dict[str, tuple[int, int]]:
    given = {name.replace("_", "-"): tiers for name, tiers in classes.items()}
    return {str(name): given.get(name, (0, 0)) for name in SegmentClass}


def measured(**changes: Any) -> dict[str, Any]:
    """What the engine gives: 600 s before the window, 1,000 s in it."""
    window = {
        "time_s": WINDOW_S, "steps": 20_000, "requests": 500, "sessions": 40,
        "output_tokens": 30_000, "timed_ttft": 500, "timed_tpot": 490, "over_ttft": 5,
        "over_tpot": 4, "preemptions": 0, "session_losses": 0, "fallback_blocks": 3,
        "reclaimed_blocks": 7, "landed_tokens": 900,
        "blocks_in_use_mean": (22_888 * GPUS / 2, 936_837 * GPUS / 4),
        "materialised_tokens": tokens(worker=(1000, 400), lead=(0, 600)),
        "rematerialised_tokens": tokens(worker=(0, 50), prompt=(0, 0)),
    }  # fmt: skip
    whole = {"time_s": 1600.0, "requests": 900, "reclaimed_blocks": 9}
    base = {
        "whole": whole, "window": window, "settled": True, "stuck": False,
        "window_start_s": 600.0, "batches": 12,
        "turnovers": 5.0, "hbm_tokens_per_s": (1.0, 0.1), "hbf_tokens_per_s": (1.05, 0.0525),
        "ttft_p50_s": 1.1, "ttft_p90_s": 1.2, "ttft_p99_s": 1.9, "tpot_p50_s": 0.04,
        "tpot_p90_s": 0.05, "tpot_p99_s": 0.06, "landing_duty": 0.01, "repeats": 12.3,
    }  # fmt: skip
    for key, value in changes.items():
        place = window if key in window else whole if key.startswith("whole_") else base
        place[key.removeprefix("whole_")] = value
    return base


@pytest.fixture(scope="module")
def trace() -> Trace:
    builder = TraceBuilder(source="by hand")
    for name in "ab":
        session = builder.session(name, workload="w", harness="h")
        session.request(input_tokens=100, output_tokens=10)
    return builder.build()


def comparison(
    trace: Trace,
    replays: list[tuple[str, dict[str, Any]]],
    *,
    asked: Load | None = None,
    searches: tuple[LoadSearch, ...] = (),
    sessions: int = 8,
    **plan: Any,
) -> Comparison:
    plan.setdefault("settings", Settings.choose())
    return Comparison(
        trace=trace,
        plan=Plan(**plan),
        asked_load=asked or Load("closed", sessions),
        replays=tuple(
            Replay(choose_policy(policy), Load("closed", sessions), figures, 0.5)
            for policy, figures in replays
        ),
        searches=searches,
    )


def runs_of(compared: Comparison) -> list[dict[str, Any]]:
    document = run_document(compared, command=["lachesis", "run", "a b"])
    jsonschema.validate(document, run_schema())
    runs: list[dict[str, Any]] = json.loads(to_json(document))["runs"]
    return runs


def test_tokens_become_bytes_and_what_was_written_again_is_among_them(trace: Trace) -> None:
    (run,) = runs_of(comparison(trace, [("hbm-first", measured())]))
    assert run["hbm_write_bytes"] == 1000 * BYTES_PER_TOKEN
    assert run["hbf_write_bytes"] == (400 + 600 + 50) * BYTES_PER_TOKEN
    assert run["rematerialized_bytes"] == 50 * BYTES_PER_TOKEN
    assert run["write_bytes_by_class"]["worker"] == {
        "hbm": 1000 * BYTES_PER_TOKEN, "hbf": 450 * BYTES_PER_TOKEN,
    }  # fmt: skip
    for tier in ("hbm", "hbf"):
        by_class = sum(tiers[tier] for tiers in run["write_bytes_by_class"].values())
        assert by_class == run[f"{tier}_write_bytes"]
    assert run["hbm_write_share"] == 1000 / 2050
    assert run["written_tokens_per_s"] == 2.05
    assert run["output_tokens_per_s"] == 30.0
    assert run["fallback_bytes"] == 3 * 16 * BYTES_PER_TOKEN
    assert run["reclaimed_bytes"] == 7 * 16 * BYTES_PER_TOKEN
    assert (run["hbm_occupancy_mean"], run["hbf_occupancy_mean"]) == (0.5, 0.25)
    assert run["hbm_capacity_share"] == 22_888 / (22_888 + 936_837)


def test_a_stuck_run_has_no_device_years_and_meets_no_slo(trace: Trace) -> None:
    stuck = measured(stuck=True, settled=False)
    first, run = runs_of(
        comparison(trace, [("hbm-first", measured()), ("lachesis-deterministic", stuck)])
    )
    assert first["hbf_lifetime_years"] > 0
    assert run["hbf_lifetime_years"] is None
    assert run["gain_over_hbm_first"] is None
    assert not run["meets_slo"]
    assert any(warning.startswith("stuck: ") for warning in run["warnings"])


def test_a_search_that_found_no_end_says_so(trace: Trace) -> None:
    search = LoadSearch("hbm-first", 8, ((8, True),), bounded=False)
    compared = comparison(
        trace, [("hbm-first", measured())], asked=Load("auto"), searches=(search,)
    )
    (run,) = runs_of(compared)
    assert any("admits more than 8 sessions" in warning for warning in run["warnings"])
    searches = run_document(compared)["provenance"]["searches"]
    assert searches[0]["bounded"] is False


def test_device_years_follow_from_rate_capacity_cycles_and_amplification(trace: Trace) -> None:
    (run,) = runs_of(comparison(trace, [("hbm-first", measured())]))
    rate = 1050 * BYTES_PER_TOKEN / WINDOW_S / GPUS
    assert run["hbf_write_bytes_per_s_per_gpu"] == pytest.approx(rate, rel=1e-12)
    # Six stacks of 512 GB, weights area included; a year of 365.25 days.
    years = 6 * 512e9 * 100_000 / (1.02 * rate * 31_557_600)
    assert run["hbf_lifetime_years"] == pytest.approx(years, rel=1e-12)
    # The rate is known to 5 %.
    low, high = run["hbf_lifetime_years_ci95"]
    assert low == pytest.approx(years / 1.05, rel=1e-12)
    assert high == pytest.approx(years / 0.95, rel=1e-12)


def test_overrides_of_the_flash_reach_the_years(trace: Trace) -> None:
    (plain,) = runs_of(comparison(trace, [("hbf-only", measured())]))
    settings = apply_overrides(Settings.choose(), ["flash.pe_cycles=10000"])
    compared = comparison(trace, [("hbf-only", measured())], settings=settings)
    (worn,) = runs_of(compared)
    assert worn["hbf_lifetime_years"] == pytest.approx(plain["hbf_lifetime_years"] / 10, rel=1e-12)
    assert worn["config_sha256"] != plain["config_sha256"]
    assert run_document(compared)["provenance"]["overrides"] == [
        {"key": "flash.pe_cycles", "value": 10000, "source": "set by user"}
    ]


def test_gain_is_over_hbm_first_and_null_without_it(trace: Trace) -> None:
    less = measured(
        materialised_tokens=tokens(worker=(1525, 525)), rematerialised_tokens=tokens(),
        hbf_tokens_per_s=(0.525, 0.01),
    )  # fmt: skip
    first, other = runs_of(
        comparison(trace, [("hbm-first", measured()), ("lachesis-deterministic", less)])
    )
    assert first["gain_over_hbm_first"] == 1.0
    assert other["gain_over_hbm_first"] == pytest.approx(2.0, rel=1e-12)
    (alone,) = runs_of(comparison(trace, [("lachesis-deterministic", less)]))
    assert alone["gain_over_hbm_first"] is None
    assert alone["hbf_lifetime_years"] == other["hbf_lifetime_years"]


def test_no_years_where_nothing_wears_the_flash_and_the_reason(trace: Trace) -> None:
    dry = measured(
        materialised_tokens=tokens(worker=(10, 0)), rematerialised_tokens=tokens(),
        hbf_tokens_per_s=(0.0, 0.0),
    )  # fmt: skip
    only, deterministic = runs_of(
        comparison(trace, [("hbm-only", measured()), ("lachesis-deterministic", dry)])
    )
    for run, reason in ((only, "never reaches flash"), (deterministic, "nothing was written")):
        assert run["hbf_lifetime_years"] is None
        assert run["hbf_lifetime_years_ci95"] is None
        assert any(reason in note for note in run["notes"])
    nothing = measured(materialised_tokens=tokens(), rematerialised_tokens=tokens(),
                       hbf_tokens_per_s=(0.0, 0.0))  # fmt: skip
    (idle,) = runs_of(comparison(trace, [("hbf-only", nothing)]))
    assert idle["hbm_write_share"] is None


@pytest.mark.parametrize(
    ("rate", "reason"),
    [
        ((1.05, math.inf), "too short"),
        ((1.05, 1.05), "no upper end"),
        ((1.05, 9.0), "no upper end"),
    ],
)
def test_no_interval_without_an_upper_end(
    trace: Trace, rate: tuple[float, float], reason: str
) -> None:
    (run,) = runs_of(comparison(trace, [("hbf-only", measured(hbf_tokens_per_s=rate))]))
    assert run["hbf_lifetime_years"] is not None
    assert run["hbf_lifetime_years_ci95"] is None
    assert any(reason in note for note in run["notes"])


def test_a_memory_without_flash_has_no_flash_occupancy(trace: Trace) -> None:
    settings = Settings.choose(hardware="h200-sxm", memory="6/0", model="qwen3-32b")
    figures = measured(
        materialised_tokens=tokens(worker=(10, 0)), rematerialised_tokens=tokens(),
        hbf_tokens_per_s=(0.0, 0.0), blocks_in_use_mean=(100.0, 0.0),
    )  # fmt: skip
    (run,) = runs_of(comparison(trace, [("hbm-first", figures)], settings=settings))
    assert run["hbf_occupancy_mean"] is None
    assert run["hbf_lifetime_years"] is None
    assert "no device-years: this memory has no flash" in run["notes"]


def test_the_slo_is_met_by_counts_and_a_miss_is_told(trace: Trace) -> None:
    (met,) = runs_of(comparison(trace, [("hbf-only", measured(over_ttft=5))]))
    assert met["meets_slo"] is True
    assert met["warnings"] == [
        "small corpus: 2 sessions for a load of 8, so that copies of a session are live at the "
        "same time"
    ]
    (missed,) = runs_of(comparison(trace, [("hbf-only", measured(over_ttft=6))]))
    assert missed["meets_slo"] is False
    assert (
        "misses the SLO at this load: 1.20% of requests take longer than TTFT 2 s (1 % may)"
        in (missed["warnings"])
    )
    (none,) = runs_of(comparison(trace, [("hbf-only", measured(requests=0))]))
    assert "misses the SLO: no request ended in the window" in none["warnings"]


def test_a_load_of_none_is_a_result(trace: Trace) -> None:
    search = LoadSearch("hbm-first", 0, ((64, False), (1, False)))
    compared = comparison(
        trace, [("hbf-only", measured(over_tpot=490))], asked=Load("auto"), searches=(search,),
        sessions=1,
    )  # fmt: skip
    (run,) = runs_of(compared)
    assert (run["admitted_sessions"], run["load_sessions"], run["meets_slo"]) == (0, 1, False)
    assert any(text.startswith("the SLO admits no load") for text in run["warnings"])
    assert run_document(compared)["provenance"]["searches"] == [
        {
            "policy": "hbm-first",
            "admitted_sessions": 0,
            "bounded": True,
            "tried": [{"sessions": 64, "passes": False}, {"sessions": 1, "passes": False}],
        }
    ]


def test_why_a_run_has_not_settled(trace: Trace) -> None:
    def warning(policy: str, **changes: Any) -> str:
        compared = comparison(
            trace, [(policy, measured(settled=False, **changes))],
            stopping=Stopping(turnovers=4.0, horizon_s=86_400.0 * 3, precision=0.05),
        )  # fmt: skip
        (run,) = runs_of(compared)
        return next(text for text in run["warnings"] if text.startswith("not settled"))

    assert "after 4 turnovers of the live sessions" in warning("hbf-only")
    assert "±5 % asked for" in warning("hbf-only")
    assert "after 3 days of simulated time" in warning("hbf-only", whole_time_s=86_400.0 * 3)
    assert "memory had not filled" in warning("hbm-first", whole_reclaimed_blocks=0)


def test_pressure_and_repeats_are_told(trace: Trace) -> None:
    (run,) = runs_of(
        comparison(trace, [("hbf-only", measured(preemptions=1200, session_losses=3))])
    )
    assert any("1,200 running requests were preempted and 3 sessions" in w for w in run["warnings"])
    assert run["notes"] == [
        "2 sessions repeat for ever in the replay: each was drawn about 12 times"
    ]


def test_the_configuration_hash_sees_values_and_not_where_they_were_written(trace: Trace) -> None:
    def digest(**plan: Any) -> str:
        value: str = run_document(comparison(trace, [("hbf-only", measured())], **plan))[
            "provenance"
        ]["config_sha256"]
        return value

    same = apply_overrides(Settings.choose(), ["flash.pe_cycles=100000"])
    assert digest(settings=same) == digest()
    different = [
        digest(seed=2),
        digest(step_time_s=0.05),
        digest(aged=False),
        digest(stopping=Stopping(precision=0.01)),
        digest(settings=Settings.choose(memory="1/7")),
        digest(settings=Settings.choose(slo="loose")),
        digest(sessions=9),
    ]
    assert len({digest(), *different}) == len(different) + 1


def test_a_constant_step_takes_nothing_from_the_gpus_calibration(trace: Trace) -> None:
    priced = run_document(comparison(trace, [("hbf-only", measured())]))
    assert [item["key"] for item in priced["provenance"]["calibrated"]] == [
        "hardware.step_overhead_ms"
    ]
    constant = run_document(comparison(trace, [("hbf-only", measured())], step_time_s=0.05))
    assert constant["provenance"]["calibrated"] == []


def test_command_is_quoted_for_a_shell(trace: Trace) -> None:
    document = run_document(
        comparison(trace, [("hbf-only", measured())]), command=["lachesis", "run", "a b"]
    )
    assert document["provenance"]["command"] == "lachesis run 'a b'"


def test_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"runs": math.nan})


def test_the_schema_is_valid_and_describes_every_key() -> None:
    schema = run_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for definition in ("run", "provenance"):
        for key, rule in schema["$defs"][definition]["properties"].items():
            assert rule.get("description"), key


@pytest.mark.parametrize("place", ["run", "provenance", "document"])
@pytest.mark.parametrize("fault", ["surprise", "missing"])
def test_the_schema_refuses_other_keys_and_missing_ones(
    trace: Trace, place: str, fault: str
) -> None:
    document = run_document(comparison(trace, [("hbf-only", measured())]))
    places = {
        "document": document,
        "provenance": document["provenance"],
        "run": document["runs"][0],
    }
    jsonschema.validate(document, run_schema())
    if fault == "surprise":
        places[place]["surprise"] = 1
    else:
        del places[place][next(iter(places[place]))]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, run_schema())

"""What the report's sentences claim, and what they must not."""

from typing import Any

from lachesis.presets import Settings
from lachesis.report.fixed_length import is_fixed_length
from lachesis.report.html.words import Answer, answer
from lachesis.results.document import run_objects
from lachesis.simulation import Load, LoadedTrace, Plan, Stopping, compare
from lachesis.traces import open_trace
from report_rows import LOOSE, row


def said(*rows: dict[str, Any], **more: Any) -> Answer:
    return answer(rows, **more)


def about_one_question(*rows: dict[str, Any]) -> str:
    (only,) = said(*rows).by_question
    return " ".join(only.sentences)


def test_one_run_is_told_in_the_singular() -> None:
    told = said(row())
    assert told.overview == (
        "1 run in 1 cell: trace corpus; model model-a; memory 2/6; "
        "SLO tight (p99 TPOT 60 ms, TTFT 2 s); policy lachesis; load 100 sessions.",
    )
    (only,) = told.by_question
    assert only.heading == ""
    assert only.sentences == (
        "The flash lasts 6.00 years at memory 2/6 under lachesis (95 % interval 5.90 to 6.10).",
        "It passes the 5-year warranty.",
    )
    assert told.by_slo == ()
    assert told.cautions == ("The run has settled.", "It meets its SLO.", "No warnings.")


def test_the_longest_life_is_named_with_its_gain_at_the_same_split() -> None:
    text = about_one_question(
        row(policy="hbm-first", years=(3.0, 2.9, 3.1)),
        row(policy="lachesis", years=(6.0, 5.9, 6.1), gain_over_hbm_first=2.0),
        row(policy="hbm-first", memory="4/4", years=(2.0, 1.9, 2.1)),
    )
    assert (
        "The flash lasts longest at memory 2/6 under lachesis: 6.00 years (95 % interval 5.90 to "
        "6.10), 2.00 times as long as under hbm-first at the same split."
    ) in text
    assert (
        "1 of 3 runs passes the 5-year warranty: lachesis at 2/6. The other 2 fall short." in text
    )


def test_without_a_baseline_no_gain_is_claimed() -> None:
    text = about_one_question(row(policy="hbf-only", years=(3.0, 2.9, 3.1)), row(policy="lachesis"))
    assert "times as long" not in text
    assert "hbm-first" not in text


def test_overlapping_intervals_are_a_tie_and_no_winner_is_named() -> None:
    text = about_one_question(
        row(policy="hbm-first", years=(2.0, 1.9, 2.1)),
        row(policy="lachesis", years=(6.0, 5.5, 6.5)),
        row(policy="lachesis", memory="4/4", years=(5.8, 5.3, 6.3)),
    )
    assert text.startswith(
        "The longest lives tie, as their 95 % intervals overlap: 6.00 years at memory 2/6 under "
        "lachesis (95 % interval 5.50 to 6.50) and 5.80 years at memory 4/4 under lachesis (95 %"
    )
    assert "longest at" not in text


def test_touching_intervals_are_a_tie() -> None:
    text = about_one_question(
        row(policy="hbm-first", years=(5.0, 4.5, 5.5)), row(years=(6.0, 5.5, 6.5))
    )
    assert text.startswith("All runs tie")


def test_a_missing_interval_decides_nothing() -> None:
    text = about_one_question(
        row(policy="hbm-first", years=(2.0, None, None)), row(years=(9.0, 8.0, 10.0))
    )
    assert text.startswith("All runs tie, as an interval is missing:")
    assert "1 is undecided, as no interval is known: hbm-first." in text


def test_more_ties_than_can_be_read_are_counted() -> None:
    rows = [row(memory=f"{stacks}/{8 - stacks}", years=(6.0, 5.0, 7.0)) for stacks in range(1, 8)]
    assert "and 3 other runs." in about_one_question(*rows)


def test_what_no_flash_wears_is_left_out_with_its_reason() -> None:
    text = about_one_question(
        row(
            policy="hbm-only",
            years=None,
            notes=["no device-years: generated KV never reaches flash"],
        ),
        row(),
    )
    assert text.startswith("The flash lasts 6.00 years")
    assert "No device-years: hbm-only, as generated KV never reaches flash." in text


def test_only_runs_without_device_years() -> None:
    told = said(row(policy="hbm-only", years=None))
    assert told.by_question[0].sentences[0] == "No run has device-years."
    assert not any("warranty" in text for text in told.by_question[0].sentences)


def test_a_run_that_misses_the_slo_does_not_win() -> None:
    text = about_one_question(
        row(memory="2/6"), row(memory="4/4", years=(9.0, 8.8, 9.2), meets_slo=False)
    )
    assert text.startswith("The flash lasts 6.00 years")
    assert (
        "Not counted: 1 run that misses the SLO (lachesis at 4/4); the longest life among them "
        "would be 9.00 years at memory 4/4 under lachesis."
    ) in text


def test_all_runs_miss_the_slo() -> None:
    text = about_one_question(row(meets_slo=False), row(memory="4/4", meets_slo=False))
    assert text.startswith("No run meets the SLO, so that none of them is an answer.")
    assert "passes" not in text


def test_a_close_miss_at_a_searched_load_competes_and_says_so() -> None:
    text = about_one_question(
        row(admitted_sessions=100, meets_slo=False, tpot_p99_s=0.0605),
        row(admitted_sessions=100, memory="4/4", years=(4.0, 3.9, 4.1)),
    )
    assert "misses the SLO closely with p99 TPOT 60.5 ms" in text
    assert "6.00 years with 100 sessions (95 %" in text
    assert "Not counted" not in text


def test_an_oracle_is_a_bound_and_no_winner() -> None:
    text = about_one_question(row(), row(policy="lachesis-oracle", years=(9.0, 8.9, 9.1)))
    assert text.startswith("The flash lasts 6.00 years")
    assert "A bound that nobody can build reaches 9.00 years at memory 2/6 under lachesis-oracle."\
        in text  # fmt: skip


def test_an_interval_that_spans_the_warranty_is_undecided() -> None:
    assert about_one_question(row(years=(5.1, 4.9, 5.3))).endswith(
        "Whether it passes the 5-year warranty is undecided, as the interval reaches to both "
        "sides of it."
    )


def test_unsettled_winners_and_passes_are_marked() -> None:
    told = said(row(settled=False), row(memory="4/4", settled=False, years=(4.0, 3.9, 4.1)))
    text = " ".join(told.by_question[0].sentences)
    assert "(95 % interval 5.90 to 6.10, not settled)" in text
    assert "lachesis at 2/6 (not settled)" in text
    assert told.cautions[0] == "None of 2 runs has settled: device-years may still drift."


def test_searched_loads_say_what_the_tight_slo_costs_and_gains() -> None:
    rows = [
        row(admitted_sessions=50, load_sessions=50, years=(8.0, 7.9, 8.1)),
        row(admitted_sessions=100, load_sessions=100, years=(4.0, 3.9, 4.1), **LOOSE),
        row(memory="4/4", admitted_sessions=60, load_sessions=60, years=(8.0, 7.9, 8.1)),
        row(memory="4/4", admitted_sessions=100, load_sessions=100, years=(5.0, 4.9, 5.1), **LOOSE),
    ]
    (paragraph,) = said(*rows).by_slo
    assert paragraph.sentences == (
        "SLO tight (p99 TPOT 60 ms, TTFT 2 s) admits 40 to 50 % fewer sessions than SLO loose "
        "(p99 TPOT 100 ms, TTFT 2 s).",
        "In exchange the flash lasts 1.60 to 2.00 times as long under the tighter SLO, at the same "
        "split and policy over 2 pairs of runs; by their 95 % intervals it is longer in all of "
        "them.",
    )


def test_a_given_load_is_not_said_to_be_moved_by_the_slo() -> None:
    (paragraph,) = said(row(meets_slo=False), row(**LOOSE)).by_slo
    assert paragraph.sentences == (
        "The load was given, so that the SLO moves no load: SLO tight (p99 TPOT 60 ms, TTFT 2 s) "
        "is missed, SLO loose (p99 TPOT 100 ms, TTFT 2 s) is met.",
        "The lifetimes are not told apart by their 95 % intervals.",
    )


def test_an_slo_that_admits_no_load_gives_no_ratio() -> None:
    (paragraph,) = said(
        row(admitted_sessions=0, load_sessions=1, meets_slo=False, years=(90.0, 80.0, 99.0)),
        row(admitted_sessions=100, **LOOSE),
    ).by_slo
    assert paragraph.sentences[0].startswith("SLO tight (p99 TPOT 60 ms, TTFT 2 s) admits no load")


def test_slos_of_which_neither_is_the_tighter_are_not_compared() -> None:
    assert said(row(slo_ttft_p99_s=3.0), row(**LOOSE)).by_slo == ()


def test_over_several_questions_only_shared_firsts_are_claimed() -> None:
    told = said(
        row(), row(policy="hbm-first", years=(3.0, 2.9, 3.1)),
        row(model="model-b"), row(model="model-b", policy="hbm-first", years=(6.0, 5.9, 6.1)),
    )  # fmt: skip
    assert told.overview[1:] == (
        "The longest-lived runs are all under lachesis in 1 of the 2 questions in which several "
        "policies compete; in 1 the intervals overlap across several.",
    )
    assert [paragraph.heading for paragraph in told.by_question] == ["model-a", "model-b"]


def test_over_several_questions_ties_single_out_nobody() -> None:
    rows = [
        row(model=model, policy=policy)
        for model in ("model-a", "model-b")
        for policy in ("hbm-first", "lachesis")
    ]
    assert said(*rows).overview[1:] == (
        "In none of the 2 questions in which several policies compete can the intervals single out "
        "one of them.",
    )


def test_it_is_no_finding_that_the_only_policy_and_split_come_first() -> None:
    assert len(said(row(), row(model="model-b")).overview) == 1


def test_loads_seeds_and_changed_values_keep_runs_apart() -> None:
    told = said(row(), row(load_sessions=200), row(seed=2), row(overrides=["flash.pe_cycles=1"]))
    assert [paragraph.heading for paragraph in told.by_question] == [
        "Load 100 sessions · Seed 1 · Changed values none",
        "Load 200 sessions · Seed 1 · Changed values none",
        "Load 100 sessions · Seed 2 · Changed values none",
        "Load 100 sessions · Seed 1 · Changed values flash.pe_cycles=1",
    ]


def test_runs_that_no_column_tells_apart_are_variants_and_never_compete() -> None:
    told = said(row(cell="one", run="1"), row(cell="two", run="2", years=(9.0, 8.9, 9.1)))
    assert [paragraph.heading for paragraph in told.by_question] == ["Variant 1", "Variant 2"]


def test_unfinished_and_failed_runs_are_told() -> None:
    told = said(row(), unfinished=1, cells=3, failures=["x: too large"])
    assert told.overview[1:] == (
        "Not finished: 1 of 3 cells has no runs yet, and what follows is about the others.",
        "1 run has failed, and no result.",
    )


def test_warnings_are_counted_by_run_and_listed_by_text() -> None:
    told = said(row(warnings=["b", "a"]), row(memory="4/4", warnings=["a"]), row(memory="1/7"))
    assert told.cautions[-1] == "2 of 3 runs carry warnings, 3 in all."
    assert told.warnings == (("a", 2), ("b", 1))


def test_nothing_is_said_of_no_runs() -> None:
    assert said().overview == ()
    assert said().cautions == ()


FIXED = {"batches": 1, "years": (6.0, None, None)}


def test_runs_of_a_fixed_length_are_told_and_name_no_winner() -> None:
    told = answer([row(**FIXED), row(policy="hbm-first", batches=2, years=(3.0, None, None))])
    fixed = (
        "All 2 runs were of a fixed length, without a look at whether they have settled, and have "
        "no interval: no winner is named."
    )
    assert told.overview[1:] == (fixed,)
    assert told.cautions[0] == fixed
    assert "settled." not in " ".join(told.cautions[1:])
    (paragraph,) = told.by_question
    assert paragraph.sentences[0] == (
        "No winner is named, as no run has an interval; by estimate: 6.00 years at memory 2/6 "
        "under lachesis and 3.00 years at memory 2/6 under hbm-first."
    )


def test_some_runs_of_a_fixed_length_are_counted_apart() -> None:
    several = [row(**FIXED), row(policy="hbm-first"), row(policy="hbf-only", settled=False)]
    assert answer(several).cautions[:2] == (
        "1 of 3 runs was of a fixed length, without a look at whether it has settled, and has no "
        "interval.",
        "1 of 3 runs has not settled: device-years may still drift.",
    )
    assert answer(several[:2]).cautions[1] == "The other 1 has settled."
    # With intervals they compete as any other.
    long = [row(batches=4), row(policy="hbm-first", batches=4, years=(3.0, 2.9, 3.1))]
    assert answer(long).cautions[0] == (
        "All 2 runs were of a fixed length, without a look at whether they have settled."
    )
    assert answer(long).by_question[0].sentences[0].startswith("The flash lasts longest")


def test_what_ends_by_settling_is_of_no_fixed_length() -> None:
    trace = LoadedTrace(open_trace("tau3-airline"))

    def replayed(stopping: Stopping) -> dict[str, Any]:
        plan = Plan(Settings.choose(), stopping=stopping)
        (run,) = run_objects(compare(trace, plan, ["hbf-only"], Load.parse("16")))
        return run

    fixed = replayed(Stopping(turnovers=0.35, warm_up_turnovers=0.6, fixed=True))
    assert is_fixed_length(fixed)
    settled = replayed(Stopping(precision=0.5, turnovers=40.0))
    assert settled["settled"]
    assert not is_fixed_length(settled)
    assert not is_fixed_length(replayed(Stopping(turnovers=1.0)))

"""The answer in words: what a results directory says, and nothing that it does not say.

Every sentence is made from the runs. A longest life is named only where its 95 % interval lies
above all others'; a warranty is passed only with the whole interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lachesis.report.fixed_length import is_fixed_length, lacks_interval
from lachesis.report.html.caution_words import cautions, fixed_length_sentence
from lachesis.report.html.phrases import (
    count,
    interval_text,
    listed,
    places_text,
    run_place,
    times_text,
)
from lachesis.report.html.slo_words import slo_sentences
from lachesis.report.infeasible_words import infeasible_sentence, reasons
from lachesis.report.longest_life import (
    Ranking,
    by_verdict,
    is_apart,
    rank,
)
from lachesis.report.questions import (
    DIMENSIONS,
    SEARCHED,
    Question,
    Run,
    dimensions_that_vary,
    families,
    in_memory_order,
    in_policy_order,
    load_text,
    questions,
)
from lachesis.report.run_summary import years_text

_TIES_SHOWN = 4


@dataclass(frozen=True)
class Paragraph:
    """Sentences under a heading; the heading is empty where there is but one question."""

    heading: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """What stands at the top of a report.

    Attributes:
        overview: what was run, and what holds over all questions.
        by_question: the longest life and the warranty, a paragraph a question.
        by_slo: what a tighter SLO costs and gains, a paragraph a family of questions.
        cautions: what is not finished, not settled, misses the SLO, or carries warnings.
        failures: why a run has no result.
        infeasible: each reason why runs cannot be run, with the number of them.
        warnings: each warning with the number of runs that carry it, the most frequent first.
    """

    overview: tuple[str, ...]
    by_question: tuple[Paragraph, ...]
    by_slo: tuple[Paragraph, ...]
    cautions: tuple[str, ...]
    failures: tuple[str, ...]
    infeasible: tuple[tuple[str, int], ...]
    warnings: tuple[tuple[str, int], ...]


def answer(
    runs: Sequence[Run],
    *,
    unfinished: int = 0,
    cells: int = 0,
    failures: Sequence[str] = (),
    infeasible: Sequence[Run] = (),
) -> Answer:
    """Put the runs into words.

    Args:
        runs: rows of the table of runs, of those that were measured.
        unfinished: cells that were asked for and have no runs yet.
        cells: cells that were asked for.
        failures: why a run has no result, a sentence each.
        infeasible: rows of the runs that cannot be run.
    """
    found = questions(runs)
    vary = dimensions_that_vary(found)
    rankings = [rank(question) for question in found]
    overview = [_what_was_run(runs, found)] if runs else []
    if unfinished:
        verb = "has" if unfinished == 1 else "have"
        overview.append(
            f"Not finished: {unfinished:,} of {count(cells, 'cell')} {verb} no runs yet, and what "
            "follows is about the others."
        )
    if infeasible:
        overview.append(infeasible_sentence(infeasible))
    if failures:
        verb = "has" if len(failures) == 1 else "have"
        overview.append(f"{count(len(failures), 'run')} {verb} failed, and no result.")
    fixed = [run for run in runs if is_fixed_length(run)]
    if fixed and len(fixed) == len(runs) and all(map(lacks_interval, runs)):
        # How often intervals single out a policy is no question here.
        overview.append(fixed_length_sentence(fixed, len(runs)))
    else:
        overview += _over_all(rankings)
    return Answer(
        overview=tuple(overview),
        by_question=tuple(
            Paragraph(heading(question, vary), tuple(_about(question, ranking)))
            for question, ranking in zip(found, rankings, strict=True)
        ),
        by_slo=tuple(
            Paragraph(heading(family[0], [name for name in vary if name != "slo"]), sentences)
            for family in families(found)
            if (sentences := tuple(slo_sentences(family)))
        ),
        cautions=tuple(cautions(runs)),
        failures=tuple(failures),
        infeasible=reasons(infeasible),
        warnings=tuple(
            sorted(
                Counter(text for run in runs for text in run["warnings"]).items(),
                key=lambda item: (-item[1], item[0]),
            )
        ),
    )


def heading(question: Question, vary: Sequence[str]) -> str:
    """What sets a question apart from the others of a report."""
    words = []
    for name in vary:
        asked = question.asked[name]
        told = name in ("trace", "model")
        words.append(asked if told else f"{DIMENSIONS[name]} {asked}")
    return " · ".join(words)


def _what_was_run(runs: Sequence[Run], found: Sequence[Question]) -> str:
    parts = [
        _one_or_many(name, [question.asked[name] for question in found])
        for name in ("trace", "model")
    ]
    parts.append(
        _one_or_many("memory split", in_memory_order(run["memory"] for run in runs), "memory")
    )
    parts.append(_one_or_many("SLO", [question.asked["slo"] for question in found]))
    policies = in_policy_order(run["policy"] for run in runs)
    parts.append(_one_or_many("policy", policies, plural="policies"))
    parts.append(_one_or_many("load", [question.asked["load"] for question in found]))
    for name in ("seed", "overrides", "variant"):
        asked = dict.fromkeys(question.asked[name] for question in found)
        if len(asked) > 1:
            words = {"seed": "seeds", "overrides": "sets of changed values"}
            parts.append(f"{len(asked):,} {words.get(name, 'variants')}")
    cells = len({run["cell"] for run in runs})
    return f"{count(len(runs), 'run')} in {count(cells, 'cell')}: {'; '.join(parts)}."


def _one_or_many(
    noun: str, names: Sequence[str], only: str | None = None, plural: str | None = None
) -> str:
    distinct = list(dict.fromkeys(names))
    if len(distinct) == 1:
        return f"{only or noun} {distinct[0]}"
    return f"{len(distinct):,} {plural or noun + 's'}"


def _over_all(rankings: Sequence[Ranking]) -> list[str]:
    """In how many questions the longest lives share a policy, and a split."""
    said = []
    for key, what, plural in (
        ("policy", "under", "policies"),
        ("memory", "at memory", "memory splits"),
    ):
        # Where but one policy or split was run, it is no finding that it comes first.
        decided = [
            ranking for ranking in rankings if len({run[key] for run in ranking.competing}) > 1
        ]
        if len(decided) < 2:
            continue
        alone = Counter(
            next(iter(names))
            for ranking in decided
            if len(names := {run[key] for run in ranking.best}) == 1
        )
        total = f"{len(decided):,} questions in which several {plural} compete"
        if not alone:
            said.append(f"In none of the {total} can the intervals single out one of them.")
            continue
        told = [
            f"{'' if place else 'are all '}{what} {name} in {number:,}"
            + ("" if place else f" of the {total}")
            for place, (name, number) in enumerate(
                sorted(alone.items(), key=lambda item: (-item[1], item[0]))
            )
        ]
        shared = len(decided) - sum(alone.values())
        rest = f"; in {shared:,} the intervals overlap across several" if shared else ""
        said.append(f"The longest-lived runs {listed(told)}{rest}.")
    return said


def _about(question: Question, ranking: Ranking) -> list[str]:
    said = [_longest(question, ranking)]
    said += _warranty(question, ranking)
    said += _left_out(question, ranking)
    return said


def _longest(question: Question, ranking: Ranking) -> str:
    if not ranking.competing:
        if ranking.missed:
            return "No run meets the SLO, so that none of them is an answer."
        if ranking.bounds:
            return "Only bounds were run, which nobody can build."
        return "No run has device-years."
    best = ranking.best[0]
    if len(ranking.competing) == 1:
        return f"The flash lasts {_years(question, best)} {run_place(best)} {_doubts(best)}."
    if len(ranking.best) == 1:
        return (
            f"The flash lasts longest {run_place(best)}: {_years(question, best)} {_doubts(best)}"
            f"{_gain(question, best)}."
        )
    lacking = [run for run in ranking.best if lacks_interval(run)]
    none_known = len(lacking) == len(ranking.best)
    shown = [
        f"{_years(question, run)} {run_place(run)} {_doubts(run, said_before=none_known)}".rstrip()
        for run in ranking.best[:_TIES_SHOWN]
    ]
    hidden = len(ranking.best) - len(shown)
    if hidden:
        shown.append(count(hidden, "other run"))
    if none_known:
        return f"No winner is named, as no run has an interval; by estimate: {listed(shown)}."
    why = "an interval is missing" if lacking else "their 95 % intervals overlap"
    who = "All runs tie" if len(ranking.best) == len(ranking.competing) else "The longest lives tie"
    return f"{who}, as {why}: {listed(shown)}."


def _years(question: Question, run: Run) -> str:
    """Device-years, with the load where it was searched for."""
    load = ""
    if run["load"] == "closed" and question.asked["load"] == SEARCHED:
        load = f" with {load_text(run)}"
    return f"{years_text(run['hbf_lifetime_years'])} years{load}"


def _doubts(run: Run, *, said_before: bool = False) -> str:
    """The interval, unless that was said before, and what else speaks against a run."""
    told = [] if said_before else [interval_text(run)]
    if not run["settled"]:
        told.append("not settled")
    if not run["meets_slo"]:
        told.append(f"misses the SLO closely with p99 TPOT {1e3 * run['tpot_p99_s']:.3g} ms")
    return f"({', '.join(told)})" if told else ""


def _gain(question: Question, best: Run) -> str:
    """How much longer than hbm-first at the same split."""
    baseline = next(
        (
            run
            for run in question.runs
            if run["policy"] == "hbm-first" and run["memory"] == best["memory"]
        ),
        None,
    )
    gain = best["gain_over_hbm_first"]
    if baseline is None or baseline is best or gain is None:
        return ""
    split = "" if len(question.memories) == 1 else " at the same split"
    loads = ""
    if baseline["load_sessions"] != best["load_sessions"]:
        loads = f", which has another load ({load_text(baseline)})"
    if not is_apart(best, baseline):
        return f"; not told apart from hbm-first{split}{loads}"
    return f", {times_text(gain)} as long as under hbm-first{split}{loads}"


def _warranty(question: Question, ranking: Ranking) -> list[str]:
    if not ranking.competing:
        return []
    terms = {run["warranty_years"] for run in ranking.competing}
    term = f"{terms.pop():g}-year warranty" if len(terms) == 1 else "warranty"
    found = by_verdict(ranking.competing)
    total, passing = len(ranking.competing), found["passes"]
    undecided, short = found["undecided"], found["falls short"]
    if total == 1:
        if undecided:
            return [_undecided(undecided, question, term, total)]
        return [f"It passes the {term}." if passing else f"It falls short of the {term}."]
    if len(passing) == total:
        unsettled = _of_them_unsettled(passing)
        return [f"All {total:,} runs pass the {term}, with their whole interval{unsettled}."]
    if len(short) == total:
        return [f"All {total:,} runs fall short of the {term}."]
    said = []
    if passing:
        verb = "passes" if len(passing) == 1 else "pass"
        said.append(
            f"{len(passing):,} of {total:,} runs {verb} the {term}: "
            f"{places_text(passing, question)}{_of_them_unsettled(passing)}."
        )
    if undecided:
        said.append(_undecided(undecided, question, term, total))
    if short:
        rest = "other " if passing or undecided else ""
        verb = "falls" if len(short) == 1 else "fall"
        none = "" if passing else f" of the {term}"
        said.append(f"The {rest}{len(short):,} {verb} short{none}.")
    return said


def _of_them_unsettled(runs: Sequence[Run]) -> str:
    unsettled = sum(not run["settled"] for run in runs)
    if not unsettled:
        return ""
    if len(runs) == 1:
        return " (not settled)"
    return (
        f" ({'none' if unsettled == len(runs) else f'{len(runs) - unsettled:,}'} of them settled)"
    )


def _undecided(runs: Sequence[Run], question: Question, term: str, total: int) -> str:
    lacking = [run for run in runs if run["hbf_lifetime_years_low"] is None]
    why = "no interval is known" if lacking else "the interval reaches to both sides of it"
    if lacking and len(lacking) < len(runs):
        why = "the interval reaches to both sides of it, or is not known"
    if total == 1:
        return f"Whether it passes the {term} is undecided, as {why}."
    verb = "is" if len(runs) == 1 else "are"
    return f"{len(runs):,} {verb} undecided, as {why}: {places_text(runs, question)}."


def _left_out(question: Question, ranking: Ranking) -> list[str]:
    said = []
    if ranking.missed:
        longest = max(ranking.missed, key=lambda run: run["hbf_lifetime_years"])
        verb = "misses" if len(ranking.missed) == 1 else "miss"
        above = ""
        if ranking.best and longest["hbf_lifetime_years"] > ranking.best[0]["hbf_lifetime_years"]:
            above = (
                f"; the longest life among them would be "
                f"{years_text(longest['hbf_lifetime_years'])} years {run_place(longest)}"
            )
        said.append(
            f"Not counted: {count(len(ranking.missed), 'run')} that {verb} the SLO "
            f"({places_text(ranking.missed, question)}){above}."
        )
    if ranking.bounds:
        best = max(ranking.bounds, key=lambda run: run["hbf_lifetime_years"])
        said.append(
            f"A bound that nobody can build reaches {years_text(best['hbf_lifetime_years'])} years "
            f"{run_place(best)}."
        )
    reasons: dict[str, list[Run]] = {}
    for run in ranking.unrated:
        reasons.setdefault(_why_unrated(run), []).append(run)
    for why, runs in reasons.items():
        said.append(f"No device-years: {places_text(runs, question)}{why}.")
    return said


def _why_unrated(run: Run) -> str:
    start = "no device-years: "
    told = [note.removeprefix(start) for note in run["notes"] if note.startswith(start)]
    return f", as {told[0]}" if told else ""

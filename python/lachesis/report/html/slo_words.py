"""What a tighter SLO costs in load, and what it gains in device-years."""

from __future__ import annotations

from collections.abc import Sequence

from lachesis.report.html.phrases import count, listed, range_text
from lachesis.report.longest_life import is_apart
from lachesis.report.questions import SEARCHED, Question, Run, is_bound
from lachesis.report.run_summary import years_text


def slo_sentences(family: Sequence[Question]) -> list[str]:
    """Compare the tightest SLO with the loosest, run for run at the same split and policy.

    Args:
        family: questions that differ in nothing but the SLO, tightest first.

    Returns:
        Nothing where there is but one SLO, where neither of the two is the tighter in both limits,
        or where no split and policy was run under both.
    """
    if len(family) < 2:
        return []
    tight, loose = family[0], family[-1]
    if tight.runs[0]["slo_ttft_p99_s"] > loose.runs[0]["slo_ttft_p99_s"]:
        return []
    pairs = _pairs(tight, loose)
    if not pairs:
        return []
    names = (tight.asked["slo"], loose.asked["slo"])
    searched = tight.asked["load"] == SEARCHED == loose.asked["load"]
    said = [_load_sentence(pairs, names)] if searched else [_given_sentence(pairs, names)]
    return said + _life_sentences(pairs, searched=searched)


def _pairs(tight: Question, loose: Question) -> list[tuple[Run, Run]]:
    under_loose = {(run["memory"], run["policy"]): run for run in loose.runs}
    return [
        (run, under_loose[place])
        for run in tight.runs
        if (place := (run["memory"], run["policy"])) in under_loose and not is_bound(run["policy"])
    ]


def _load_sentence(pairs: Sequence[tuple[Run, Run]], names: tuple[str, str]) -> str:
    tight, loose = names
    admitted = [
        (one["admitted_sessions"], other["admitted_sessions"])
        for one, other in pairs
        if other["admitted_sessions"]
    ]
    if not admitted:
        return f"Neither SLO {tight} nor {loose} admits any load."
    ratios = [one / other for one, other in admitted if one]
    none = len(admitted) - len(ratios)
    rest = ""
    if none and ratios:
        rest = f"; in {none:,} of {count(len(admitted), 'pair')} of runs it admits none at all"
    if not ratios:
        return f"SLO {tight} admits no load, where SLO {loose} admits some."
    return f"SLO {tight} admits {_fewer(ratios)} SLO {loose}{rest}."


def _fewer(ratios: Sequence[float]) -> str:
    low, high = min(ratios), max(ratios)
    if low == high == 1.0:
        return "the same load as"
    if high < 1.0:
        ends = sorted((1.0 - high, 1.0 - low))
        least, most = (f"{100 * end:.3g}" for end in ends)
        return f"{range_text(least, most, ' %')} fewer sessions than"
    return f"{range_text(f'{low:.3g}', f'{high:.3g}')} times as many sessions as"


def _given_sentence(pairs: Sequence[tuple[Run, Run]], names: tuple[str, str]) -> str:
    meets = [sum(pair[side]["meets_slo"] for pair in pairs) for side in (0, 1)]
    total = len(pairs)
    if total == 1:
        each = [
            f"SLO {name} is {'met' if met else 'missed'}"
            for name, met in zip(names, meets, strict=True)
        ]
    else:
        each = [
            f"{met:,} of {total:,} runs meet SLO {name}"
            for name, met in zip(names, meets, strict=True)
        ]
    return f"The load was given, so that the SLO moves no load: {each[0]}, {each[1]}."


def _life_sentences(pairs: Sequence[tuple[Run, Run]], *, searched: bool) -> list[str]:
    rated = [pair for pair in pairs if all(run["hbf_lifetime_years"] is not None for run in pair)]
    if not rated:
        return []
    longer = sum(is_apart(one, other) for one, other in rated)
    shorter = sum(is_apart(other, one) for one, other in rated)
    total = len(rated)
    if not longer and not shorter:
        if total == 1:
            return ["The lifetimes are not told apart by their 95 % intervals."]
        return [
            f"In none of {total:,} pairs of runs are the lifetimes told apart by 95 % intervals."
        ]
    ratios = [one["hbf_lifetime_years"] / other["hbf_lifetime_years"] for one, other in rated]
    spread = range_text(years_text(min(ratios)), years_text(max(ratios)), " times")
    gained = "In exchange the" if searched and longer and not shorter else "The"
    said = f"{gained} flash lasts {spread} as long under the tighter SLO"
    if total == 1:
        return [f"{said}, at the same split and policy."]
    return [
        f"{said}, at the same split and policy over {total:,} pairs of runs; by their 95 % "
        f"intervals {_told_apart(total, longer, shorter)}."
    ]


def _told_apart(total: int, longer: int, shorter: int) -> str:
    if longer == total:
        return "it is longer in all of them"
    if shorter == total:
        return "it is shorter in all of them"
    counts = {"longer": longer, "shorter": shorter, "not told apart": total - longer - shorter}
    told = [f"{verdict} in {number:,}" for verdict, number in counts.items() if number]
    return f"it is {listed(told)}"

"""How far a report can be trusted: what has not settled, misses its SLO, or carries warnings."""

from __future__ import annotations

from collections.abc import Sequence

from lachesis.report.fixed_length import is_fixed_length, lacks_interval
from lachesis.report.html.phrases import count
from lachesis.report.longest_life import CLOSE_MISS, is_close
from lachesis.report.questions import Run


def cautions(runs: Sequence[Run]) -> list[str]:
    """A sentence on each; nothing where there are no runs."""
    if not runs:
        return []
    total = len(runs)
    missed = sum(not run["meets_slo"] for run in runs)
    carrying = [run for run in runs if run["warnings"]]
    said = _settling(runs)
    if total == 1:
        said.append("It misses its SLO." if missed else "It meets its SLO.")
    else:
        said.append(
            f"{_of(missed, total, 'misses its SLO', 'miss their SLO')}{_closely(runs)}."
            if missed
            else f"All {total:,} runs meet their SLO."
        )
    if carrying:
        warned = sum(len(run["warnings"]) for run in carrying)
        if total == 1:
            said.append(f"It carries {count(warned, 'warning')}.")
        elif len(carrying) == total:
            said.append(f"All {total:,} runs carry warnings, {warned:,} in all.")
        else:
            who = _of(len(carrying), total, "carries", "carry")
            said.append(f"{who} warnings, {warned:,} in all.")
    else:
        said.append("No warnings.")
    return said


def _settling(runs: Sequence[Run]) -> list[str]:
    """What has settled, what has not, and of what that is not known."""
    fixed = [run for run in runs if is_fixed_length(run)]
    others = [run for run in runs if not is_fixed_length(run)]
    said = [fixed_length_sentence(fixed, len(runs))] if fixed else []
    total = len(others)
    unsettled = sum(not run["settled"] for run in others)
    if fixed and total and not unsettled:
        said.append(f"The other {total:,} {'has' if total == 1 else 'have'} settled.")
    elif total == 1:
        said.append(
            "The run has not settled: its device-years may still drift."
            if unsettled
            else "The run has settled."
        )
    elif total:
        told = f"All {total:,} runs have settled."
        if unsettled:
            told = f"{_none_of(unsettled, len(runs))}: device-years may still drift."
        said.append(told)
    return said


def fixed_length_sentence(fixed: Sequence[Run], total: int) -> str:
    """That runs were of a fixed length, and what follows from it.

    Args:
        fixed: the runs of a fixed length.
        total: of all runs.

    Example:
        >>> run = {"hbf_lifetime_years_low": None, "hbf_lifetime_years_high": None}
        >>> fixed_length_sentence([run, run], 2)  # doctest: +ELLIPSIS
        'All 2 runs were of a fixed length, ... and have no interval: no winner is named.'
    """
    number = len(fixed)
    who = f"{number:,} of {total:,} runs {'was' if number == 1 else 'were'}"
    if number == total:
        who = "The run was" if total == 1 else f"All {total:,} runs were"
    one = number == 1
    seen = f"without a look at whether {'it has' if one else 'they have'} settled"
    if all(map(lacks_interval, fixed)):
        has = "has" if one else "have"
        ending = ": no winner is named" if number == total else ""
        return f"{who} of a fixed length, {seen}, and {has} no interval{ending}."
    return f"{who} of a fixed length, {seen}."


def _closely(runs: Sequence[Run]) -> str:
    close = sum(map(is_close, runs))
    if not close:
        return ""
    missed = sum(not run["meets_slo"] for run in runs)
    verb = "stays" if close == 1 else "stay"
    who = f"{close:,} of them {verb}"
    if close == missed:
        who = "it stays" if missed == 1 else "all of them stay"
    return (
        f"; {who} in the comparison, as the miss is at most {100 * (CLOSE_MISS - 1):.0f} % at a "
        "load that was searched for"
    )


def _none_of(unsettled: int, total: int) -> str:
    if unsettled == total:
        return f"None of {total:,} runs has settled"
    return _of(unsettled, total, "has not settled", "have not settled")


def _of(number: int, total: int, one: str, many: str) -> str:
    return f"{number:,} of {total:,} runs {one if number == 1 else many}"

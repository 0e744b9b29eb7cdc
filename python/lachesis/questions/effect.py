"""What a change does: before and after, at the same load and at the loads that the SLO admits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lachesis.errors import InputError
from lachesis.questions.answer import Answer, Finding, Run, written, years_of
from lachesis.questions.scenario import Scenario
from lachesis.simulation import Load

BEFORE, SAME_LOAD, OWN_LOAD = "before", "after, same load", "after, own load"


def effect(scenario: Scenario, changes: Mapping[str, Any]) -> Answer:
    """Run every policy before and after a change of options.

    Before, the load is the one asked for (``auto``: what the SLO admits under hbm-first). After, it
    is that same number of sessions, and again what the SLO admits then.

    Args:
        scenario: before. A load that does not search is taken for both, and there is no own load.
        changes: options of `RunOptions` as they are after.

    Raises:
        InputError: nothing changes, or what running refuses.
    """
    after = {key: value for key, value in changes.items() if value is not None}
    if all(getattr(scenario.options, key) == value for key, value in after.items()):
        raise InputError("name something that changes: --set KEY=VALUE, --model, --memory, …")
    searches = scenario.load.is_searched
    runs = {(BEFORE, run["policy"]): run for run in scenario.run(scenario=BEFORE)}
    loads = {policy: _load_of(scenario, runs[(BEFORE, policy)]) for policy in scenario.policies}
    for load in dict.fromkeys(loads.values()):
        policies = [policy for policy in scenario.policies if loads[policy] == load]
        for run in scenario.run(policies, load, scenario=SAME_LOAD, **after):
            runs[(SAME_LOAD, run["policy"])] = run
    if searches:
        guess = max(1, runs[(BEFORE, scenario.policies[0])]["load_sessions"] or 1)
        for run in scenario.run(guess=guess, scenario=OWN_LOAD, **after):
            runs[(OWN_LOAD, run["policy"])] = run
    findings = [_finding(policy, runs) for policy in scenario.policies]
    told = {key: list(value) if isinstance(value, tuple) else value for key, value in after.items()}
    return Answer("effect", {"change": told}, tuple(findings), tuple(scenario.runs))


def _load_of(scenario: Scenario, run: Run) -> Load:
    """The load that a run was at, as one that is given."""
    if scenario.load.kind in ("poisson", "recorded"):
        return scenario.load
    return Load("closed", run["load_sessions"])


def _finding(policy: str, runs: Mapping[tuple[str, str], Run]) -> Finding:
    before, same = runs[(BEFORE, policy)], runs[(SAME_LOAD, policy)]
    own = runs.get((OWN_LOAD, policy))
    found = {
        "hbf_lifetime_years": [before["hbf_lifetime_years"], same["hbf_lifetime_years"]],
        "same_load_factor": _factor(before, same),
        "tpot_p99_s": [before["tpot_p99_s"], same["tpot_p99_s"]],
        "meets_slo": [before["meets_slo"], same["meets_slo"]],
    }
    told = f"{policy}: {_years(before)}{_at(before)} becomes {_years(same)} at the same load"
    if not same["meets_slo"]:
        told += " (which misses the SLO then)"
    if own is not None:
        found["own_load_factor"] = _factor(before, own)
        found["load_sessions"] = [before["load_sessions"], own["load_sessions"]]
        found["admitted_sessions"] = [before["admitted_sessions"], own["admitted_sessions"]]
        told += (
            f", and {_years(own)} at the {own['load_sessions']:,} that the SLO admits then"
            if own["admitted_sessions"]
            else ", and the SLO admits no load then, not even one session"
        )
    return Finding(policy, found, f"{told}.")


def _factor(before: Run, after: Run) -> float | None:
    years = before["hbf_lifetime_years"], after["hbf_lifetime_years"]
    return None if None in years else years[1] / years[0]


def _years(run: Run) -> str:
    return written(years_of(run)) if run["hbf_lifetime_years"] is not None else "no device-years"


def _at(run: Run) -> str:
    sessions = run["load_sessions"]
    return "" if sessions is None else f" at {sessions:,} sessions"

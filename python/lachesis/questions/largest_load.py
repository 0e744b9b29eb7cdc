"""The largest load at which the flash lasts so many years, and that the SLO admits."""

from __future__ import annotations

from lachesis.errors import InputError
from lachesis.policy import choose_policy
from lachesis.questions.answer import Answer, Finding, Run, lives, written, years_of
from lachesis.questions.boundary import last_passing
from lachesis.questions.scenario import Scenario
from lachesis.simulation import Load

#: Loads are told apart to this part of themselves: years are measured to no more.
RESOLUTION = 0.01


def largest_load_for(scenario: Scenario, years: float) -> Answer:
    """For each policy the largest closed load of the node.

    Writes grow with the load, so that years fall with it: the answer is what the SLO admits where
    the flash lasts at that, and else the load at which years fall below the wish.

    Args:
        scenario: its load is not used.
        years: device-years asked for.

    Raises:
        InputError: `years` is not above 0, or what running refuses.
    """
    check_years(years)
    findings = [_of_policy(scenario, policy, years) for policy in scenario.policies]
    return Answer("largest-load", {"years": years}, tuple(findings), tuple(scenario.runs))


def _of_policy(scenario: Scenario, policy: str, years: float) -> Finding:
    if not choose_policy(policy).writes_flash:
        return Finding(policy, None, f"{policy}: generated KV never reaches flash.")
    (admitted,) = scenario.run([policy], Load("each"))
    most = admitted["admitted_sessions"]
    if most == 0:
        return Finding(policy, None, f"{policy}: the SLO admits no load, not even one session.")
    if lives(admitted, years):
        return _found(policy, admitted, f"the most that the SLO admits under {policy}", "slo")
    by_load: dict[int, Run] = {most: admitted}

    def margin(sessions: int) -> float:
        if sessions not in by_load:
            (by_load[sessions],) = scenario.run([policy], Load("closed", sessions))
        return years_of(by_load[sessions]) / years

    if most == 1 or margin(1) < 1.0:
        lasts = years_of(by_load[1])
        return Finding(
            policy, None,
            f"{policy}: at one live session already the flash lasts {written(lasts)} only.",
        )  # fmt: skip
    sessions = last_passing(margin, 1, most, resolution=RESOLUTION)
    return _found(policy, by_load[sessions], f"the SLO would admit {most:,}", "years")


def _found(policy: str, run: Run, why: str, bound: str) -> Finding:
    sessions = run["load_sessions"]
    return Finding(
        policy,
        {
            "load_sessions": sessions,
            "bound_by": bound,
            "hbf_lifetime_years": run["hbf_lifetime_years"],
        },
        f"{policy}: {sessions:,} live sessions; the flash lasts {written(years_of(run))} ({why}).",
    )


def check_years(years: float) -> None:
    """Refuse a wish that is none.

    Raises:
        InputError: not a number above 0.
    """
    if not 0.0 < years < 1e9:
        raise InputError("must be above 0", field="--years", value=years)

"""The cheapest memory split on which the flash lasts so many years and the SLO is met."""

from __future__ import annotations

from lachesis.errors import InputError
from lachesis.presets import MemorySplit
from lachesis.questions.answer import Answer, Finding, Run, lives, written, years_of
from lachesis.questions.largest_load import check_years
from lachesis.questions.scenario import Scenario
from lachesis.questions.smallest_hbm import flash_splits


def cheapest_split(
    scenario: Scenario, years: float, *, hbm_price: float, hbf_price: float
) -> Answer:
    """For each policy the split with the lowest cost of its stacks.

    At a load that is given, of the splits that serve it within the SLO the one whose stacks cost
    least. Where the load is searched for, each split serves what the SLO admits on it, and the cost
    is that of a live session. The daisy chain takes part: its slots carry both kinds.

    Args:
        scenario: its split is not used.
        years: device-years asked for.
        hbm_price: of one stack, in any currency. No preset has it: none is published.
        hbf_price: of one stack, in the same currency.

    Raises:
        InputError: `years` or a price is not above 0, or what running refuses. A split that the
            model or a session does not fit is left out.
    """
    check_years(years)
    for option, price in (("--hbm-price", hbm_price), ("--hbf-price", hbf_price)):
        if not 0.0 < price < 1e12:
            raise InputError("must be above 0", field=option, value=price)
    slots, gpus = scenario.settings.hardware.slots, scenario.settings.node.gpus
    per_session = scenario.load.is_searched
    candidates: dict[str, list[Run]] = {policy: [] for policy in scenario.policies}
    for memory in flash_splits(scenario):
        split = MemorySplit.parse(memory, slots=slots)
        cost = split.hbm_stacks * hbm_price + split.hbf_stacks * hbf_price
        for run in scenario.run_feasible(scenario.policies, memory, memory=memory):
            run["cost_per_gpu"] = cost
            sessions = run["load_sessions"]
            run["cost_per_session"] = cost * gpus / sessions if sessions else None
            candidates[run["policy"]].append(run)
    findings = [
        _cheapest(policy, runs, years, per_session=per_session)
        for policy, runs in candidates.items()
    ]
    asked = {"years": years, "hbm_price": hbm_price, "hbf_price": hbf_price}
    left_out = tuple(scenario.infeasible)
    return Answer("cheapest-split", asked, tuple(findings), tuple(scenario.runs), left_out)


def _cheapest(policy: str, runs: list[Run], years: float, *, per_session: bool) -> Finding:
    if not runs:
        return Finding(policy, None, f"{policy}: no split can be run.")
    served = [run for run in runs if run["admitted_sessions"] or not per_session]
    served = [run for run in served if run["meets_slo"] or per_session]
    if not served:
        return Finding(policy, None, f"{policy}: no split serves this load within the SLO.")
    lasting = [run for run in served if lives(run, years)]
    if not lasting:
        best = max(served, key=years_of)
        return Finding(
            policy, None,
            f"{policy}: none lasts {years:g} years; the longest is {written(years_of(best))}, on "
            f"{best['memory']}.",
        )  # fmt: skip
    key = "cost_per_session" if per_session else "cost_per_gpu"
    best = min(lasting, key=lambda run: (run[key], run["hbm_gb_per_gpu"]))
    names = ("memory", "cost_per_gpu", "cost_per_session", "load_sessions", "hbf_lifetime_years")
    session = best["cost_per_session"]
    sessions = best["load_sessions"]
    at = "" if sessions is None else f" at {sessions:,} sessions, {session:,.4g} a session"
    return Finding(
        policy,
        {name: best[name] for name in names},
        f"{policy}: {best['memory']}, {best['cost_per_gpu']:,.6g} a GPU{at}; the flash lasts "
        f"{written(years_of(best))}.",
    )

"""The least HBM with which the flash lasts so many years."""

from __future__ import annotations

from lachesis.errors import InputError
from lachesis.policy import choose_policy
from lachesis.presets import MemorySplit, split_names
from lachesis.questions.answer import Answer, Finding, Run, lives, written, years_of
from lachesis.questions.largest_load import check_years
from lachesis.questions.scenario import Scenario

#: With a split that is given, capacities are tried up to so many times the preset's.
_LARGEST = 16
_KEY = "hardware.hbm_gb_per_stack"
_RESOLUTION = 1 / 64


def smallest_hbm(scenario: Scenario, years: float) -> Answer:
    """For each policy the least HBM a GPU: in stacks, or in GB a stack where the split is given.

    Slots that take HBM are taken from flash, so that more HBM need not mean a longer life: splits
    are tried one by one, from the least HBM up to the daisy chain, whose slots carry both, and the
    first at which the flash lasts is the answer. With a split that is given only HBM's capacity
    varies. Years then grow with it, and the answer is bracketed: so much lasts, and a sixty-fourth
    less does not. Whether the SLO is met at the load is not asked, and said.

    Args:
        scenario: runs at its load; ``auto`` is what the SLO admits under hbm-first on each memory.
        years: device-years asked for.

    Raises:
        InputError: `years` is not above 0, or what running refuses. A memory that the model or a
            session does not fit is left out.
    """
    check_years(years)
    policies = [name for name in scenario.policies if choose_policy(name).writes_flash]
    found = (
        _by_split(scenario, policies, years)
        if scenario.options.memory is None
        else _by_capacity(scenario, policies, years)
    )
    unasked = {
        name: Finding(name, None, f"{name}: generated KV never reaches flash.")
        for name in scenario.policies
        if name not in policies
    }
    findings = tuple({**unasked, **found}[name] for name in scenario.policies)
    left_out = tuple(scenario.infeasible)
    return Answer("smallest-hbm", {"years": years}, findings, tuple(scenario.runs), left_out)


def flash_splits(scenario: Scenario) -> list[str]:
    """The splits of the GPU's slots that carry both tiers, from the least HBM to the chain."""
    slots = scenario.settings.hardware.slots
    splits = [MemorySplit.parse(name, slots=slots) for name in split_names(slots)]
    return [str(split) for split in splits if split.hbf_stacks]


def _by_split(scenario: Scenario, policies: list[str], years: float) -> dict[str, Finding]:
    found: dict[str, Finding] = {}
    best: dict[str, Run] = {}
    for memory in flash_splits(scenario):
        open_policies = [name for name in policies if name not in found]
        if not open_policies:
            break
        # Weights may leave no room that another split has.
        for run in scenario.run_feasible(open_policies, memory, memory=memory):
            policy = run["policy"]
            if years_of(run) >= years_of(best.get(policy, run)):
                best[policy] = run
            if lives(run, years):
                found[policy] = _found(run)
    for policy in policies:
        if policy not in found:
            found[policy] = _none(policy, best.get(policy), years)
    return found


def _by_capacity(scenario: Scenario, policies: list[str], years: float) -> dict[str, Finding]:
    if scenario.settings.memory.hbf_stacks == 0:
        raise InputError(
            "has no flash that could wear", field="--memory", value=scenario.options.memory
        )
    return {policy: _capacity_of(scenario, policy, years) for policy in policies}


def _capacity_of(scenario: Scenario, policy: str, years: float) -> Finding:
    by_gb: dict[int, Run | None] = {}

    def lasts(gb: int) -> bool:
        if gb not in by_gb:
            told = f"{scenario.settings.memory} with {gb} GB of HBM a stack"
            changes = (*scenario.options.set, f"{_KEY}={gb}")
            runs = scenario.run_feasible([policy], told, set=changes)
            by_gb[gb] = runs[0] if runs else None
        run = by_gb[gb]
        return run is not None and lives(run, years)

    high = max(1, round(scenario.settings.hardware.hbm_gb_per_stack))
    most = high * _LARGEST
    while not lasts(high):
        if high >= most:
            best = max((run for run in by_gb.values() if run), key=years_of, default=None)
            return _none(policy, best, years)
        high = min(most, high * 2)
    low = max((gb for gb in by_gb if gb < high), default=0)
    while high - low > max(1, int(high * _RESOLUTION)):
        middle = (low + high) // 2
        if lasts(middle):
            high = middle
        else:
            low = middle
    run = by_gb[high]
    assert run is not None, "Invariant: what lasts was run"
    return _found(run, gb_a_stack=high)


def _found(run: Run, *, gb_a_stack: int | None = None) -> Finding:
    policy, gb = run["policy"], run["hbm_gb_per_gpu"]
    how = (
        f"{run['memory']}" if gb_a_stack is None else f"{gb_a_stack} GB a stack on {run['memory']}"
    )
    found = {
        "memory": run["memory"],
        "hbm_gb_per_gpu": gb,
        "hbf_lifetime_years": run["hbf_lifetime_years"],
        "load_sessions": run["load_sessions"],
        "meets_slo": run["meets_slo"],
    }
    if gb_a_stack is not None:
        found["hbm_gb_per_stack"] = gb_a_stack
    return Finding(
        policy, found,
        f"{policy}: {gb:g} GB of HBM a GPU ({how}); the flash lasts {written(years_of(run))}"
        f"{_load(run)}{_missed(run)}.",
    )  # fmt: skip


def _missed(run: Run) -> str:
    """What the question does not ask, and its reader must know."""
    return "" if run["meets_slo"] else ", and misses the SLO there"


def _none(policy: str, best: Run | None, years: float) -> Finding:
    if best is None:
        return Finding(policy, None, f"{policy}: no memory can be run.")
    return Finding(
        policy, None,
        f"{policy}: none lasts {years:g} years; the longest is {written(years_of(best))}, with "
        f"{best['hbm_gb_per_gpu']:g} GB of HBM a GPU ({best['memory']}){_load(best)}.",
    )  # fmt: skip


def _load(run: Run) -> str:
    sessions = run["load_sessions"]
    return "" if sessions is None else f" at {sessions:,} sessions"

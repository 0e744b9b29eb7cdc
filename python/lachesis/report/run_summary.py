"""What a run says, in plain sentences."""

from __future__ import annotations

from typing import Any

from lachesis.results.notes import repeats_note

Document = dict[str, Any]
Run = dict[str, Any]

#: Below this factor two lifetimes read the same in the table.
_ALIKE = 1.005


def years_text(years: float) -> str:
    """Years with three digits, and thousands as people write them.

    Example:
        >>> years_text(0.4217), years_text(5.0), years_text(5891.2)
        ('0.422', '5.00', '5,891')
    """
    if years >= 100.0:
        return f"{years:,.0f}"
    if years >= 10.0:
        return f"{years:.1f}"
    return f"{years:.2f}" if years >= 1.0 else f"{years:.3g}"


def headline(document: Document) -> str:
    """What was replayed on what: trace, model, memory, SLO and seed."""
    origin, run = document["provenance"], document["runs"][0]
    limits = f"p99 TPOT {run['slo_tpot_p99_s'] * 1e3:g} ms, p99 TTFT {run['slo_ttft_p99_s']:g} s"
    return (
        f"{origin['trace_source']} ({_count(origin['trace_sessions'], 'session')}, "
        f"{_count(origin['trace_requests'], 'request')}) on {run['model']}, "
        f"memory {run['memory']}, SLO {run['slo']} ({limits}), seed {run['seed']}"
    )


def sentences(document: Document) -> list[str]:
    """Which policy lets the flash live longest and by what factor, load, settling, what was read.

    Example:
        >>> run = {"policy": "hbf-only", "hbf_lifetime_years": 2.5, "warranty_years": 5.0,
        ...        "load": "closed", "load_sessions": 8, "settled": True}
        >>> outcome_sentence([run])
        'Under hbf-only the flash lasts 2.50 years, short of the 5-year warranty.'
    """
    runs: list[Run] = document["runs"]
    said = [outcome_sentence(runs), load_sentence(document)]
    said += _notes(document)
    said += quality_sentences(document["provenance"]["trace_quality"])
    said += _fitted(document["provenance"])
    return said


def warnings(document: Document) -> list[str]:
    """Warnings of all policies, those that several share said once."""
    return _shared([(run["policy"], run["warnings"]) for run in document["runs"]])


def outcome_sentence(runs: list[Run]) -> str:
    """Which policy lets the flash live longest, by what factor, and whether it passes.

    Bounds that nobody can run (an oracle) do not compete, and a winner is named only where its
    interval lies above the others'.
    """
    rated = sorted(
        (
            run
            for run in runs
            if run["hbf_lifetime_years"] is not None and not _is_bound(run["policy"])
        ),
        key=lambda run: run["hbf_lifetime_years"],
        reverse=True,
    )
    if not rated:
        return "No policy here has device-years; the notes say why."
    best = rated[0]
    years, warranty = best["hbf_lifetime_years"], best["warranty_years"]
    verdict = "past" if years >= warranty else "short of"
    end = f"{verdict} the {warranty:g}-year warranty"
    if len(rated) == 1:
        return f"Under {best['policy']} the flash lasts {years_text(years)} years, {end}."
    others = rated[1:]
    other = next((run for run in others if run["policy"] == "hbm-first"), others[0])
    factor = years / other["hbf_lifetime_years"]
    if years / rated[-1]["hbf_lifetime_years"] < _ALIKE:
        return f"The flash lasts alike under all policies: {years_text(years)} years, {end}."
    if not _is_apart(best, others[0]):
        return (
            f"The flash lasts about as long under {best['policy']} as under "
            f"{others[0]['policy']}, within what this run can tell: {years_text(years)} years, "
            f"{end}."
        )
    return (
        f"The flash lasts longest under {best['policy']}: {years_text(years)} years, "
        f"{factor:.2f} times as long as under {other['policy']}, {end}."
    )


def _is_bound(policy: str) -> bool:
    return policy.partition(":")[0] == "lachesis-oracle"


def _is_apart(one: Run, other: Run) -> bool:
    """Whether the interval of the longer life lies above the other's; true where there is none."""
    high, low = one.get("hbf_lifetime_years_ci95"), other.get("hbf_lifetime_years_ci95")
    return high is None or low is None or high[0] > low[1]


def load_sentence(document: Document) -> str:
    """The load, where it comes from, and whether rates have settled."""
    runs: list[Run] = document["runs"]
    asked = document["provenance"]["options"]["load"]
    unsettled = [run["policy"] for run in runs if not run["settled"]]
    settled = "All runs have settled." if not unsettled else ""
    if len(runs) == 1:
        settled = "The run has settled." if not unsettled else ""
    first = runs[0]
    match asked:
        case "auto":
            under = document["provenance"]["searches"][0]["policy"]
            load = f"{_count(first['load_sessions'], 'session')}, the most that the SLO admits " + (
                f"under {under}"
            )
            if first["admitted_sessions"] == 0:
                load = f"1 session, although the SLO admits none under {under}"
        case "each":
            load = "the most sessions that the SLO admits under each policy"
        case "closed":
            load = f"{_count(first['load_sessions'], 'session')}, as given"
        case "poisson":
            load = f"{first['load_sessions_per_s']:g} sessions a second, Poisson arrivals"
        case _:
            load = "sessions at their recorded starts"
    return f"Load: {load}. {settled}".strip()


def quality_sentences(quality: dict[str, Any]) -> list[str]:
    """What reading had to recount, infer, fill in or leave out; nothing where it had not."""
    counted = [
        f"{quality[kind]:,} {kind}"
        for kind in ("reported", "recounted", "inferred")
        if quality[kind]
    ]
    said = []
    if quality["recounted"] or quality["inferred"]:
        said.append(f"Token counts of requests: {', '.join(counted)}.")
    left_out = [
        (quality["dropped"], "row", "dropped", quality["dropped_reasons"]),
        (quality["excluded"], "call", "excluded", quality["excluded_reasons"]),
    ]
    for count, noun, what, reasons in left_out:
        if count:
            said.append(f"{_count(count, noun)} {what}: {_counted(reasons)}.")
    if quality["adjusted"]:
        adjusted = _counted(quality["adjusted"])
        said.append(f"Adjusted where the log contradicts itself: {adjusted}.")
    if quality["filled"]:
        ways = [
            f"{name}: {how} ({count:,})"
            for name, found in quality["filled"].items()
            for how, count in found.items()
        ]
        said.append(f"Filled in where the log says nothing: {'; '.join(ways)}.")
    if skipped := quality["skipped_files"]:
        name, reason = next(iter(skipped.items()))
        more = f", and {len(skipped) - 1:,} more" if len(skipped) > 1 else ""
        said.append(f"{_count(len(skipped), 'file')} skipped: {name} ({reason}){more}.")
    if quality["orphan_subagents"]:
        count = quality["orphan_subagents"]
        said.append(f"{_count(count, 'sub-agent')} without a lead, each a session of its own.")
    if quality["empty_sessions"]:
        said.append(f"{_count(quality['empty_sessions'], 'session')} without a request, left out.")
    return said


def _notes(document: Document) -> list[str]:
    """Notes of all policies; how often sessions repeat is said once for all of them."""
    runs: list[Run] = document["runs"]
    sessions = document["provenance"]["trace_sessions"]
    each = {run["policy"]: repeats_note(sessions, [run["session_repeats"]]) for run in runs}
    repeats = ""
    if any(each[run["policy"]] in run["notes"] for run in runs):
        repeats = repeats_note(sessions, [run["session_repeats"] for run in runs])
    others = [
        (run["policy"], [note for note in run["notes"] if note != each[run["policy"]]])
        for run in runs
    ]
    said = [f"{repeats}."] if repeats else []
    names = tuple(f"{run['policy']}" for run in runs)
    return said + [
        note if note.startswith(names) else note[:1].upper() + note[1:] for note in _shared(others)
    ]


def _counted(reasons: dict[str, int]) -> str:
    """Reasons with their counts, those that contain punctuation told apart."""
    return "; ".join(f"{number:,} x {reason}" for reason, number in reasons.items())


def _fitted(origin: dict[str, Any]) -> list[str]:
    said = []
    if names := list(origin["corpora"]):
        verb = "is" if len(names) == 1 else "are"
        said.append(f"{', '.join(names)} {verb} synthetic; --json says what is calibrated.")
    if changed := [f"{item['key']} = {item['value']}" for item in origin["overrides"]]:
        said.append(f"Set by user: {', '.join(changed)}.")
    if fitted := [f"{item['key']} = {item['value']:g}" for item in origin["calibrated"]]:
        said.append(f"Calibrated, not measured: {', '.join(fitted)}.")
    return said


def _shared(lists: list[tuple[str, list[str]]]) -> list[str]:
    """Each text once, in order of appearance, with the policies it is about unless it is all."""
    owners: dict[str, list[str]] = {}
    for policy, texts in lists:
        for text in texts:
            owners.setdefault(text, []).append(policy)
    return [
        f"{text}." if len(policies) == len(lists) else f"{', '.join(policies)}: {text}."
        for text, policies in owners.items()
    ]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"

"""Which sessions of a trace meet a set of conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pyarrow.compute as pc

from lachesis.characterise.session_list import SessionSummary, session_list
from lachesis.errors import InputError
from lachesis.traces.trace import Trace


@dataclass(frozen=True)
class Conditions:
    """What a session must meet to be kept: all that is given.

    Attributes:
        workloads, sessions: shell patterns (``*``, ``?``, ``[ab]``, case counts) of which its
            workload's and its own name match at least one.
        requests_min, requests_max, turns_min, agents_min: bounds, ends included.
        classes: segment classes of which it has a segment each.
        boundaries: kinds of boundary of which each ends a segment.
        complete: it neither starts midway nor just stops.
    """

    workloads: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    requests_min: int | None = None
    requests_max: int | None = None
    turns_min: int | None = None
    agents_min: int | None = None
    classes: tuple[str, ...] = ()
    boundaries: tuple[str, ...] = ()
    complete: bool = False

    def describe(self) -> str:
        """The conditions in words, for the trace's source and for messages.

        Example:
            >>> Conditions(workloads=("tau2-*",), requests_min=3).describe()
            'workload tau2-*, at least 3 requests'
        """
        return ", ".join(self._words())

    def _words(self) -> list[str]:
        said = []
        if self.workloads:
            said.append(f"workload {' or '.join(self.workloads)}")
        if self.sessions:
            said.append(f"session {' or '.join(self.sessions)}")
        bounds = (
            ("at least", self.requests_min, "requests"),
            ("at most", self.requests_max, "requests"),
            ("at least", self.turns_min, "turns"),
            ("at least", self.agents_min, "agents"),
        )
        said += [f"{way} {bound} {what}" for way, bound, what in bounds if bound is not None]
        said += [f"class {name}" for name in self.classes]
        said += [f"boundary {name}" for name in self.boundaries]
        return said + (["complete"] if self.complete else [])


@dataclass(frozen=True)
class Selection:
    """Names of the sessions that are kept, and how many each condition left out.

    A session that fails several conditions is counted with the first.
    """

    kept: list[str]
    left_out: dict[str, int]


def select_sessions(trace: Trace, conditions: Conditions) -> Selection:
    """The sessions of `trace` that meet all conditions.

    Raises:
        InputError: no condition is given, or no session meets them.

    Example:
        >>> from lachesis.traces import open_trace
        >>> found = select_sessions(open_trace("tau3-airline"), Conditions(requests_min=20))
        >>> len(found.kept) + found.left_out["too few requests"]
        58
    """
    tests = _tests(trace, conditions)
    if not tests:
        raise InputError("name at least one condition, such as --min-requests 2")
    kept: list[str] = []
    left_out: Counter[str] = Counter()
    for summary in session_list(trace):
        failed = next((name for name, holds in tests.items() if not holds(summary)), None)
        if failed is None:
            kept.append(summary.session)
        else:
            left_out[failed] += 1
    if not kept:
        raise InputError(
            f"no session of {len(trace):,} meets the conditions ({conditions.describe()})",
            path=trace.source,
        )
    return Selection(kept, dict(left_out))


def _tests(trace: Trace, wanted: Conditions) -> dict[str, Callable[[SessionSummary], bool]]:
    tests: dict[str, Callable[[SessionSummary], bool]] = {}
    if wanted.workloads:
        tests["workload"] = lambda each: _matches(each.workload, wanted.workloads)
    if wanted.sessions:
        tests["session"] = lambda each: _matches(each.session, wanted.sessions)
    if (low := wanted.requests_min) is not None:
        tests["too few requests"] = lambda each: each.requests >= low
    if (high := wanted.requests_max) is not None:
        tests["too many requests"] = lambda each: each.requests <= high
    if (turns := wanted.turns_min) is not None:
        tests["too few turns"] = lambda each: each.turns >= turns
    if (agents := wanted.agents_min) is not None:
        tests["too few agents"] = lambda each: each.agents >= agents
    for name in wanted.classes:
        tests[f"no segment of class {name}"] = _is_one_of(_sessions_with(trace, "class", name))
    for name in wanted.boundaries:
        tests[f"nothing ended by {name}"] = _is_one_of(_sessions_with(trace, "closed_by", name))
    if wanted.complete:
        cut = pc.or_(trace.sessions["starts_midway"], trace.sessions["ends_open"])
        whole = trace.sessions.filter(pc.invert(cut))["session"].to_pylist()
        tests["starts midway or just stops"] = _is_one_of(set(whole))
    return tests


def _is_one_of(names: set[str]) -> Callable[[SessionSummary], bool]:
    return lambda each: each.session in names


def _sessions_with(trace: Trace, column: str, word: str) -> set[str]:
    rows = trace.segments.filter(pc.equal(trace.segments[column], word))
    return set(rows["session"].to_pylist())


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)

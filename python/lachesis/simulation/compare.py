"""One workload under several policies: what load they get, and their replays.

Under ``auto`` the largest load that the SLO admits is searched for once, under hbm-first, and every
policy is replayed at it; under ``each`` it is searched for under every policy. Where one session
misses the SLO already the answer is a load of 0; the replay is then at one session.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TypeVar

from lachesis.errors import InputError
from lachesis.policy import Policy, choose_policy
from lachesis.simulation.known_replays import KnownReplays, replay_plan
from lachesis.simulation.loaded_trace import LoadedTrace
from lachesis.simulation.plan import Load, Plan, Stopping
from lachesis.simulation.run import Observer, Replay, replay
from lachesis.simulation.search import Strain, approach, largest_load
from lachesis.simulation.search_precision import SearchPrecision
from lachesis.traces.trace import Trace

BASELINE = "hbm-first"
DEFAULT_POLICIES = (BASELINE, "lachesis-deterministic")

Item = TypeVar("Item")
Result = TypeVar("Result")


class Watcher:
    """Hears how far a comparison is; methods may be called from several threads at once."""

    def load_tried(self, policy: str, sessions: int, passes: bool) -> None:
        """A load of the SLO search was replayed."""

    def replay_started(self, policy: str, load: Load) -> None:
        """A policy's replay begins."""

    def replay_advanced(self, policy: str, simulated_s: float, requests: int, share: float) -> None:
        """Simulated seconds, requests ended, and the share of the longest possible run done."""

    def replay_ended(self, policy: str, outcome: Replay) -> None:
        """A policy's replay is done."""


@dataclass(frozen=True)
class LoadSearch:
    """The search for the largest load that the SLO admits, under one policy.

    Attributes:
        policy: under which it was searched for.
        sessions: the largest load that passes; 0 if one session fails already.
        tried: loads and whether they pass, in the order tried.
        bounded: whether a larger load was found to fail; else the search ended at `sessions`.
    """

    policy: str
    sessions: int
    tried: tuple[tuple[int, bool], ...]
    bounded: bool = True


@dataclass(frozen=True)
class Comparison:
    """Replays of one trace in the order of the policies asked for, and the searches before."""

    trace: Trace
    plan: Plan
    asked_load: Load
    replays: tuple[Replay, ...]
    searches: tuple[LoadSearch, ...]
    search: SearchPrecision = field(default_factory=SearchPrecision)

    def search_of(self, policy: str) -> LoadSearch | None:
        """The search whose load a policy was replayed at; None where the load was given."""
        found = {search.policy: search for search in self.searches}
        return found.get(policy, found.get(BASELINE) if self.asked_load.kind == "auto" else None)


def compare(
    trace: Trace | LoadedTrace,
    plan: Plan,
    policies: Sequence[str] = DEFAULT_POLICIES,
    load: Load | None = None,
    *,
    threads: int = 1,
    watcher: Watcher | None = None,
    search: SearchPrecision | None = None,
    guess: int | None = None,
    stop: threading.Event | None = None,
    known: KnownReplays | None = None,
) -> Comparison:
    """Replay a trace under several policies.

    Args:
        trace: what is replayed; `lachesis.traces.concat` joins several. Give comparisons of one
            trace a `LoadedTrace`, and they share its workload and scores.
        plan: presets, seed, stopping.
        policies: names, each once.
        load: as asked for; ``auto`` if None.
        threads: policies replayed at the same time; changes no result.
        watcher: hears about progress.
        search: how finely loads are searched for.
        guess: a load to start the search from, such as a neighbour's; changes no result.
        stop: ends the comparison when another thread sets it, as Ctrl-C does.
        known: replays and searches of comparisons of this trace, looked up and added to; what is
            there already is not made again. Changes no result but wall times.

    Raises:
        InputError: an unknown policy, one named twice, or whatever `replay` and `largest_load`
            refuse.
        KeyboardInterrupt: Ctrl-C, or `stop` was set; all threads have stopped by then.

    Example:
        >>> from lachesis.presets import Settings
        >>> from lachesis.simulation.plan import Stopping
        >>> from lachesis.traces import open_trace
        >>> plan = Plan(Settings.choose(), stopping=Stopping(turnovers=2.0))
        >>> outcome = compare(open_trace("tau3-airline"), plan, load=Load.parse("8"))
        >>> [replay.policy.name for replay in outcome.replays]
        ['hbm-first', 'lachesis-deterministic']
    """
    asked = Load("auto") if load is None else load
    if not policies:
        raise InputError("name at least one policy", field="policy")
    for name in policies:
        choose_policy(name)
        if list(policies).count(name) > 1:
            raise InputError("must be named once", field="policy", value=name)
    if threads < 1:
        raise InputError("must be at least 1", field="threads", value=threads)
    loaded = trace if isinstance(trace, LoadedTrace) else LoadedTrace(trace)
    stage = _Stage(loaded, plan, watcher or Watcher(), asked=asked, outside=stop, known=known)
    precision = search or SearchPrecision()

    def searched(name: str) -> LoadSearch:
        return stage.search(name, precision, guess)

    searches: list[LoadSearch] = []
    if asked.kind == "auto":
        searches = [searched(BASELINE)]
    elif asked.kind == "each":
        searches = stage.each(searched, policies, threads)
    admitted = {search.policy: search.sessions for search in searches}

    def replay_at_load(name: str) -> Replay:
        if not searches:
            return stage.replay(name, asked)
        sessions = admitted.get(name, 0) if asked.kind == "each" else admitted[BASELINE]
        return stage.replay(name, Load("closed", max(1, sessions)))

    replays = stage.each(replay_at_load, policies, threads)
    return Comparison(loaded.trace, plan, asked, tuple(replays), tuple(searches), precision)


def approximate_load(
    trace: LoadedTrace,
    plan: Plan,
    *,
    search: SearchPrecision | None = None,
    stop: threading.Event | None = None,
) -> int:
    """About the load that the SLO admits under hbm-first, to start searches at similar plans from.

    Args:
        trace: what would be replayed.
        plan: presets and seed.
        search: how long loads are measured.
        stop: ends it when another thread sets it, as Ctrl-C does.

    Raises:
        InputError: whatever `replay` refuses.
        KeyboardInterrupt: Ctrl-C, or `stop` was set.

    Example:
        >>> from lachesis.presets import Settings, apply_overrides
        >>> from lachesis.traces import open_trace
        >>> dear = apply_overrides(Settings.choose(), ["hardware.step_overhead_ms=45"])
        >>> 10 < approximate_load(LoadedTrace(open_trace("webarena")), Plan(dear)) < 1000
        True
    """
    stage = _Stage(trace, plan, Watcher(), asked=Load("auto"), outside=stop)
    return stage.approach(BASELINE, SearchPrecision() if search is None else search)


class _Stage:
    """What all replays of a comparison share: workload, price of a step, and a way to stop."""

    def __init__(
        self,
        loaded: LoadedTrace,
        plan: Plan,
        watcher: Watcher,
        *,
        asked: Load,
        outside: threading.Event | None = None,
        known: KnownReplays | None = None,
    ) -> None:
        self.loaded = loaded
        self.plan = plan
        self.watcher = watcher
        self.stop = threading.Event()
        self.outside = outside
        self.workload = loaded.workload(asked)
        self.cost = plan.cost()
        # Who listens to a replay wants to hear it.
        self.known = KnownReplays() if known is None or plan.journal is not None else known
        self.depends_on = replay_plan(plan)

    def each(
        self, work: Callable[[Item], Result], items: Sequence[Item], threads: int
    ) -> list[Result]:
        """Results of `work` in the order of `items`; the first error ends the rest."""
        if min(threads, len(items)) == 1:
            return [work(item) for item in items]
        with ThreadPoolExecutor(min(threads, len(items))) as pool:
            futures = [pool.submit(work, item) for item in items]
            try:
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                for future in futures:
                    if future in done:
                        future.result()
            except BaseException:
                # Python delivers Ctrl-C to the main thread only; the others look at this.
                self.stop.set()
                pool.shutdown(cancel_futures=True)
                raise
            return [future.result() for future in futures]

    def search(self, name: str, precision: SearchPrecision, guess: int | None) -> LoadSearch:
        """The largest load that the SLO admits under a policy."""

        def search() -> LoadSearch:
            result = largest_load(
                self._measured(name, precision.deciding),
                near=self._measured(name, precision.near),
                precision=precision,
                requests_per_session=self._requests_per_session,
                guess=guess,
            )
            return LoadSearch(name, result.sessions, tuple(result.tried.items()), result.bounded)

        return self.known.once(("search", self.depends_on, name, precision), search)

    def approach(self, name: str, precision: SearchPrecision) -> int:
        """About that load, by short measurements."""
        most = precision.most_sessions(self._requests_per_session)
        first = min(precision.first, most)
        return max(1, round(approach(self._measured(name, precision.near), first, most)))

    @property
    def _requests_per_session(self) -> float:
        return self.workload.requests / self.workload.sessions

    def _measured(
        self, name: str, stopping: Callable[[int, float], Stopping]
    ) -> Callable[[int], Strain]:
        """The strain of a load under a policy, by a measurement of the length that it asks for."""

        def strain(sessions: int) -> Strain:
            plan = self.plan.with_stopping(stopping(sessions, self._requests_per_session))
            outcome = self._run(name, Load("closed", sessions), plan, self._unless_stopped)
            self.watcher.load_tried(name, sessions, outcome.meets_slo)
            return outcome.strain(self.plan.settings.slo)

        return strain

    def replay(self, name: str, load: Load) -> Replay:
        """One policy's run."""

        def observe(simulated_s: float, requests: int, share: float) -> None:
            self._unless_stopped()
            self.watcher.replay_advanced(name, simulated_s, requests, share)

        self.watcher.replay_started(name, load)
        outcome = self.known.once(
            ("replay", self.depends_on, name, load),
            lambda: self._run(name, load, self.plan, observe),
        )
        self.watcher.replay_ended(name, outcome)
        return outcome

    def _run(self, name: str, load: Load, plan: Plan, observe: Observer) -> Replay:
        policy = self.policy(name, load)
        return replay(
            self.workload,
            plan,
            policy,
            load,
            cost=self.cost,
            scores=self.loaded.scores_for(policy, self.plan.settings.latency),
            source=self.loaded.trace.source,
            session_names=self.loaded.session_names,
            observe=observe,
        )

    def policy(self, name: str, load: Load) -> Policy:
        """The policy, with what it fixes beforehand from the trace and the load."""
        policy = choose_policy(name)
        if name != "read-write-ratio":
            return policy
        # Only this policy needs the classification of reads, which takes a pass over the spans.
        from lachesis.policy.ratio import fix_threshold

        settings = self.plan.settings
        return fix_threshold(
            policy,
            self.loaded.trace,
            settings,
            self.live_sessions(load),
            reads=self.loaded.class_reads(settings.latency, settings.node.block_tokens),
        )

    def live_sessions(self, load: Load) -> int:
        """Sessions alive on the node: given, or by Little's law from the rate of arrivals."""
        if load.kind == "closed":
            return load.sessions
        rate_per_s = load.sessions_per_s
        if load.kind == "recorded":
            rate_per_s = self.loaded.recorded_rate_per_s(load.longest_gap_s)
        return max(1, round(rate_per_s * self.plan.ramp_s(self.workload)))

    def _unless_stopped(self, *_: object) -> None:
        if self.stop.is_set() or (self.outside is not None and self.outside.is_set()):
            raise KeyboardInterrupt

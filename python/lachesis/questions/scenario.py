"""A trace on hardware that a question varies: runs it, and remembers what it ran."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lachesis import __version__
from lachesis.errors import InfeasibleError, InputError
from lachesis.policy import choose_policy
from lachesis.presets import Settings
from lachesis.quantities import parse_pairs
from lachesis.questions.answer import Run
from lachesis.results.document import run_objects
from lachesis.results.provenance import preset_names, trace_summary, values_from
from lachesis.simulation import (
    DEFAULT_POLICIES,
    KnownReplays,
    Load,
    LoadedTrace,
    RunOptions,
    compare,
)
from lachesis.traces import ReadOptions, open_trace

#: Hears what is about to be run, in words.
Say = Callable[[str], None]


class Scenario:
    """The options of ``lachesis run`` as a starting point, and one trace read for all runs.

    Example:
        >>> scenario = Scenario(RunOptions(traces=("tau3-airline",), turnovers=2.0, load="8"))
        >>> run, = scenario.run(["hbf-only"], memory="1/7")
        >>> run["memory"], run["load_sessions"], len(scenario.runs)
        ('1/7', 8, 1)
    """

    def __init__(self, options: RunOptions, *, threads: int = 1, say: Say | None = None) -> None:
        """Check the options, then read the trace.

        Raises:
            InputError: an option breaks a rule, or the trace cannot be read.
        """
        self.options = options
        self.policies: tuple[str, ...] = options.policies or DEFAULT_POLICIES
        for name in self.policies:
            choose_policy(name)
        self.load = Load.parse(options.load)
        self.settings: Settings = options.plan().settings
        if not options.traces:
            raise InputError("name at least one trace: a file, a folder or a corpus", field="TRACE")
        columns = parse_pairs(list(options.map), "--map", "OURS=THEIRS")
        self._say = say or _silent
        self._say("reading traces")
        self._threads = threads
        self._trace = LoadedTrace(
            open_trace(*options.traces, format=options.format, options=ReadOptions(columns=columns))
        )
        # What changes after a replay alone, such as endurance, is not replayed again.
        self._known = KnownReplays()
        self.runs: list[Run] = []
        #: What `run_feasible` was asked for and cannot be run: policy, memory, reason.
        self.infeasible: list[dict[str, Any]] = []

    def run(
        self,
        policies: Sequence[str] | None = None,
        load: Load | None = None,
        *,
        guess: int | None = None,
        scenario: str | None = None,
        stop: threading.Event | None = None,
        **changes: object,
    ) -> list[Run]:
        """Run policies under changed options; one object each, in their order.

        Args:
            policies: those of the options if left out.
            load: that of the options if left out.
            guess: where a search for the load starts.
            scenario: a name that the runs carry.
            stop: ends it from another thread.
            changes: options of `RunOptions`, replaced.

        Raises:
            InputError: the options do not fit together, or a session does not fit the memory.
        """
        plan = replace(self.options, **changes).plan()  # type: ignore[arg-type]
        names = list(policies or self.policies)
        asked = load or self.load
        at = f"{asked.sessions:,} sessions" if asked.kind == "closed" else f"load {asked.kind}"
        self._say(f"{', '.join(names)} on {plan.settings.memory} at {at}")
        comparison = compare(
            self._trace, plan, names, asked, threads=self._threads, guess=guess, stop=stop,
            known=self._known,
        )  # fmt: skip
        settings = plan.settings
        found = []
        for run, policy in zip(run_objects(comparison), names, strict=True):
            labelled = {} if scenario is None else {"scenario": scenario}
            hbm_gb = settings.hardware.hbm_bytes(settings.memory) / 1e9
            found.append({**labelled, **run, "policy": policy, "hbm_gb_per_gpu": hbm_gb})
        self.runs += found
        return found

    def run_feasible(self, policies: Sequence[str], told: str, **changes: object) -> list[Run]:
        """The same for those of the policies that can be run; the others are noted.

        Args:
            policies: which.
            told: the memory that is tried, in words, for the note.
            changes: options of `RunOptions`, replaced.

        Raises:
            InputError: the options break a rule.
        """
        try:
            return self.run(policies, **changes)  # type: ignore[arg-type]  # options of `RunOptions`
        except InfeasibleError as error:
            if len(policies) > 1:
                # Which of several it was shows when each runs alone; their results are the same.
                alone = [self.run_feasible([name], told, **changes) for name in policies]
                return [run for runs in alone for run in runs]
            note = {"policy": policies[0], "memory": told, "reason": str(error)}
            self.infeasible.append(note)
            return []

    def provenance(self) -> dict[str, Any]:
        """Where the answer comes from."""
        return {
            "version": __version__,
            "command": shlex.join(self.options.command()),
            **trace_summary(self._trace.trace),
            "presets": preset_names(self.settings),
            "overrides": list(values_from(self.settings, "set by user")),
        }


def _silent(_: str) -> None:
    """Says nothing."""

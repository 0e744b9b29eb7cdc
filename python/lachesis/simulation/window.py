"""A short window of a run, told event by event.

The run is repeated up to the window's end with somebody who listens: equal inputs give equal runs,
so what is told is what happened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lachesis.errors import InputError
from lachesis.simulation.compare import Comparison, compare
from lachesis.simulation.journal import Columns, Journal, Told
from lachesis.simulation.loaded_trace import LoadedTrace
from lachesis.simulation.plan import Stopping
from lachesis.simulation.run import Replay

#: More records than this make a file that no viewer opens gladly.
RECORDS_MAX = 400_000
DEFAULT_LENGTH_S = 60.0


@dataclass(frozen=True)
class Window:
    """A window of simulated time.

    Attributes:
        start_s: where it starts; None: where the measured part of the run starts, which is once it
            has settled and half way where it has not.
        length_s: how long it is.
    """

    start_s: float | None = None
    length_s: float = DEFAULT_LENGTH_S


@dataclass(frozen=True)
class WindowEvents:
    """What happened in the window of one run.

    Attributes:
        policy: of the run.
        start_s, end_s: the window; it ends with the run at the latest.
        slices: phases of requests that overlap it.
        instants: what happened at one time.
        steps: one row a step and GPU.
    """

    policy: str
    start_s: float
    end_s: float
    slices: Columns
    instants: Columns
    steps: Columns


def window_events(
    comparison: Comparison, outcome: Replay, window: Window, *, loaded: LoadedTrace | None = None
) -> WindowEvents:
    """Repeat one run of a comparison up to the end of a window, and tell what happens in it.

    Args:
        comparison: that the run belongs to.
        outcome: the run.
        window: which part of it.
        loaded: the comparison's trace with what was made of it, where the caller has that already.

    Raises:
        InputError: the window starts after the run's end, or holds more than `RECORDS_MAX`
            records.
    """
    whole_s = float(outcome.measured["whole"]["time_s"])
    start_s = window.start_s
    if start_s is None:
        start_s = float(outcome.measured["window_start_s"]) or whole_s / 2.0
    if start_s >= whole_s:
        raise InputError(
            f"starts after the end of the run under {outcome.policy.name} ({whole_s:,.0f} s)",
            field="--trace-events-window",
            value=f"{start_s:g}s",
        )
    end_s = min(start_s + window.length_s, whole_s)
    told = Told()

    def deliver(tables: dict[str, Columns]) -> None:
        told(tables)
        if told.records > RECORDS_MAX:
            raise InputError(
                f"holds more than {RECORDS_MAX:,} records under {outcome.policy.name}: give a "
                "shorter one, START:LENGTH",
                field="--trace-events-window",
                value=f"{start_s:g}s:{window.length_s:g}s",
            )

    stopping = Stopping(turnovers=1e9, warm_up_turnovers=0.0, horizon_s=end_s, fixed=True)
    plan = replace(
        comparison.plan,
        journal=Journal(deliver, window_s=(start_s, end_s)),
        stopping=stopping,
        timeline_interval_s=None,
    )
    compare(
        comparison.trace if loaded is None else loaded, plan, [outcome.policy.name], outcome.load
    )
    return WindowEvents(
        policy=outcome.policy.name,
        start_s=start_s,
        end_s=end_s,
        slices=told.columns("slices"),
        instants=told.columns("instants"),
        steps=told.columns("steps"),
    )

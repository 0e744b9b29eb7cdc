"""From a trace and presets to what the engine measures. The only importer of the extension."""

from lachesis._engine import device_years
from lachesis.simulation.compare import (
    BASELINE,
    DEFAULT_POLICIES,
    Comparison,
    LoadSearch,
    Watcher,
    approximate_load,
    compare,
)
from lachesis.simulation.journal import Journal, Told
from lachesis.simulation.known_replays import KnownReplays, replay_plan
from lachesis.simulation.loaded_trace import LoadedTrace
from lachesis.simulation.plan import Load, Plan, Stopping
from lachesis.simulation.pricing import NodePart, step_cost, stored_bytes_per_token
from lachesis.simulation.run import Observer, Replay, replay
from lachesis.simulation.run_options import RunOptions
from lachesis.simulation.search import SearchResult, Strain, largest_load
from lachesis.simulation.search_precision import SearchPrecision
from lachesis.simulation.window import Window, WindowEvents, window_events
from lachesis.simulation.workload import to_workload

__all__ = [
    "BASELINE",
    "DEFAULT_POLICIES",
    "Comparison",
    "Journal",
    "KnownReplays",
    "Load",
    "LoadSearch",
    "LoadedTrace",
    "NodePart",
    "Observer",
    "Plan",
    "Replay",
    "RunOptions",
    "SearchPrecision",
    "SearchResult",
    "Stopping",
    "Strain",
    "Told",
    "Watcher",
    "Window",
    "WindowEvents",
    "approximate_load",
    "compare",
    "device_years",
    "largest_load",
    "replay",
    "replay_plan",
    "step_cost",
    "stored_bytes_per_token",
    "to_workload",
    "window_events",
]

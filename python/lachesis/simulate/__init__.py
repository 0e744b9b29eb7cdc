"""From a trace and presets to what the engine measures. The only importer of the extension."""

from lachesis._engine import device_years
from lachesis.simulate.compare import (
    BASELINE,
    DEFAULT_POLICIES,
    Comparison,
    LoadSearch,
    Watcher,
    compare,
)
from lachesis.simulate.plan import SEARCH_STOPPING, Load, Plan, Stopping
from lachesis.simulate.pricing import step_cost, stored_bytes_per_token
from lachesis.simulate.run import Observer, Replay, replay
from lachesis.simulate.search import SearchResult, largest_load
from lachesis.simulate.workload import to_workload

__all__ = [
    "BASELINE",
    "DEFAULT_POLICIES",
    "SEARCH_STOPPING",
    "Comparison",
    "Load",
    "LoadSearch",
    "Observer",
    "Plan",
    "Replay",
    "SearchResult",
    "Stopping",
    "Watcher",
    "compare",
    "device_years",
    "largest_load",
    "replay",
    "step_cost",
    "stored_bytes_per_token",
    "to_workload",
]

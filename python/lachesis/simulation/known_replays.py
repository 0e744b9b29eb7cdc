"""Replays that were made already, for plans that differ only in what enters after a replay.

Endurance, write amplification, refreshing, warranty and the share of time in which the node serves
turn what a replay measured into device-years (`lachesis.results.wear`); no replay depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar, cast

import msgspec

from lachesis.presets import Settings, load_flash
from lachesis.simulation.plan import Plan

Made = TypeVar("Made")


class KnownReplays:
    """Replays and searches of one trace, kept for as long as somebody may ask for them again.

    Example:
        >>> known = KnownReplays()
        >>> known.once("a", lambda: [1]) is known.once("a", lambda: [1])
        True
    """

    def __init__(self) -> None:
        self._made: dict[Hashable, object] = {}

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What was made under this key; made now if nothing was. An error is not kept."""
        if key not in self._made:
            self._made[key] = make()
        return cast(Made, self._made[key])


def replay_plan(plan: Plan) -> Plan:
    """What of a plan a replay depends on: equal plans here have equal replays and searches.

    Example:
        >>> from lachesis.presets import apply_overrides
        >>> plans = [
        ...     Plan(apply_overrides(Settings.choose(), [change]))
        ...     for change in ("flash.pe_cycles=7", "node.duty_cycle=0.5", "node.gpus=4")
        ... ]
        >>> [replay_plan(plan) == replay_plan(Plan(Settings.choose())) for plan in plans]
        [True, True, False]
    """
    return replace(plan, settings=_replayed(plan.settings), journal=None)


# Cells that differ by load or seed share their settings.
@lru_cache(maxsize=256)
def _replayed(settings: Settings) -> Settings:
    """The settings with the usual values of what enters after a replay, and without sources."""
    # What a flash preset says of a product's stack stands in the GPU preset by now.
    used = {
        name: msgspec.structs.replace(getattr(settings, name), sources=())
        for name in ("model", "hardware", "latency", "slo", "node")
    }
    used["node"] = msgspec.structs.replace(used["node"], duty_cycle=1.0)
    return msgspec.structs.replace(settings, flash=load_flash(), **used)

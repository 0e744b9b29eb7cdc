"""Ranks and measures the corpora on a thread of its own, beside the engine's replays."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from lachesis.policy import choose_policy
from lachesis.reproduce.cells import LACHESIS, MULTI_AGENT
from lachesis.reproduce.evidence import Evidence
from lachesis.reproduce.registry import Published, cells_of


class Background:
    """What needs no simulation, under way: scores that replays rank by, and measurements.

    The thread is a daemon, so that Ctrl-C need not wait for it.

    Args:
        chosen: figures and tables, those that are simulated among them.
        evidence: keeps the measurements.
    """

    def __init__(self, chosen: Sequence[Published], evidence: Evidence) -> None:
        self._chosen = [published for published in chosen if not published.cells()]
        simulated = {cell.trace for cell in cells_of(chosen)}
        self._ranked = [trace for trace in MULTI_AGENT if trace in simulated]
        self._evidence = evidence
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._measure, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait until all is measured; whatever went wrong is raised here."""
        self._thread.join()
        if self._fault is not None:
            raise self._fault

    def _measure(self) -> None:
        try:
            # First what replays will wait for.
            for trace in self._ranked:
                loaded = self._evidence.corpora.loaded(trace)
                loaded.scores_for(choose_policy(LACHESIS), self._evidence.latency)
            for published in self._chosen:
                published.compare(self._evidence)
        except BaseException as fault:
            self._fault = fault

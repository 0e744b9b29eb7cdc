"""Measures the corpora on a thread of its own, beside the replays that the engine runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from lachesis.reproduce.evidence import Evidence
from lachesis.reproduce.registry import Published


class Background:
    """The measurements that need no simulation, under way.

    The thread is a daemon, so that Ctrl-C need not wait for it.

    Args:
        chosen: figures and tables, those that are simulated among them.
        evidence: keeps the measurements.
    """

    def __init__(self, chosen: Sequence[Published], evidence: Evidence) -> None:
        self._chosen = [published for published in chosen if not published.cells()]
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
            for published in self._chosen:
                published.compare(self._evidence)
        except BaseException as fault:
            self._fault = fault

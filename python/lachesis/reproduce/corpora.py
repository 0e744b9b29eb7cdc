"""The built-in corpora of a reproduction, each read once for measurements and replays."""

from __future__ import annotations

import threading

from lachesis.simulation import LoadedTrace
from lachesis.sweeps import TraceSource
from lachesis.traces import open_trace


class Corpora:
    """Loaded corpora by name; may be asked from several threads."""

    def __init__(self) -> None:
        self._loaded: dict[str, LoadedTrace] = {}
        self._reading = threading.Lock()

    def loaded(self, name: str) -> LoadedTrace:
        """A corpus by its name.

        Example:
            >>> corpora = Corpora()
            >>> corpora.loaded("tau3-airline") is corpora.loaded("tau3-airline")
            True
        """
        with self._reading:
            if name not in self._loaded:
                self._loaded[name] = LoadedTrace(open_trace(name))
            return self._loaded[name]

    def read(self, source: TraceSource) -> LoadedTrace:
        """The corpus that a cell of a sweep names."""
        (name,) = source.names
        return self.loaded(name)

"""The built-in corpora of a reproduction, each read once for measurements and replays."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping

from lachesis.simulation import LoadedTrace
from lachesis.sweeps import TraceSource
from lachesis.traces import open_trace
from lachesis.traces.generator.generate import MIXES, WITHOUT_REVIEWERS
from lachesis.traces.trace import session_digests


class Corpora:
    """Loaded corpora by name, with the digests of their sessions; for several threads."""

    def __init__(self) -> None:
        self._loaded: dict[str, LoadedTrace] = {}
        # Held while one is read: who needs the same waits for it, who needs another does not.
        self._reading: dict[str, threading.Lock] = {}
        self._looking = threading.Lock()

    def loaded(self, name: str) -> LoadedTrace:
        """A corpus by its name.

        Example:
            >>> corpora = Corpora()
            >>> corpora.loaded("tau3-airline") is corpora.loaded("tau3-airline")
            True
        """
        with self._looking:
            reading = self._reading.setdefault(name, threading.Lock())
        with reading:
            if name not in self._loaded:
                # A mix takes over the digests of its workloads, which are measured on their own
                # too; the one without reviewers is generated and has none of them.
                for part in MIXES.get(name, ()) if name != WITHOUT_REVIEWERS else ():
                    self.loaded(part)
                trace = open_trace(name)
                session_digests(trace)
                self._loaded[name] = LoadedTrace(trace)
            return self._loaded[name]

    def read(self, source: TraceSource) -> LoadedTrace:
        """The corpus that a cell of a sweep names."""
        (name,) = source.names
        return self.loaded(name)


class CorporaOnDemand(Mapping[TraceSource, LoadedTrace]):
    """Corpora as the traces of a sweep, each read when a thread first needs it."""

    def __init__(self, corpora: Corpora, sources: frozenset[TraceSource]) -> None:
        self._corpora = corpora
        self._sources = sources

    def __getitem__(self, source: TraceSource) -> LoadedTrace:
        if source not in self._sources:
            raise KeyError(source)
        return self._corpora.read(source)

    def __iter__(self) -> Iterator[TraceSource]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

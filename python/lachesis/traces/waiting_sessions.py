"""Sessions that are complete, but wait until all are read for the lengths of their prompts.

Where a log gives a prompt's text and not its length, sessions with the same prompt tell it together
(see `lachesis.traces.prompts`). Until then what was pushed to a session is on disk.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path

from lachesis.traces.prompts import PromptKey, first_requests, implied_lengths
from lachesis.traces.quality import Quality
from lachesis.traces.record_groups import RecordGroups
from lachesis.traces.session_builder import SessionBuilder


class WaitingSessions:
    """Takes sessions, and gives back those that are still wanted, by the numbers it gave them."""

    def __init__(self, folder: Path | None = None) -> None:
        self._sessions = RecordGroups(folder)
        self._implied = RecordGroups(folder)
        self._taken = 0

    def take(self, session: SessionBuilder) -> int:
        """Put a session by; returns its number. The object is of no use afterwards."""
        number = self._taken
        self._taken += 1
        implied = list(implied_lengths(first_requests(session.requests)))
        if implied:
            self._implied.append(number, pickle.dumps(implied))
        session.forget_quality()
        self._sessions.append(number, pickle.dumps(session))
        return number

    def implied(self, wanted: Iterable[int]) -> Iterator[tuple[PromptKey, int]]:
        """What first requests of the sessions of ascending numbers `wanted` imply."""
        for record in _picked(self._implied, wanted):
            yield from pickle.loads(record)

    def sessions(self, wanted: Iterable[int], quality: Quality) -> Iterator[SessionBuilder]:
        """The sessions of ascending numbers `wanted`, counting in `quality`."""
        for record in _picked(self._sessions, wanted):
            session: SessionBuilder = pickle.loads(record)
            session.count_in(quality)
            yield session


def _picked(records: RecordGroups, wanted: Iterable[int]) -> Iterator[bytes]:
    numbers = iter(wanted)
    next_wanted = next(numbers, None)
    for number, record in records.records():
        while next_wanted is not None and next_wanted < number:
            next_wanted = next(numbers, None)
        if number == next_wanted:
            yield record

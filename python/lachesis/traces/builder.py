"""The one place where a log becomes a trace: segments, dependencies and boundaries.

Readers and the generator push requests per session and agent; `TraceBuilder.build` gives a
validated `Trace`. Requests of one agent are pushed in the order in which they happened; agents may
be pushed one after another (the order between agents is recovered from edges and start times).

Example:
    >>> builder = TraceBuilder(source="example", tokenizer="none")
    >>> session = builder.session("s0", workload="demo", harness="none", stripping="off")
    >>> first = session.request(input_tokens=100, prompt_tokens=60, output_tokens=20)
    >>> second = session.request(input_tokens=150, output_tokens=5)
    >>> trace = builder.build()
    >>> for span in trace.spans.select(["segment", "tokens", "written"]).to_pylist()[2:]:
    ...     print(*span.values())
    0 60 False
    1 60 False
    1 30 True
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lachesis.errors import InputError
from lachesis.traces.batches import CollectedSessions
from lachesis.traces.grown_sessions import CountedRequests, count_filled, grown_sessions
from lachesis.traces.logged import Stripping
from lachesis.traces.lone_requests import LoneRequests, lone_sessions
from lachesis.traces.prompts import (
    PromptKey,
    common_lengths,
    first_requests,
    implied_lengths,
)
from lachesis.traces.quality import Quality
from lachesis.traces.recovery import recover_session
from lachesis.traces.rows import Rows
from lachesis.traces.session_builder import SessionBuilder, encodable
from lachesis.traces.session_names import SessionNames, name_key
from lachesis.traces.session_order import in_order
from lachesis.traces.spool import Spool, Tables
from lachesis.traces.trace import Trace
from lachesis.traces.validate import validate
from lachesis.traces.waiting_sessions import WaitingSessions

#: A batch is made when one of its tables has so many rows, or more for a long session.
_BATCH_ROWS = 16_384


class TraceBuilder:
    """Collects sessions and builds the trace.

    Args:
        source: where the data come from (file or folder name), for trace.json and messages.
        tokenizer: how tokens were counted where the log does not say, e.g. ``"4 characters"``.
        scratch: folder for what is complete and does not fit into a little memory; the system's
            folder for temporary files if None.
    """

    def __init__(
        self, *, source: str, tokenizer: str = "as reported", scratch: Path | None = None
    ) -> None:
        self.source = source
        self.tokenizer = tokenizer
        self.quality = Quality()
        self.sessions: list[SessionBuilder | int] = []  # a number: waits, see `complete`
        self._waiting = WaitingSessions(scratch)
        self._names = SessionNames()
        self._finished: dict[str, array[int]] = {}  # hashes of names, by harness
        self._rows = Rows()
        self._complete = Spool(scratch)
        self._may_skip: frozenset[str] = frozenset()
        # Of the session that is being recovered; one object for all, of which there may be many.
        self._quality_of_session = Quality()
        self._folds = True  # whether a batch is made whenever there is enough for one

    def session(
        self,
        name: str,
        *,
        workload: str,
        harness: str,
        source: str | None = None,
        starts_midway: bool = False,
        ends_open: bool = False,
        stripping: Stripping = "auto",
        recorded_delays: bool = True,
        orphan: bool = False,
    ) -> SessionBuilder:
        """Open a session. Names need not be unique: a repeated one gets a suffix.

        `stripping`: ``turn`` (reasoning removed when a turn ends), ``round`` (after every
        request), ``off``, or ``auto``: recognised from parts, or from a fall of input tokens.
        `recorded_delays`: edges take their delays from recorded times where there are any.
        `orphan`: a sub-agent without a lead, a session of its own; counted.
        A session without requests is skipped and counted.
        """
        opened = SessionBuilder(
            self._names.unique(encodable(name)),
            workload=workload,
            harness=harness,
            source=self.source if source is None else source,
            starts_midway=starts_midway,
            ends_open=ends_open,
            stripping=stripping,
            recorded_delays=recorded_delays,
            orphan=orphan,
            quality=self.quality,
        )
        self.sessions.append(opened)
        return opened

    def drop(self, reason: str, count: int = 1) -> None:
        """Count rows of the source that were dropped."""
        self.quality.dropped[reason] += count

    def exclude(self, reason: str, count: int = 1) -> None:
        """Count calls that are no requests, outside any session."""
        self.quality.excluded[reason] += count

    def fill(self, field: str, how: str, count: int = 1) -> None:
        """Count values that the log lacks and that were filled in, and how."""
        self.quality.fill(field, how, count)

    def ignore(self, what: str, count: int = 1) -> None:
        """Count columns or fields of the source that mean nothing here."""
        self.quality.ignored[what] += count

    def skip(self, path: str, reason: str) -> None:
        """Record a file that was skipped."""
        self.quality.skipped[path] = reason

    def finish(self, session: SessionBuilder) -> None:
        """Take a session that is complete into the trace now, so that it needs no memory.

        For readers of large files. The lengths of its prompts are then its own matter: they are not
        compared with other sessions' (see `lachesis.traces.prompts`).
        """
        if session is self.sessions[-1]:
            self.sessions.pop()
        else:
            self.sessions.remove(session)
        if session.requests:
            finished = self._finished.setdefault(session.harness, array("Q"))
            finished.append(name_key(session.name))
        self._recover(session, {})

    def complete(self, session: SessionBuilder) -> None:
        """Nothing more will be pushed to a session, so that it needs no memory until the end.

        Unlike after `finish`, the lengths of its prompts are compared with other sessions'.
        """
        for index in range(len(self.sessions) - 1, -1, -1):
            if self.sessions[index] is session:
                self.sessions[index] = self._waiting.take(session)
                return

    def finished(self, harness: str) -> frozenset[int]:
        """`name_key` of each session of a harness that was taken in with `finish`."""
        return frozenset(self._finished.get(harness, ()))

    def add_lone(self, requests: LoneRequests, *, workload: str, harness: str, source: str) -> None:
        """Take in requests of which each is a session of its own, named ``request-N``.

        Their counts and times must keep the rules for which `SessionBuilder.request` looks.
        """
        self._fold()
        names = self._names.numbered(requests.numbers)
        self._keep(
            lone_sessions(requests, names, workload=workload, harness=harness, source=source)
        )

    def add_counted(
        self,
        requests: CountedRequests,
        grown: NDArray[np.bool_],
        names: Sequence[str],
        push: Callable[[int], None],
        *,
        workload: str,
        harness: str,
        source: str,
        stripping: Stripping = "off",
    ) -> None:
        """Take in sessions by columns, those that only grow, and by `push` the others, in order.

        Args:
            requests: of all these sessions.
            grown: which of them only grow, of those for which `CountedRequests.grow` is true.
            names: of all these sessions.
            push: given a session's place among them, pushes it and finishes it.
            workload: of those that only grow, like what follows.
            harness: likewise.
            source: likewise.
            stripping: likewise; not ``turn`` or ``round``.
        """
        self._fold()
        unique: list[str] = []
        pushed: list[int] = []  # for each session that was pushed, its place
        self._folds = False
        try:
            for place, (name, grows) in enumerate(zip(names, grown.tolist(), strict=True)):
                if grows:
                    unique.append(self._names.unique(encodable(name)))
                else:
                    push(place)
                    pushed += [place] * (self._rows.counts()["sessions"] - len(pushed))
        finally:
            self._folds = True
        tables = self._rows.take()
        if unique:
            columns = requests.where(grown)
            count_filled(columns, stripping, self.quality)
            made = grown_sessions(
                columns, unique, workload=workload, harness=harness, source=source
            )
            places = np.concatenate([np.flatnonzero(grown), np.array(pushed, np.int64)])
            tables = in_order([made, tables], places) if pushed else made
        self._keep(tables)

    def may_skip(self, sources: Iterable[str]) -> None:
        """Name sources whose sessions are skipped and counted, no error, where they break a rule.

        These are files that were found in a folder, among others.
        """
        self._may_skip = frozenset(sources)

    def mark(self) -> BuilderMark:
        """What has been taken in so far, for `take_back`; an earlier mark is of no use any more."""
        self._names.mark()
        return BuilderMark(
            len(self.sessions),
            {harness: len(names) for harness, names in self._finished.items()},
            len(self._complete),
            self._rows.counts(),
            self.quality.snapshot(),
            len(self.quality.skipped),
        )

    def take_back(self, mark: BuilderMark) -> None:
        """Forget everything that came after `mark`: a file turned out to be broken."""
        del self.sessions[mark.sessions :]
        for harness, names in self._finished.items():
            del names[mark.finished.get(harness, 0) :]
        self._names.take_back()
        if len(self._complete) > mark.batches:
            begun = self._complete[mark.batches]
            self._rows.take()
        else:
            begun = self._rows.take()
        self._complete.truncate(mark.batches)
        self._keep({name: table.slice(0, mark.rows[name]) for name, table in begun.items()})
        self.quality.restore(mark.quality, mark.skipped_files)

    @property
    def holds_requests(self) -> bool:
        """Whether any session has a request."""
        return any(isinstance(each, int) or each.requests for each in self.sessions) or bool(
            len(self._complete) or self._rows.counts()["requests"]
        )

    def build(self) -> Trace:
        """The trace, validated; raises `InputError` if no session has a request.

        Sessions are gone from the builder afterwards.
        """
        return self.collect().whole()

    def collect(self) -> CollectedSessions:
        """The same in batches, which need not fit into memory."""
        numbers = [each for each in self.sessions if isinstance(each, int)]
        opened = (each for each in self.sessions if not isinstance(each, int))
        implied = (implied_lengths(first_requests(each.requests)) for each in opened)
        lengths = common_lengths(chain(self._waiting.implied(numbers), *implied))
        waiting = self._waiting.sessions(numbers, self.quality)
        left, self.sessions = self.sessions[::-1], []
        while left:
            session = left.pop()
            self._recover(next(waiting) if isinstance(session, int) else session, lengths)
        self._fold()
        if not len(self._complete):
            raise InputError(nothing_remains(self.quality), path=self.source)
        self.quality.requests.update(self._complete.totals.usage)
        return CollectedSessions(self._complete, self.source, self.tokenizer, self.quality)

    def _recover(self, session: SessionBuilder, lengths: Mapping[PromptKey, int]) -> None:
        if not session.requests:
            self.quality.empty_sessions += 1
            return
        quality = self._quality_of_session
        quality.clear()
        try:
            recover_session(session, self._rows, quality, lengths)
        except InputError as fault:
            if session.source not in self._may_skip:
                raise
            where = "" if fault.row is None else f"{fault.row}: "
            self.skip(f"{session.source}, session {session.name}", f"{where}{fault.rule}")
            return
        finally:
            session.requests = []
        self.quality.merge(quality)
        self.quality.orphan_subagents += session.orphan
        if self._folds and max(self._rows.counts().values()) >= _BATCH_ROWS:
            self._fold()

    def _fold(self) -> None:
        self._keep(self._rows.take())

    def _keep(self, tables: Tables) -> None:
        """Validate a batch of complete sessions and put it by."""
        if tables["sessions"].num_rows:
            validate(Trace(**tables, source=self.source), self.source)
            self._complete.append(tables)


@dataclass(frozen=True, slots=True)
class BuilderMark:
    """A state of a `TraceBuilder`: how many sessions, names and rows, and the counts."""

    sessions: int
    finished: dict[str, int]
    batches: int
    rows: dict[str, int]
    quality: Quality
    skipped_files: int


def nothing_remains(quality: Quality) -> str:
    """The message for an input in which there is no request, with what was left out and why."""
    reasons = [
        f"{count} × {reason}"
        for reason, count in sorted((quality.excluded + quality.dropped).items())
    ]
    reasons += [f"{path}: {reason}" for path, reason in sorted(quality.skipped.items())[:3]]
    if quality.empty_sessions:
        reasons.append(f"{quality.empty_sessions} empty sessions")
    return "no request remains" + (f" (left out: {'; '.join(reasons)})" if reasons else "")

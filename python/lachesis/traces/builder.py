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

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass

import pyarrow.compute as pc

from lachesis.errors import InputError
from lachesis.traces.logged import Stripping
from lachesis.traces.prompts import PromptKey, common_lengths, first_requests
from lachesis.traces.quality import Quality
from lachesis.traces.recovery import recover_session
from lachesis.traces.rows import Rows
from lachesis.traces.session_builder import SessionBuilder, encodable
from lachesis.traces.trace import Trace, unique_name
from lachesis.traces.validate import validate


class TraceBuilder:
    """Collects sessions and builds the trace.

    Args:
        source: where the data come from (file or folder name), for trace.json and messages.
        tokenizer: how tokens were counted where the log does not say, e.g. ``"4 characters"``.
    """

    def __init__(self, *, source: str, tokenizer: str = "as reported") -> None:
        self.source = source
        self.tokenizer = tokenizer
        self.quality = Quality()
        self.sessions: list[SessionBuilder] = []
        self._names: Counter[str] = Counter()
        self._given: list[tuple[str, int, str]] = []  # what to undo to take names back
        self._finished: list[tuple[str, str]] = []
        self._rows = Rows()
        self._may_skip: frozenset[str] = frozenset()

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
        name = encodable(name)
        times = self._names[name]
        unique = unique_name(name, self._names)
        self._given.append((name, times, unique))
        opened = SessionBuilder(
            unique,
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
            self._finished.append((session.harness, session.name))
        self._recover(session, {})

    def finished(self, harness: str) -> frozenset[str]:
        """Names of the sessions of a harness that were taken in with `finish`."""
        return frozenset(name for by, name in self._finished if by == harness)

    def may_skip(self, sources: Iterable[str]) -> None:
        """Name sources whose sessions are skipped and counted, no error, where they break a rule.

        These are files that were found in a folder, among others.
        """
        self._may_skip = frozenset(sources)

    def mark(self) -> BuilderMark:
        """What has been taken in so far, for `take_back`."""
        return BuilderMark(
            len(self.sessions),
            len(self._given),
            len(self._finished),
            self._rows.counts(),
            deepcopy(self.quality),
        )

    def take_back(self, mark: BuilderMark) -> None:
        """Forget everything that came after `mark`: a file turned out to be broken."""
        del self.sessions[mark.sessions :]
        del self._finished[mark.finished :]
        while len(self._given) > mark.names:
            name, times, unique = self._given.pop()
            if unique != name:
                del self._names[unique]
            self._names[name] = times
        if self._rows.counts() != mark.rows:
            self._rows.truncate(mark.rows)
        self.quality.replace(mark.quality)

    @property
    def holds_requests(self) -> bool:
        """Whether any session has a request."""
        return any(session.requests for session in self.sessions) or bool(
            self._rows.counts()["requests"]
        )

    def build(self) -> Trace:
        """The trace, validated; raises `InputError` if no session has a request.

        Sessions are gone from the builder afterwards.
        """
        lengths = common_lengths(
            request for session in self.sessions for request in first_requests(session.requests)
        )
        waiting, self.sessions = self.sessions[::-1], []
        while waiting:
            self._recover(waiting.pop(), lengths)
        if not self._rows.counts()["sessions"]:
            raise InputError(nothing_remains(self.quality), path=self.source)
        tables = self._rows.tables()
        sources = pc.value_counts(tables["requests"]["usage_source"])
        self.quality.requests.update(
            {each["values"]: each["counts"] for each in sources.to_pylist()}
        )
        trace = Trace(
            **tables,
            source=self.source,
            tokenizer=self.tokenizer,
            quality=self.quality,
        )
        validate(trace, self.source)
        return trace

    def _recover(self, session: SessionBuilder, lengths: Mapping[PromptKey, int]) -> None:
        if not session.requests:
            self.quality.empty_sessions += 1
            return
        quality = Quality()
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
        self._rows.fold()
        self.quality.merge(quality)
        self.quality.orphan_subagents += session.orphan


@dataclass(frozen=True, slots=True)
class BuilderMark:
    """A state of a `TraceBuilder`: how many sessions, names and rows, and the counts."""

    sessions: int
    names: int
    finished: int
    rows: dict[str, int]
    quality: Quality


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

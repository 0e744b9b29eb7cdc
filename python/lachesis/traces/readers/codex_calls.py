"""Calls of a Codex rollout, from output items and usages in either order.

Since late in 2025 a response's usage follows its items (and comes before the results of its calls);
before, it was logged when the response had ended and the items after it, results among them.
"""

from __future__ import annotations

from lachesis.traces.readers.agent_log import AgentLog, Round
from lachesis.traces.readers.codex_rows import Usage
from lachesis.traces.schema import Status


class Calls:
    """Builds rounds from items and usages in either order.

    Usage that arrives while a call is open and has none is that call's. Otherwise it is kept for
    the call whose items follow; if that call then gets usage of its own, the kept one was of a
    call without visible items, which stands before it.
    """

    def __init__(self, log: AgentLog) -> None:
        self.log = log
        self.open: Round | None = None
        self.early: Usage | None = None
        self.early_s: float | None = None
        self.usage_came_first = False
        self.settled = False  # whether the open call has its usage
        self.model: str | None = None
        self.invisible = 0
        self.rewinds_before: Round | None = None
        self.rewinds = False

    def output(self, row: int, time_s: float | None) -> Round:
        """Return the call that an output item which arrives now belongs to."""
        log = self.log
        opened = self.open
        if opened is not None and (self.usage_came_first or not self.settled):
            # Before usage came last, results of parallel calls stood between the calls.
            follows_input = bool(log.pending) and not self.usage_came_first
            if not follows_input and self.early is None:
                self._stamp(opened, time_s)
                return opened
        opened = self._begin(row)
        self.usage_came_first = self.early is not None
        self.settled = self.early is not None
        if self.early is not None:
            _apply(opened, self.early)
            self.early = None
        self._stamp(opened, time_s)
        return opened

    def usage(self, usage: Usage, row: int, time_s: float | None) -> None:
        """Take the usage of one call."""
        opened = self.open
        if opened is not None and not self.settled:
            _apply(opened, usage)
            self.settled = True
        elif opened is not None and self.usage_came_first and not self.log.pending:
            hidden = Round(call=f"row {row}", row=row, inputs=opened.inputs, model=opened.model)
            hidden.input_tokens, hidden.output_tokens = opened.input_tokens, opened.output_tokens
            hidden.cached_tokens = opened.cached_tokens
            hidden.reported_reasoning_tokens = opened.reported_reasoning_tokens
            hidden.first_s = hidden.last_s = self.early_s
            opened.inputs = []
            self.log.rounds.insert(len(self.log.rounds) - 1, hidden)
            self.invisible += 1
            _apply(opened, usage)
            self.usage_came_first = False
        else:
            self.flush(row)
            self.early, self.early_s = usage, time_s

    def flush(self, row: int, *, compacts: bool = False) -> bool:
        """Make a call of usage that no item followed; whether there was any."""
        if self.early is None:
            return False
        hidden = self._begin(row)
        hidden.compacts = compacts
        _apply(hidden, self.early)
        hidden.first_s = hidden.last_s = self.early_s
        self.early = None
        self.settled = True
        self.usage_came_first = False
        if not compacts:
            self.invisible += 1
        return True

    def end(self) -> None:
        """Nothing more belongs to the open call."""
        self.open = None
        self.settled = self.usage_came_first = False

    def abort(self) -> None:
        """The turn was aborted: a call that had no usage yet was cut off."""
        if self.open is not None and not self.settled:
            self.open.status = Status.ABORTED
        self.end()

    def _begin(self, row: int) -> Round:
        logged = Round(call=f"row {row}", row=row, inputs=[], model=self.model)
        if self.rewinds:
            logged.rewinds, logged.extends = True, self.rewinds_before
            self.rewinds = False
        self.log.begin(logged)
        self.open = logged
        return logged

    @staticmethod
    def _stamp(logged: Round, time_s: float | None) -> None:
        if time_s is not None:
            logged.first_s = time_s if logged.first_s is None else logged.first_s
            logged.last_s = time_s


def _apply(logged: Round, usage: Usage) -> None:
    logged.input_tokens = usage.input_tokens
    logged.cached_tokens = usage.cached_input_tokens
    logged.output_tokens = usage.output_tokens
    logged.reported_reasoning_tokens = usage.reasoning_output_tokens
    logged.stopped = True

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
    >>> trace.spans.select(["request", "segment", "tokens", "written"]).to_pylist()[2:]  # doctest: +NORMALIZE_WHITESPACE
    [{'request': 1, 'segment': 0, 'tokens': 60, 'written': False},
     {'request': 1, 'segment': 1, 'tokens': 60, 'written': False},
     {'request': 1, 'segment': 1, 'tokens': 30, 'written': True}]
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Literal

from lachesis.traces.logged import Edge, LoggedRequest, LoggedSpawn, Part
from lachesis.traces.schema import Role, Status, UsageSource

if TYPE_CHECKING:
    from lachesis.traces.trace import Trace

Stripping = Literal["auto", "turn", "round", "off"]
LEAD = 0


class SessionBuilder:
    """One session as the log tells it. Made by `TraceBuilder.session`."""

    def __init__(
        self,
        name: str,
        *,
        workload: str,
        harness: str,
        source: str,
        starts_midway: bool,
        ends_open: bool,
        stripping: Stripping,
        recorded_delays: bool,
        orphan: bool,
    ) -> None:
        self.name = name
        self.workload = workload
        self.harness = harness
        self.source = source
        self.starts_midway = starts_midway
        self.ends_open = ends_open
        self.stripping = stripping
        self.recorded_delays = recorded_delays
        self.orphan = orphan
        self.requests: list[LoggedRequest] = []
        self.spawns: dict[Hashable, LoggedSpawn] = {}

    def request(
        self,
        *,
        agent: Hashable = LEAD,
        opens_turn: bool = False,
        parts: Sequence[Part] | None = None,
        input_tokens: int | None = None,
        appended_tokens: int | None = None,
        carried_tokens: int | None = None,
        prompt_tokens: int | None = None,
        prefix_key: str | None = None,
        output_tokens: int,
        reasoning_tokens: int = 0,
        output_parts: Sequence[Part] | None = None,
        observations: int = 0,
        tools: Sequence[str] | None = None,
        status: Status = Status.OK,
        model: str | None = None,
        start_s: float | None = None,
        end_s: float | None = None,
        reported_cached_tokens: int | None = None,
        usage_source: UsageSource = UsageSource.REPORTED,
        after: Sequence[Edge] = (),
        delay_s: float | None = None,
        compacts: bool = False,
        rewinds: bool = False,
        row: int | str | None = None,
    ) -> int:
        """Push one provider call; returns its handle (for edges, spawns and returns).

        Args:
            agent: 0 (`LEAD`) or any key of a sub-agent that `spawn` has named.
            opens_turn: human text was delivered as a new prompt. The lead's first request opens
                turn 0 anyway; sub-agents carry the turn of their spawn.
            parts: the whole input in context order, where the log has the text.
            input_tokens: the whole input, cached tokens included. With `parts` it overrides the
                sum of their counts; without, it is needed.
            appended_tokens: of the input, what is new since the agent's previous request and not
                that request's output (user text, tool results), where known.
            carried_tokens: at a turn's start under turn-end stripping: what the previous turn
                carries forward, where known.
            prompt_tokens: system prompt and tool schemas, on an agent's first request, where
                known.
            prefix_key: names that prompt; equal keys (and models and token counts) share one copy.
            output_tokens: everything generated, reasoning included.
            reasoning_tokens: of these, reasoning.
            output_parts: the output, where the log has the text; reasoning parts included.
            observations: tool results that are new in this input.
            tools: classes (`ToolClass`) called by the output; None where the log does not say.
            reported_cached_tokens: the provider's own cache hit; kept, and used for nothing but
                the length of a prompt that the log omits.
            after: edges beyond those that are found by themselves (the agent's previous request;
                spawn and return).
            delay_s: of the edge to the agent's previous request. None: taken from the recorded
                times if the session has `recorded_delays`, else 0 where the output before called
                nothing but spawns, else drawn at replay.
            compacts: this request is a compaction of its agent's context: its output becomes the
                summary with which the next request starts.
            rewinds: the user rewound or edited before this request, in a log without text: what
                does not fit in the input was discarded, whatever the stripping rule would say.
            row: where in the source it stands, for messages.
        """
        self.requests.append(
            LoggedRequest(
                agent, opens_turn, parts, input_tokens, appended_tokens, carried_tokens,
                prompt_tokens, prefix_key, output_tokens, reasoning_tokens, output_parts,
                observations, tools, status, model, start_s, end_s, reported_cached_tokens,
                usage_source, after, delay_s, compacts, rewinds, row,
            )
        )  # fmt: skip
        return len(self.requests) - 1

    def spawn(
        self,
        agent: Hashable,
        *,
        spawned_by: int,
        role: Role = Role.WORKER,
        agent_type: str | None = None,
        instruction: str | None = None,
        context: str | None = None,
        instruction_tokens: int | None = None,
        context_tokens: int | None = None,
        tools: Sequence[str] = (),
        model: str | None = None,
    ) -> None:
        """Name a sub-agent and the request (a handle) whose output spawned it.

        The parent is that request's agent, so nested sub-agents need nothing more. May be called
        before or after the sub-agent's own requests are pushed. `tools` are tool names as the
        sub-agent's record has them (a feature of the predictor), not classes.
        """
        raise NotImplementedError

    def resume(self, agent: Hashable, *, resumed_by: int) -> None:
        """The next request that is pushed for `agent` waits for `resumed_by`, a request of its parent."""
        raise NotImplementedError

    def returns(self, agent: Hashable, *, to: int) -> None:
        """The last request pushed so far for `agent` gives its result to request `to` of its parent.

        Never called for a sub-agent whose result nobody takes. A background sub-agent may return
        to a request of a later turn. A resumed one returns several times.
        """
        raise NotImplementedError

    def compacted(self, agent: Hashable = LEAD, *, summary_tokens: int | None = None) -> None:
        """The context of `agent` was compacted after its last pushed request, by a call that the log lacks."""
        raise NotImplementedError

    def exclude(self, reason: str, count: int = 1) -> None:
        """Count calls that are no requests (greetings, synthetic rows, copied steps, warm-ups)."""
        raise NotImplementedError


class TraceBuilder:
    """Collects sessions and builds the trace.

    Args:
        source: where the data come from (file or folder name), for trace.json and messages.
        tokenizer: how tokens were counted where the log does not say, e.g. ``"4 characters"``.
    """

    def __init__(self, *, source: str, tokenizer: str = "as reported") -> None:
        self.source = source
        self.tokenizer = tokenizer
        self.sessions: list[SessionBuilder] = []

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
        `orphan`: a sub-agent without a lead, a session of its own; counted.
        A session without requests is skipped and counted.
        """
        raise NotImplementedError

    def drop(self, reason: str, count: int = 1) -> None:
        """Count rows of the source that were dropped."""
        raise NotImplementedError

    def exclude(self, reason: str, count: int = 1) -> None:
        """Count calls that are no requests, outside any session."""
        raise NotImplementedError

    def fill(self, field: str, how: str, count: int = 1) -> None:
        """Count values that the log lacks and that were filled in, and how."""
        raise NotImplementedError

    def skip(self, path: str, reason: str) -> None:
        """Record a file that was skipped."""
        raise NotImplementedError

    def build(self) -> Trace:
        """The trace; raises `InputError` if no session has a request."""
        raise NotImplementedError

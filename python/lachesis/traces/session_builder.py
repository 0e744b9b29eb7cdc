"""One session as a log tells it: requests, spawns, resumptions and returns, pushed by a reader."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from lachesis.errors import InputError
from lachesis.traces.logged import LEAD, Edge, LoggedRequest, LoggedSpawn, Part, Stripping
from lachesis.traces.quality import Quality
from lachesis.traces.schema import EdgeKind, Role, Status, UsageSource


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
        quality: Quality,
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
        self._latest: dict[Hashable, int] = {}
        self._compacted: dict[Hashable, int | None] = {}
        self._resumed: dict[Hashable, list[int]] = {}
        self._quality = quality

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
        rewinds_to: int | None = None,
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
            status: aborted and failed requests keep what they wrote.
            model: a change of it between requests of an agent makes its KV useless.
            start_s: when the request came in, in seconds (since the epoch, where known).
            end_s: when its last token came out, on the same clock.
            usage_source: where the counts come from.
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
            rewinds_to: in a log without text, the user rewound or edited: of the agent's context
                only what stood there when this earlier request (a handle; -1: none of them) had
                ended is still there.
            row: where in the source it stands, for messages.
        """
        for edge in after:
            self._check_handle(edge.request, "after")
        if rewinds_to is not None and rewinds_to != -1:
            self._check_handle(rewinds_to, "rewinds_to")
        logged = LoggedRequest(
            agent, opens_turn, parts, input_tokens, appended_tokens, carried_tokens,
            prompt_tokens, prefix_key, output_tokens, reasoning_tokens, output_parts,
            observations, tools, status, model, start_s, end_s, reported_cached_tokens,
            usage_source, after, delay_s, compacts, rewinds_to, row,
        )  # fmt: skip
        if agent in self._compacted:
            logged.after_compaction = True
            logged.summary_tokens = self._compacted.pop(agent)
        if agent in self._resumed:
            for resumed_by in self._resumed.pop(agent):
                logged.extra_edges += (Edge(resumed_by, EdgeKind.SPAWN),)
        if compacts:
            self._compacted[agent] = max(0, output_tokens - reasoning_tokens)
        handle = len(self.requests)
        self.requests.append(logged)
        self._latest[agent] = handle
        return handle

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
        self._check_handle(spawned_by, "spawned_by")
        if agent == LEAD or agent in self.spawns:
            raise InputError(
                f"session {self.name}: an agent is spawned once, and the lead never",
                path=self.source,
                row=self.requests[spawned_by].row,
                field="agent",
                value=agent,
            )
        self.spawns[agent] = LoggedSpawn(
            agent=agent,
            role=role,
            agent_type=agent_type,
            parent=self.requests[spawned_by].agent,
            spawned_by=spawned_by,
            instruction=None if instruction is None else encodable(instruction),
            context=None if context is None else encodable(context),
            instruction_tokens=instruction_tokens,
            context_tokens=context_tokens,
            tools=tools,
            model=model,
            triggers=[spawned_by],
        )

    def resume(self, agent: Hashable, *, resumed_by: int) -> None:
        """The next request pushed for `agent` waits for `resumed_by`, a request of its parent."""
        self._check_handle(resumed_by, "resumed_by")
        self._spawn_of(agent).triggers.append(resumed_by)
        self._resumed.setdefault(agent, []).append(resumed_by)

    def returns(self, agent: Hashable, *, to: int) -> None:
        """The last request pushed so far for `agent` gives its result to request `to`.

        `to` is a request of the parent. Never called for a sub-agent whose result nobody takes. A
        background sub-agent may return to a request of a later turn, a resumed one several times.
        """
        self._check_handle(to, "to")
        spawn = self._spawn_of(agent)
        latest = self._latest.get(agent)
        if latest is None:
            raise InputError(
                f"session {self.name}: it returns before its first request",
                path=self.source,
                field="agent",
                value=agent,
            )
        if to not in spawn.returns:
            spawn.returns.append(to)
        self.requests[to].extra_edges += (Edge(latest, EdgeKind.RETURN),)

    def compacted(self, agent: Hashable = LEAD, *, summary_tokens: int | None = None) -> None:
        """The context of `agent` was compacted after its last pushed request.

        For logs that lack the compaction call itself, or tell the summary's length (which then
        wins over the call's output).
        """
        self._compacted[agent] = summary_tokens

    def exclude(self, reason: str, count: int = 1) -> None:
        """Count calls that are no requests (greetings, synthetic rows, copied steps, warm-ups)."""
        self._quality.excluded[reason] += count

    def forget_quality(self) -> None:
        """Let go of the counts that it shares with its builder, before it is written to disk."""
        self._quality = Quality()

    def count_in(self, quality: Quality) -> None:
        """Count in `quality` from here on."""
        self._quality = quality

    def _check_handle(self, handle: int, field: str) -> None:
        if not 0 <= handle < len(self.requests):
            raise InputError(
                f"session {self.name}: must be a request that was pushed before",
                path=self.source,
                field=field,
                value=handle,
            )

    def _spawn_of(self, agent: Hashable) -> LoggedSpawn:
        if agent not in self.spawns:
            raise InputError(
                f"session {self.name}: no spawn names this agent",
                path=self.source,
                field="agent",
                value=agent,
            )
        return self.spawns[agent]


def encodable(text: str) -> str:
    """`text` with half surrogate pairs, which no file can hold, replaced by question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")

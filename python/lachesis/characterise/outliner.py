"""Makes the tree of a session: where its context was thrown away, and why.

An agent's context is what its latest request held, input and output. At its next request some of
that is missing: it was thrown away in between, and the boundary that closed the missing segments
says why. What the request writes beyond the part that still matched is new text and whatever had
to be written anew; a log cannot always tell the two apart, so both are given as one number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from lachesis.characterise.outline import (
    AgentOutline,
    Rewrite,
    Run,
    SegmentTokens,
    SessionOutline,
)
from lachesis.errors import InputError
from lachesis.traces.schema import Boundary, Status
from lachesis.traces.trace import Trace

#: Resets that drop less than this share of the session's largest context do not split a run.
SMALL_RESET_SHARE = 0.02


def outline(trace: Trace, session: str) -> SessionOutline:
    """The outline of one session.

    Raises:
        InputError: there is no such session.

    Example:
        >>> from lachesis.traces import TraceBuilder
        >>> builder = TraceBuilder(source="one")
        >>> opened = builder.session("a", workload="w", harness="h", stripping="off")
        >>> _ = opened.request(input_tokens=50, output_tokens=10, compacts=True)
        >>> _ = opened.request(input_tokens=30, output_tokens=5)
        >>> found = outline(builder.build(), "a")
        >>> [(each.why, each.dropped_tokens) for each in found.rewrites()]
        [('compaction', 60), ('session_end', 35)]
    """
    return _Outliner(trace.select([session])).outline()


class _Outliner:
    """Walks one session's requests in order."""

    def __init__(self, trace: Trace) -> None:
        self.session: dict[str, Any] = trace.sessions.to_pylist()[0]
        self.requests: list[dict[str, Any]] = trace.requests.to_pylist()
        self.segments = {row["segment"]: row for row in trace.segments.to_pylist()}
        self.spawns = {row["agent"]: row for row in trace.spawns.to_pylist()}
        self.spans: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in trace.spans.to_pylist():
            self.spans[row["request"]].append(row)
        self.peak_tokens = max(
            self._input(row["request"]) + row["output_tokens"] for row in self.requests
        )
        self.contexts: dict[int, dict[int, int]] = {}
        self.latest: dict[int, dict[str, Any]] = {}
        self.agents: dict[int, AgentOutline] = {}
        self.runs: dict[int, Run | None] = {}
        self.roots: list[AgentOutline] = []

    def outline(self) -> SessionOutline:
        for row in self.requests:
            self._step(row)
        for agent in self.agents.values():
            self._end(agent)
        written = sum(row["tokens"] for spans in self.spans.values() for row in _written(spans))
        output = sum(row["output_tokens"] for row in self.requests)
        starts = [row["start_s"] for row in self.requests if row["start_s"] is not None]
        ends = [row["end_s"] for row in self.requests if row["end_s"] is not None]
        return SessionOutline(
            session=self.session["session"],
            workload=self.session["workload"],
            harness=self.session["harness"],
            models=list(dict.fromkeys(row["model"] for row in self.requests if row["model"])),
            turns=len({row["turn"] for row in self.requests}),
            agent_count=len(self.agents),
            requests=len(self.requests),
            written_tokens=written + output,
            output_tokens=output,
            read_tokens=sum(self._input(row["request"]) for row in self.requests) - written,
            peak_tokens=self.peak_tokens,
            duration_s=max(ends) - min(starts) if starts and ends else None,
            starts_midway=self.session["starts_midway"],
            ends_open=self.session["ends_open"],
            agents=self.roots,
        )

    def _step(self, row: dict[str, Any]) -> None:
        number = row["agent"]
        agent = self.agents.get(number) or self._new_agent(number)
        rewrites = self._rewrites(row)
        run = self.runs[number]
        small = all(self._is_small(each) for each in rewrites)
        returns = any(edge["kind"] == "return" for edge in row["after"])
        if run is None or run.turn != row["turn"] or not small or returns:
            agent.items += [each for each in rewrites if not self._is_small(each)]
            run = Run(number, row["turn"])
            agent.items.append(run)
            self.runs[number] = run
        run.absorbed += [each for each in rewrites if self._is_small(each)]
        self._grow(run, row)

    def _grow(self, run: Run, row: dict[str, Any]) -> None:
        held: dict[int, int] = defaultdict(int)
        for span in self.spans[row["request"]]:
            held[span["segment"]] += span["tokens"]
            if span["written"]:
                run.written_tokens += span["tokens"]
                run.segments[span["segment"]] = self.segments[span["segment"]]["class"]
        if row["output_tokens"]:
            held[row["segment"]] += row["output_tokens"]
            run.segments[row["segment"]] = self.segments[row["segment"]]["class"]
        run.requests.append(row["request"])
        run.output_tokens += row["output_tokens"]
        run.reasoning_tokens += row["reasoning_tokens"]
        run.tools.update(row["tools"])
        run.failed += row["status"] != Status.OK
        run.context_tokens = sum(held.values())
        run.peak_tokens = max(run.peak_tokens, run.context_tokens)
        self.contexts[row["agent"]] = held
        self.latest[row["agent"]] = row

    def _rewrites(self, row: dict[str, Any]) -> list[Rewrite]:
        """What the agent's context has lost since its previous request, by boundary."""
        before = self.contexts.get(row["agent"], {})
        spans = self.spans[row["request"]]
        kept: dict[int, int] = defaultdict(int)
        for span in spans:
            if not span["written"]:
                kept[span["segment"]] += span["tokens"]
        lost = {
            segment: tokens - kept.get(segment, 0)
            for segment, tokens in before.items()
            if tokens > kept.get(segment, 0)
        }
        previous = self.latest.get(row["agent"])
        switched = previous is not None and previous["model"] != row["model"]
        written: dict[int, int] = defaultdict(int)
        for span in _written(spans):
            written[span["segment"]] += span["tokens"]
        return self._by_boundary(row, lost, sum(before.values()), written, switched=switched)

    def _end(self, agent: AgentOutline) -> None:
        """What goes with an agent when it has made its last request."""
        context = {
            segment: tokens
            for segment, tokens in self.contexts[agent.agent].items()
            # A lead's context goes with the session; a prompt is not a sub-agent's to throw away.
            if agent.role == "lead"
            or self.segments[segment]["closed_by"] != str(Boundary.SESSION_END)
        }
        before = sum(self.contexts[agent.agent].values())
        agent.end = self._by_boundary(self.latest[agent.agent], context, before, {}, switched=False)

    def _by_boundary(
        self,
        row: dict[str, Any],
        lost: Mapping[int, int],
        before: int,
        written: Mapping[int, int],
        *,
        switched: bool,
    ) -> list[Rewrite]:
        by_boundary: dict[str, dict[int, int]] = defaultdict(dict)
        for segment, tokens in lost.items():
            by_boundary[self.segments[segment]["closed_by"]][segment] = tokens
        dropped = {why: sum(segments.values()) for why, segments in by_boundary.items()}
        largest_first = sorted(dropped, key=lambda why: (-dropped[why], why))
        return [
            Rewrite(
                why=why,
                request=row["request"],
                turn=row["turn"],
                agent=row["agent"],
                before_tokens=before,
                dropped_tokens=dropped[why],
                kept_tokens=before - sum(lost.values()),
                dropped_segments=self._named(by_boundary[why]),
                written_segments=() if place else self._named(written),
                model_switch=switched,
            )
            for place, why in enumerate(largest_first)
        ]

    def _named(self, tokens: Mapping[int, int]) -> tuple[SegmentTokens, ...]:
        return tuple(
            SegmentTokens(segment, self.segments[segment]["class"], count)
            for segment, count in sorted(tokens.items())
        )

    def _is_small(self, rewrite: Rewrite) -> bool:
        return rewrite.why == str(Boundary.REQUEST_END) or (
            rewrite.why == str(Boundary.RESET)
            and rewrite.dropped_tokens < SMALL_RESET_SHARE * self.peak_tokens
        )

    def _new_agent(self, number: int) -> AgentOutline:
        spawn = self.spawns.get(number)
        agent = AgentOutline(
            agent=number,
            role="lead" if spawn is None else spawn["role"],
            agent_type=None if spawn is None else spawn["agent_type"],
            spawned_by=None if spawn is None else spawn["spawned_by"],
            return_requests=[] if spawn is None else spawn["return_requests"],
        )
        self.agents[number] = agent
        self.runs[number] = None
        if spawn is None:
            self.roots.append(agent)
        else:
            parent = self.agents[spawn["parent"]]
            parent.items.append(agent)
            # What the parent does from here on comes after the sub-agent's start.
            self.runs[spawn["parent"]] = None
        return agent

    def _input(self, request: int) -> int:
        return sum(span["tokens"] for span in self.spans[request])


def _written(spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [span for span in spans if span["written"]]


def find_session(trace: Trace, wanted: str) -> str:
    """The name of the session that `wanted` names: in full, or by a beginning that only it has.

    Raises:
        InputError: none does, or several do.

    Example:
        >>> from lachesis.traces import open_trace
        >>> find_session(open_trace("tau3-airline"), "tau3-airline-0003")
        'tau3-airline-0003'
    """
    names: list[str] = trace.sessions["session"].to_pylist()
    if wanted in names:
        return wanted
    found = [name for name in names if name.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        more = ", …" if len(found) > 3 else ""
        rule = f"begins {len(found):,} sessions ({', '.join(found[:3])}{more}); write more of it"
    else:
        rule = "no such session; without a session, trace show lists them"
    raise InputError(rule, path=trace.source, field="SESSION", value=wanted)

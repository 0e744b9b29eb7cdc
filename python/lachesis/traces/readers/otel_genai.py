"""Reader of OpenTelemetry GenAI spans: JSON documents or JSONL, plain or OTLP.

**Requests** are spans of a provider call (`gen_ai.operation.name` chat, text_completion or
generate_content; without that attribute, spans with messages or usage). A failed call keeps its
input (status `error`); a retry is one more request. Other spans (agents, tools, embeddings) are
counted as ignored; a span that stands there twice is dropped.

**Sessions**: `gen_ai.conversation.id`, `session.id` or a known exporter's name for it, else the
trace; local to a file. **Agents**: `gen_ai.agent.id` or `.name` of the span or of a span above it,
else the service, if there are several in the session, else the system prompt. Requests of one agent
that overlap or have no text in common are contexts apart (`text_contexts`). The first request's is
the lead; its requests spawn the others and take their results as the times allow (`timed_agents`).

**Turns** are opened by inputs of the lead that end with a user message.

**Tokens** are the reported usage (`input_tokens` include cached ones; where the reported hit is
larger than them, it is added, and the request counts as recounted). Without usage both counts come
from the text, flagged inferred. Whether reasoning is stripped is recognised from the text.
"""

from __future__ import annotations

import pickle
import sys
from array import array
from collections.abc import Hashable, Sequence
from typing import Any, Final

from lachesis.errors import InputError
from lachesis.traces.builder import TraceBuilder
from lachesis.traces.logged import LEAD, Part, PartKind, content_key
from lachesis.traces.readers.agent_roles import role_of
from lachesis.traces.readers.json_head import begins_with
from lachesis.traces.readers.otel_messages import SpanText
from lachesis.traces.readers.otel_spans import Span, spans_of
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.readers.text_contexts import TextRequest, contexts_of
from lachesis.traces.readers.timed_agents import TimedAgent, TimedRequest, push_timed
from lachesis.traces.record_groups import NameNumbers, RecordGroups
from lachesis.traces.schema import TOKENS_MAX, Status, UsageSource
from lachesis.traces.session_builder import SessionBuilder
from lachesis.traces.tool_classes import tool_class

_DESCRIPTION: Final = __doc__ or ""
_REQUESTS: Final = frozenset({"chat", "text_completion", "generate_content", "completion"})
_OTHERS: Final = frozenset({"embeddings", "execute_tool", "create_agent", "invoke_agent"})
_SESSION: Final = (
    "gen_ai.conversation.id",
    "session.id",
    "exgentic.session.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
)
_INPUT: Final = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_OUTPUT: Final = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
_CACHED: Final = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.cached_tokens",
)
_REASONING: Final = ("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens")


class OtelReader:
    """OpenTelemetry GenAI spans."""

    name = "otel-genai"
    joins_files = False
    description = _DESCRIPTION

    def recognises(self, file: SourceFile) -> bool:
        """JSON whose head has a GenAI attribute, and a span's or a trace's id."""
        if not (begins_with(file, b"{") or begins_with(file, b"[")):
            return False
        ids = (b'"span_id"', b'"spanId"', b'"trace_id"', b'"traceId"')
        return b'"gen_ai.' in file.head and any(each in file.head for each in ids)

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push every session of every file."""
        for file in files:
            _File(file, builder, options).push()


READER = OtelReader()
_UNKNOWN: Final = -2  # above a span that was named, and not read (yet)


class _Call:
    """A span that is a request."""

    def __init__(self, span: Span, text: SpanText, file: SourceFile) -> None:
        self.span = span
        self.agent: str | None = None
        self.parts = text.input_parts(span)
        output = text.output_parts(span)
        self.output_parts = None if output is None else output[0]
        self.called = None if output is None else output[1]
        self.cached = _count(span, file, _CACHED)
        self.source = UsageSource.REPORTED
        inputs = _count(span, file, _INPUT)
        if inputs is not None and self.cached is not None and self.cached > inputs:
            inputs += self.cached
            self.source = UsageSource.RECOUNTED
        if inputs is None:
            self.source = UsageSource.INFERRED
            inputs = _total(self.parts or ())
        outputs = _count(span, file, _OUTPUT)
        if outputs is None:
            self.source = UsageSource.INFERRED
            outputs = _total(self.output_parts or ())
        # What the parts add up to is the builder's to count.
        self.input_tokens = None if self.parts and inputs == _total(self.parts) else inputs
        self.output_tokens = outputs
        reasoning = _count(span, file, _REASONING)
        if reasoning is None:
            kinds = self.output_parts or ()
            reasoning = sum(part.tokens for part in kinds if part.kind is PartKind.REASONING)
        self.reasoning_tokens = min(reasoning, outputs)
        # All text is in the parts now.
        span.attributes = {
            name: value for name, value in span.attributes.items() if not _is_text(name)
        }

    def system_key(self) -> str | None:
        """Names the system prompt, if the text has one."""
        keys = [part.key for part in self.parts or () if part.kind is PartKind.SYSTEM]
        return f"prompt-{content_key(repr(keys)):016x}" if keys else None


def _total(parts: Sequence[Part]) -> int:
    return sum(part.tokens for part in parts)


def _count(span: Span, file: SourceFile, names: Sequence[str]) -> int | None:
    for name in names:
        value: Any = span.attributes.get(name)
        if value is None:
            continue
        if isinstance(value, str) and value.strip().isdigit():
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= TOKENS_MAX:
            raise InputError(f"must be a whole number from 0 to {TOKENS_MAX}", path=file.name,
                             row=span.row, field=name, value=value)  # fmt: skip
        return value
    return None


class _File:
    def __init__(self, file: SourceFile, builder: TraceBuilder, options: ReadOptions) -> None:
        self.file = file
        self.builder = builder
        self.text = SpanText(options.count_tokens, file.name)
        self.scratch = options.scratch
        # Of each span, by number: the span above it (-1: none) and its agent's name.
        self.numbers = NameNumbers()
        self.above = array("q")
        self.agents: list[str | None] = []

    def push(self) -> None:
        """Read all spans and push the sessions."""
        names = NameNumbers()
        sessions = RecordGroups(self.scratch)
        dropped: list[str] = []
        for span in spans_of(self.file, dropped):
            if not self._note(span):
                self.builder.drop("span that stands there twice")
                continue
            if not self._is_request(span):
                continue
            call = _Call(span, self.text, self.file)
            if not call.output_tokens and not span.failed:
                self.builder.exclude("request without output")
                continue
            name = span.text(*_SESSION) or span.trace or self.file.name
            sessions.append(names.of(name), pickle.dumps((name, call)))
        for reason in dropped:
            self.builder.drop(reason)
        if not len(names):
            self.builder.skip(self.file.name, "holds no request")
        for _, records in sessions:
            named = [pickle.loads(record) for record in records]
            self._push_session(named[0][0], [call for _, call in named])

    def _note(self, span: Span) -> bool:
        """Note what is above a span; whether it stands there for the first time."""
        number = self._number(span.trace, span.id)
        if self.above[number] != _UNKNOWN:
            return False
        self.above[number] = -1 if span.parent is None else self._number(span.trace, span.parent)
        agent = span.text("gen_ai.agent.id", "gen_ai.agent.name")
        self.agents[number] = None if agent is None else sys.intern(agent)
        return True

    def _number(self, trace: str, span: str) -> int:
        number = self.numbers.of(f"{trace}\0{span}")
        if number == len(self.above):
            self.above.append(_UNKNOWN)
            self.agents.append(None)
        return number

    def _is_request(self, span: Span) -> bool:
        operation = span.text("gen_ai.operation.name")
        if operation in _REQUESTS:
            return True
        names = (*_INPUT, *_OUTPUT, "gen_ai.input.messages", "gen_ai.prompt.0.content")
        if operation not in _OTHERS and any(name in span.attributes for name in names):
            return True
        self.builder.ignore(f"span of operation {operation or 'unknown'}")
        return False

    def _agent(self, span: Span) -> str | None:
        number = self._number(span.trace, span.id)
        seen: set[int] = set()
        while number >= 0 and self.above[number] != _UNKNOWN and number not in seen:
            seen.add(number)
            if self.agents[number] is not None:
                return self.agents[number]
            number = self.above[number]
        return None

    def _push_session(self, name: str, calls: list[_Call]) -> None:
        calls.sort(key=lambda call: call.span.start_s)
        for call in calls:
            call.agent = self._agent(call.span)
        agents = self._agents(calls)
        requests = [
            TextRequest(
                agent, call.span.start_s, call.span.end_s, call.parts, call.output_parts or ()
            )
            for call, agent in zip(calls, agents, strict=True)
        ]
        contexts = contexts_of(requests)
        timed: list[TimedRequest] = []
        known: dict[Hashable, TimedAgent] = {}
        for call, agent, (key, held) in zip(calls, agents, contexts, strict=True):
            if key != LEAD and key not in known:
                known[key] = TimedAgent(record=self._record(call, agent))
            timed.append(
                TimedRequest(key, call.span.start_s, call.span.end_s, self._arguments(call, held))
            )

        def open_session(orphan: Hashable | None) -> SessionBuilder:
            last = calls[-1]
            return self.builder.session(
                name if orphan is None else f"{name}/{orphan}",
                workload=self.file.workload,
                harness="opentelemetry",
                source=self.file.name,
                ends_open=orphan is None and bool(last.called),
                orphan=orphan is not None,
            )

        for session in push_timed(open_session, timed, known):
            self.builder.complete(session)

    def _agents(self, calls: Sequence[_Call]) -> list[str | None]:
        """A name for each call's agent: the log's, else the service, else the system prompt."""
        services = [call.span.resource.get("service.name") for call in calls]
        if any(call.agent is not None for call in calls):
            return [call.agent for call in calls]
        if len({repr(service) for service in services}) > 1:
            return [service if isinstance(service, str) else None for service in services]
        return [call.system_key() for call in calls]

    def _record(self, call: _Call, agent: str | None) -> dict[str, Any]:
        named = agent if agent is not None and not agent.startswith("prompt-") else None
        return {
            "role": role_of(named),
            "agent_type": named,
            "model": call.span.text("gen_ai.request.model"),
            "instruction_tokens": _instruction_tokens(call.parts),
        }

    def _arguments(self, call: _Call, held: int) -> dict[str, Any]:
        if call.source is UsageSource.RECOUNTED:
            self.builder.fill("input_tokens", "reported without the cached ones, which are added")
        parts = call.parts
        return {
            # A retry brings nothing new.
            "opens_turn": parts is not None
            and held < len(parts)
            and parts[-1].kind is PartKind.USER,
            "parts": parts,
            "input_tokens": call.input_tokens,
            "output_tokens": call.output_tokens,
            "output_parts": call.output_parts,
            "reasoning_tokens": call.reasoning_tokens,
            "observations": sum(part.kind is PartKind.OBSERVATION for part in (parts or ())[held:]),
            "tools": None if call.called is None else [tool_class(each) for each in call.called],
            "status": Status.ERROR if call.span.failed else Status.OK,
            "model": call.span.text("gen_ai.request.model", "gen_ai.response.model"),
            "reported_cached_tokens": call.cached,
            "usage_source": call.source,
            "row": call.span.row,
        }


def _instruction_tokens(parts: Sequence[Part] | None) -> int | None:
    if parts is None:
        return None
    return sum(part.tokens for part in parts if part.kind is not PartKind.SYSTEM)


def _is_text(name: str) -> bool:
    return name.startswith(("gen_ai.input", "gen_ai.output", "gen_ai.prompt", "gen_ai.completion",
                            "gen_ai.system_instructions", "gen_ai.tool"))  # fmt: skip

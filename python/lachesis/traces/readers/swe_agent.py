"""Reader of SWE-agent trajectories (`.traj`) and mini-SWE-agent ones (`.traj.json`).

**Files.** `.traj`: an object with `trajectory` (the steps), `history` (the messages) and `info`.
mini: a list of messages, or an object with `messages` and `info`. A document is a session of one
turn.

**Requests.** `.traj`: one for each step, whose `response` is the output. Where a step has its
`query` (the messages that were sent), that is its input; otherwise the input is what `history` has
before the first answer, and the responses and observations of all steps before. mini: one for each
message of the assistant; its input is all messages before.

**Tokens.** The formats have no usage per call, except newer mini ones (`extra.response.usage`,
taken as reported). All else is counted from the text and flagged inferred. Where
`info.model_stats` has totals (often 0) and counts as many calls as there are steps, outputs are
scaled to `tokens_received`, and what is not output in the inputs so that they sum to
`tokens_sent`: flagged recounted. Totals that cover other calls as well are left alone (counted).

**Prompt.** The system message, and demonstrations that follow it.

**Tools.** Every step runs a command: class `environment`. `execution_time` of a step is the
recorded delay before the next request; where it is missing the delay is drawn. There are no other
times.

**Left out**, each counted: steps without a response, messages of other agents than the main one
(old versions' sub-routines), and mini's `exit` messages. A session that did not submit ends open.
**Not in the log:** tool schemas.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import msgspec

from lachesis.traces.builder import TraceBuilder
from lachesis.traces.context import scaled
from lachesis.traces.logged import Part, PartKind, content_key
from lachesis.traces.readers.chat_completion import (
    Completion,
    CompletionUsage,
    FunctionCall,
    content_texts,
)
from lachesis.traces.readers.json_rows import decoded_document
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.schema import TOKENS_MAX, ToolClass, UsageSource

HARNESS: Final = "swe-agent"
MINI_HARNESS: Final = "mini-swe-agent"
_STEPS: Final = re.compile(rb'"trajectory"\s*:\s*\[')
_STEP_KEYS: Final = (b'"action"', b'"observation"', b'"response"')
_MINI_SIGN: Final = re.compile(
    rb"mswea_bash_command|exactly ONE bash code block|COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
    rb"|MINI_SWE_AGENT_FINAL_OUTPUT|\"trajectory_format\"\s*:\s*\"mini-swe-agent"
)
_MESSAGE_SIGN: Final = re.compile(rb'"role"\s*:\s*"(?:system|user)"')
_SUBMITTED: Final = ("submitted", "Submitted")
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Tokens = Annotated[int, msgspec.Meta(ge=0, le=TOKENS_MAX)]


class Extra(msgspec.Struct):
    """What newer mini versions keep of a response."""

    response: Completion | None = None


class Message(msgspec.Struct):
    """A message of the history, of a query, or of a mini trajectory."""

    role: str
    content: Any = None
    agent: str | None = None
    is_demo: bool | None = None
    tool_calls: list[FunctionCall] | None = None
    extra: Extra | None = None

    @property
    def text(self) -> str:
        """Its text, calls included."""
        calls = [call.text for call in self.tool_calls or ()]
        return "\n".join([*content_texts(self.content), *calls])


class Step(msgspec.Struct):
    """One step of a trajectory."""

    response: str | None = None
    observation: Any = None
    action: str | None = None
    execution_time: Seconds | None = None
    query: list[Message] | None = None


class ModelStats(msgspec.Struct):
    """Totals of a session."""

    tokens_sent: Tokens = 0
    tokens_received: Tokens = 0
    api_calls: Tokens = 0


class Info(msgspec.Struct):
    """How the session went."""

    model_stats: ModelStats | None = None
    exit_status: str | None = None


class Trajectory(msgspec.Struct):
    """A `.traj`, or a newer mini document."""

    trajectory: list[Step] | None = None
    history: list[Message] | None = None
    messages: list[Message] | None = None
    info: Info | None = None


_TRAJECTORY: Final = msgspec.json.Decoder(Trajectory)
_MESSAGES: Final = msgspec.json.Decoder(list[Message])


class SweAgentReader:
    """SWE-agent trajectories; see the module for what is taken from where."""

    name = "swe-agent"
    joins_files = False
    description = (
        "SWE-agent .traj and mini-SWE-agent trajectories: a request a step, tokens counted from "
        "the text or scaled to the session's totals, execution times as recorded tool delays"
    )

    def recognises(self, file: SourceFile) -> bool:
        """Whether it is an object with steps, or messages with mini-SWE-agent's instructions."""
        head = file.start
        if file.ending == ".jsonl":
            return False
        if head.startswith(b"{") and _STEPS.search(head) is not None:
            return any(key in head for key in _STEP_KEYS)
        if not head.startswith((b"[", b"{")) or _MESSAGE_SIGN.search(head) is None:
            return False
        return _MINI_SIGN.search(head) is not None

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push every document as a session; raises `InputError` for a broken one."""
        for file in files:
            session = _Session(file, builder, options)
            if file.start.startswith(b"["):
                messages = decoded_document(file, _MESSAGES)
                session.take_messages(messages)
                session.push(MINI_HARNESS)
                continue
            document = decoded_document(file, _TRAJECTORY)
            session.info = document.info or Info()
            if document.messages is not None and document.trajectory is None:
                session.take_messages(document.messages)
                session.push(MINI_HARNESS)
            else:
                session.take_steps(document.trajectory or [], document.history or [])
                session.push(HARNESS)


READER: Final = SweAgentReader()


@dataclass(slots=True)
class _Call:
    """A request before its counts are settled. `delay_s`: how long the tool before it ran."""

    parts: tuple[Part, ...]
    output: Part
    row: str
    observations: int
    delay_s: float | None
    acts: bool = True
    usage: CompletionUsage | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int = 1
    source: UsageSource = UsageSource.INFERRED


@dataclass(slots=True)
class _Session:
    """One document."""

    file: SourceFile
    builder: TraceBuilder
    options: ReadOptions
    info: Info = field(default_factory=Info)
    calls: list[_Call] = field(default_factory=list)

    def take_steps(self, steps: Sequence[Step], history: Sequence[Message]) -> None:
        """Make a request of each step."""
        opening = self._opening(history)
        context = opening
        delay_s: float | None = None
        results = 0
        for position, step in enumerate(steps):
            if not step.response:
                self.builder.exclude("step without a response")
                continue
            if step.query is not None:
                context = self._context(step.query)
            output = self._part(PartKind.ANSWER, step.response)
            self.calls.append(
                _Call(
                    parts=tuple(context),
                    output=output,
                    row=f"trajectory[{position}]",
                    observations=results,
                    delay_s=delay_s,
                    acts=bool((step.action or "").strip()),
                )
            )
            seen = step.observation
            text = seen if isinstance(seen, str) else "\n".join(content_texts(seen))
            context = [*context, output, self._part(PartKind.OBSERVATION, text)]
            delay_s, results = step.execution_time, 1

    def take_messages(self, messages: Sequence[Message]) -> None:
        """Make a request of each answer."""
        context: list[Part] = []
        results = 0
        asked = False
        for position, message in enumerate(messages):
            match message.role:
                case "assistant":
                    output = self._part(PartKind.ANSWER, message.text)
                    response = message.extra.response if message.extra is not None else None
                    call = _Call(tuple(context), output, f"messages[{position}]", results, None)
                    call.usage = response.usage if response is not None else None
                    call.model = response.model if response is not None else None
                    self.calls.append(call)
                    context.append(output)
                    results, asked = 0, True
                case "system":
                    context.append(self._part(PartKind.SYSTEM, message.text))
                case "user" | "tool":
                    kind = PartKind.OBSERVATION if asked else PartKind.USER
                    context.append(self._part(kind, message.text))
                    results += asked
                case role:
                    self.builder.ignore(f"{role} message: no part of a request")

    def push(self, harness: str) -> None:
        """Settle the counts and push the session."""
        if not self.calls:
            self.builder.skip(self.file.name, "no request in it")
            return
        self._count()
        status = self.info.exit_status
        session = self.builder.session(
            self.file.path.name.split(".", 1)[0],
            workload=harness,
            harness=harness,
            source=self.file.name,
            ends_open=status is not None and not status.startswith(_SUBMITTED),
        )
        for call in self.calls:
            session.request(
                parts=call.parts,
                input_tokens=call.input_tokens,
                output_tokens=call.output_tokens,
                output_parts=[call.output],
                observations=call.observations,
                tools=[ToolClass.ENVIRONMENT] if call.acts else [],
                model=call.model,
                reported_cached_tokens=call.usage.cached_tokens if call.usage else None,
                usage_source=call.source,
                delay_s=call.delay_s,
                row=call.row,
            )
        if all(call.input_tokens is None for call in self.calls):
            # Where inputs are reported, sessions are compared for the length of their prompt.
            self.builder.finish(session)

    def _count(self) -> None:
        for call in self.calls:
            call.output_tokens = max(1, call.output.tokens)
            usage = call.usage
            if usage is not None and usage.is_known:
                call.input_tokens = usage.input_tokens
                call.output_tokens = max(1, usage.completion_tokens or 0)
                call.source = UsageSource.REPORTED
        inferred = [call for call in self.calls if call.source is UsageSource.INFERRED]
        stats = self.info.model_stats or ModelStats()
        if len(inferred) < len(self.calls) or not (stats.tokens_sent and stats.tokens_received):
            if inferred:
                self.builder.fill("usage", "counted from the text", len(inferred))
        elif stats.api_calls not in (0, len(self.calls)) or not self._scale(stats):
            how = "counted from the text; the session's totals are not of these calls"
            self.builder.fill("usage", how, len(inferred))
        else:
            self.builder.fill("usage", "the session's totals, in proportion to the text",
                              len(inferred))  # fmt: skip

    def _scale(self, stats: ModelStats) -> bool:
        """Fit the counts to the session's totals; False where they cannot be of this text.

        An input is what earlier outputs left in it and the rest; only the rest is stretched, so
        that every input still holds the context before it.
        """
        if stats.tokens_received < len(self.calls):
            return False
        spare = stats.tokens_received - len(self.calls)
        outputs = [1 + n for n in scaled([call.output_tokens for call in self.calls], spare)]
        of_output: dict[Hashable, int] = {}
        for call, output in zip(self.calls, outputs, strict=True):
            of_output[call.output.key] = max(output, of_output.get(call.output.key, 0))
        held = [
            sum(of_output[part.key] for part in call.parts if part.key in of_output)
            for call in self.calls
        ]
        rest = [
            sum(part.tokens for part in call.parts if part.key not in of_output)
            for call in self.calls
        ]
        room = stats.tokens_sent - sum(held)
        if room <= 0 or not sum(rest):
            return False
        for call, output, kept, other in zip(
            self.calls, outputs, held, scaled(rest, room), strict=True
        ):
            call.output_tokens, call.input_tokens = output, kept + other
            call.source = UsageSource.RECOUNTED
        return True

    def _opening(self, history: Sequence[Message]) -> list[Part]:
        """Return what stands before the first answer; demonstrations are part of the prompt."""
        opening = []
        main = history[0].agent if history else None
        for message in history:
            if message.agent != main:
                self.builder.ignore("message of another agent than the main one")
                continue
            if message.role == "assistant" and not message.is_demo:
                break
            opening.append(message)
        return self._context(opening)

    def _context(self, messages: Sequence[Message]) -> list[Part]:
        parts: list[Part] = []
        answered = False
        for message in messages:
            answers = message.role == "assistant" and not message.is_demo
            if message.role == "system" or message.is_demo:
                kind = PartKind.SYSTEM
            elif answers:
                kind = PartKind.ANSWER
            else:
                kind = PartKind.OBSERVATION if answered else PartKind.USER
            answered |= answers
            parts.append(self._part(kind, message.text))
        return parts

    def _part(self, kind: PartKind, text: str) -> Part:
        return Part(content_key(text, kind), self.options.count_tokens(text), kind)

"""Reader of τ-bench results: τ²-bench (and τ³-bench) files, and τ-bench v1 trajectories.

**Files.** τ²: one JSON object with `simulations`, each a session. v1: a JSON list of runs, with
the messages of each in `traj`.

**Requests.** Every assistant message with content or calls, except the greeting that opens a τ²
dialogue (no model wrote it). The simulated user's messages are excluded and counted. A simulated
user's own tool calls, and their results, never reach the agent: they are left out of its context.

**Turns** are opened by user messages with content.

**Tokens.** Where a message has `usage`, its `prompt_tokens` are the input and its
`completion_tokens` the output (reported). Where `raw_data` holds reasoning that `completion_tokens`
leave out (they are nearer to the visible text alone than to both), the reasoning is counted from
its text and added, and the request is flagged recounted. Without usage everything is counted from
the text, and flagged inferred; the tool schemas, which are seldom in the file, are then missing
from the prompt, which is counted.

**Context** comes from the text: reasoning that was generated and is not in the next input was
stripped. The τ² harness sends messages without it, so it goes after every request.

**Times.** A τ² message is stamped when it is finished; a request starts when the message before it
was. Delays are not recorded but drawn: the user is simulated and the tools are function calls in
the same process, so the gaps measure neither. A simulation's `duration` is not used (a fixed 60
is no measurement).

**Tools** are all database and API calls: class `retrieval`, as in the paper's temporal regime.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

from lachesis.errors import InputError
from lachesis.traces.builder import TraceBuilder
from lachesis.traces.logged import Part, PartKind, content_key
from lachesis.traces.readers.protocol import ReadOptions, SourceFile
from lachesis.traces.schema import ToolClass, UsageSource
from lachesis.traces.session_builder import SessionBuilder

_DESCRIPTION: Final = __doc__ or ""
_TAU2_SIGN: Final = re.compile(
    rb'"(?:num_trials|user_info|environment_info|simulations)"\s*:', re.ASCII
)
_V1_SIGN: Final = re.compile(rb'"(?:traj|reward|task_id)"\s*:', re.ASCII)
_OPEN_ENDS: Final = frozenset({"max_steps", "too_many_errors", "agent_error", "user_error"})

Json = Mapping[str, Any]


class TauReader:
    """τ-bench v1 and τ²-bench results."""

    name = "tau"
    joins_files = False
    description = _DESCRIPTION

    def recognises(self, file: SourceFile) -> bool:
        """A JSON object with a τ² run's header, or a list of v1 runs."""
        head = file.start
        if head.startswith(b"{"):
            found = set(_TAU2_SIGN.findall(head))
            return len(found) >= 2 or (len(found) == 1 and b'"reward_info"' in head)
        return head.startswith(b"[") and len(set(_V1_SIGN.findall(head))) >= 2

    def read(
        self, files: Sequence[SourceFile], builder: TraceBuilder, options: ReadOptions
    ) -> None:
        """Push every simulation of every file as a session."""
        for file in files:
            content = file.json()
            if isinstance(content, list):
                runs = _objects(content, file, "runs")
                for index, run in enumerate(runs):
                    _Dialogue(file, f"[{index}].traj", builder, options).push_v1(run)
            elif isinstance(content, dict) and isinstance(content.get("simulations"), list):
                runs = _objects(content["simulations"], file, "simulations")
                info = _object_or_empty(content.get("info"))
                for index, run in enumerate(runs):
                    where = f"simulations[{index}].messages"
                    _Dialogue(file, where, builder, options).push_tau2(run, info)
            else:
                raise InputError("holds no list of simulations", path=file.name)
            if not runs:
                builder.skip(file.name, "holds no simulation")


READER = TauReader()


class _Dialogue:
    """One session: walks its messages and keeps the agent's context as parts."""

    def __init__(
        self, file: SourceFile, where: str, builder: TraceBuilder, options: ReadOptions
    ) -> None:
        self.file = file
        self.where = where
        self.builder = builder
        self.count_tokens: Callable[[str], int] = options.count_tokens
        self.context: list[Part] = []
        self.opens_turn = False
        self.user_spoke = False
        self.observations = 0
        self.previous_s: float | None = None
        self.model: str | None = None

    def push_tau2(self, run: Json, info: Json) -> None:
        environment = _object_or_empty(info.get("environment_info"))
        agent = _object_or_empty(info.get("agent_info"))
        domain = environment.get("domain_name")
        self.model = agent.get("llm") if isinstance(agent.get("llm"), str) else None
        name = run.get("id") or f"{run.get('task_id')}/{run.get('trial')}"
        messages = self._messages(run.get("messages"))
        session = self._session(
            str(name),
            workload=f"tau2-{domain}" if isinstance(domain, str) else "tau2",
            harness="tau2-bench",
            messages=messages,
            ends_open=run.get("termination_reason") in _OPEN_ENDS,
        )
        policy = environment.get("policy")
        if isinstance(policy, str):
            self._append(PartKind.SYSTEM, policy)
        tools = environment.get("tool_defs")
        if tools:
            self._append(PartKind.SYSTEM, json.dumps(tools, sort_keys=True))
        called = [message for message in messages if self._is_request(message)]
        if any(not message.get("usage") for message in called[1:]):  # the greeting never has any
            self._note_prompt(bool(tools))
        self._walk(session, messages)
        self.builder.complete(session)

    def push_v1(self, run: Json) -> None:
        messages = self._messages(run.get("traj"))
        session = self._session(
            f"{run.get('task_id')}/{run.get('trial', 0)}",
            workload="tau-bench",
            harness="tau-bench",
            messages=messages,
            ends_open=False,
        )
        self._note_prompt(False)
        self._walk(session, messages)
        self.builder.complete(session)

    def _note_prompt(self, with_tools: bool) -> None:
        self.builder.fill(
            "prompt_tokens",
            "policy and tool schemas as text"
            if with_tools
            else "policy as text; the tool schemas are not in the file",
        )

    def _session(
        self, name: str, *, workload: str, harness: str, messages: list[Json], ends_open: bool
    ) -> SessionBuilder:
        # After a tool's result the agent would have been asked again.
        stopped = bool(messages) and messages[-1].get("role") == "tool"
        return self.builder.session(
            name,
            workload=workload,
            harness=harness,
            source=self.file.name,
            ends_open=ends_open or stopped,
            recorded_delays=False,
        )

    def _messages(self, value: object) -> list[Json]:
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._broken(None, "must be a list of messages")
        for index, message in enumerate(value):
            if not isinstance(message, dict) or not isinstance(message.get("role"), str):
                raise self._broken(index, "must be a message with a role")
            content = message.get("content")
            if content is not None and not isinstance(content, str):
                raise self._broken(index, "must be text or null", "content", content)
        return cast("list[Json]", value)

    def _broken(
        self, index: int | None, rule: str, field: str | None = None, value: object = None
    ) -> InputError:
        row = self.where if index is None else f"{self.where}[{index}]"
        return InputError(rule, path=self.file.name, row=row, field=field, value=value)

    def _is_request(self, message: Json) -> bool:
        return message.get("role") == "assistant" and bool(
            message.get("content") or message.get("tool_calls")
        )

    def _walk(self, session: SessionBuilder, messages: list[Json]) -> None:
        for index, message in enumerate(messages):
            role = message["role"]
            content = message.get("content") or ""
            now_s = self._time(index, message)
            match role:
                case "system":
                    self._append(PartKind.SYSTEM, content)
                case "user":
                    session.exclude("message of the simulated user")
                    if message.get("tool_calls"):
                        session.exclude("tool call of the simulated user")
                    elif content:
                        self._append(PartKind.USER, content)
                        self.opens_turn = self.user_spoke = True
                case "tool":
                    if message.get("requestor", "assistant") == "assistant":
                        self._append(PartKind.OBSERVATION, content)
                        self.observations += 1
                    else:
                        self.builder.drop("tool result that only the simulated user sees")
                case "assistant":
                    self._assistant(session, index, message, now_s)
                case _:
                    raise self._broken(index, "must be system, user, assistant or tool", "role",
                                       role)  # fmt: skip
            if now_s is not None:
                self.previous_s = now_s

    def _assistant(
        self, session: SessionBuilder, index: int, message: Json, now_s: float | None
    ) -> None:
        content = message.get("content") or ""
        usage = message.get("usage")
        if not self.user_spoke and not usage and not message.get("tool_calls"):
            session.exclude("greeting")
            self._append(PartKind.ANSWER, content)
            return
        if not self._is_request(message):
            session.exclude("assistant message without content or calls")
            return
        visible = [self._part(PartKind.ANSWER, content)] if content else []
        calls = self._calls(index, message)
        visible += [self._part(PartKind.CALL, call) for call in calls]
        reasoning = _reasoning_of(message)
        visible_tokens = sum(part.tokens for part in visible)
        reasoning_tokens = self.count_tokens(reasoning)
        input_tokens: int | None = None
        if usage:
            input_tokens = self._usage(index, usage, "prompt_tokens", minimum=0)
            completion = self._usage(index, usage, "completion_tokens", minimum=1)
            source = UsageSource.REPORTED
            reasoning_left_out = reasoning_tokens > 0 and abs(completion - visible_tokens) < abs(
                completion - visible_tokens - reasoning_tokens
            )
            if reasoning_left_out:
                source = UsageSource.RECOUNTED
                self.builder.fill("reasoning_tokens", "counted from the reasoning's text")
                output_tokens = completion + reasoning_tokens
            else:
                output_tokens = completion
                reasoning_tokens = min(reasoning_tokens, completion)
        else:
            source = UsageSource.INFERRED
            output_tokens = max(1, visible_tokens + reasoning_tokens)
        output = [self._part(PartKind.REASONING, reasoning)] if reasoning else []
        session.request(
            opens_turn=self.opens_turn,
            parts=tuple(self.context),
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            reasoning_tokens=reasoning_tokens,
            output_parts=output + visible,
            observations=self.observations,
            tools=[ToolClass.RETRIEVAL] * len(calls),
            model=self.model,
            start_s=self.previous_s if now_s is not None else None,
            end_s=now_s if self.previous_s is not None else None,
            usage_source=source,
            row=f"{self.where}[{index}]",
        )
        self.context += visible
        self.opens_turn = False
        self.observations = 0

    def _part(self, kind: PartKind, text: str) -> Part:
        return Part(content_key(text, kind), self.count_tokens(text), kind)

    def _append(self, kind: PartKind, text: str) -> None:
        self.context.append(self._part(kind, text))

    def _calls(self, index: int, message: Json) -> list[str]:
        """Name and arguments of every call, as text."""
        calls = message.get("tool_calls") or []
        if not isinstance(calls, list):
            raise self._broken(index, "must be a list or null", "tool_calls", calls)
        texts = []
        for call in calls:
            if not isinstance(call, dict):
                raise self._broken(index, "must be an object", "tool_calls", call)
            function = _object_or_empty(call.get("function")) or call
            arguments = function.get("arguments")
            if not isinstance(arguments, str):
                arguments = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
            texts.append(f"{function.get('name')} {arguments}")
        return texts

    def _usage(self, index: int, usage: object, field: str, *, minimum: int) -> int:
        value = usage.get(field) if isinstance(usage, dict) else None
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise self._broken(
                index, f"must be a whole number of at least {minimum}", f"usage.{field}",
                "missing" if value is None else value,
            )  # fmt: skip
        return value

    def _time(self, index: int, message: Json) -> float | None:
        value = message.get("timestamp")
        if value is None:
            return None
        try:
            stamp = datetime.fromisoformat(value)
        except (TypeError, ValueError) as fault:
            raise self._broken(index, "must be an ISO 8601 time", "timestamp", value) from fault
        return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()


def _reasoning_of(message: Json) -> str:
    raw = _object_or_empty(_object_or_empty(message.get("raw_data")).get("message"))
    reasoning = raw.get("reasoning_content") or message.get("reasoning_content")
    return reasoning if isinstance(reasoning, str) else ""


def _object_or_empty(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _objects(values: Sequence[object], file: SourceFile, name: str) -> list[Json]:
    for index, value in enumerate(values):
        if not isinstance(value, dict):
            raise InputError("must be an object", path=file.name, row=f"{name}[{index}]",
                             value=value)  # fmt: skip
    return cast("list[Json]", list(values))

"""One ATIF trajectory, as the logs of the agents whose steps it holds."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import msgspec

from lachesis.traces.readers.agent_log import (
    AgentLog,
    InputKind,
    LoggedInput,
    Meter,
    Round,
    SpawnCall,
    ToolUse,
    arguments_tokens,
    finished_task,
    input_kind,
)
from lachesis.traces.readers.atif_document import (
    Metrics,
    Result,
    Step,
    Trajectory,
    noted_of,
    refs_of,
    results_of,
    text_of,
)
from lachesis.traces.readers.claude_code_rows import seconds
from lachesis.traces.readers.subagent_links import SubagentLinks, needs_result, tool_use

LEAD_LOG: Final = ""
_COMPACTING: Final = re.compile(r"summari[sz]|compact", re.IGNORECASE)


class _Thread:
    """A log that is being read."""

    __slots__ = ("log", "summarised", "tools")

    def __init__(self, log: AgentLog) -> None:
        self.log = log
        self.tools: dict[str, ToolUse] = {}
        self.summarised = False


class Steps:
    """The logs of one trajectory, a continuation's steps appended to those that it continues.

    Attributes:
        logs: by agent; the lead's under `LEAD_LOG`. Empty logs are left out.
        references: sub-agents in trajectories of their own: reference key → names by which the
            trajectory may be found (its id, its session, its file).
        excluded: steps that are no calls, by reason.
        restored: empty results that the conversion left out.
        aggregated: calls beyond the first of steps that stand for several.
    """

    def __init__(self, trajectory: Trajectory, *, name: str, meter: Meter, prefix: str) -> None:
        self.logs: dict[str, AgentLog] = {}
        self.links = SubagentLinks()
        self.references: dict[str, tuple[str, ...]] = {}
        self.excluded: Counter[str] = Counter()
        self.aggregated = 0
        self.restored = 0
        self.agent_name = trajectory.agent.name
        self._name = name
        self._meter = meter
        self._prefix = prefix
        self._threads: dict[str, _Thread] = {}
        self._side_chains = 0
        self.append(trajectory)

    def append(self, trajectory: Trajectory) -> None:
        """Read the steps of a trajectory, or of its continuation."""
        lead = self._thread(LEAD_LOG)
        lead.log.session = lead.log.session or trajectory.session_id
        metered = any(
            step.metrics is not None for step in trajectory.steps if not step.is_copied_context
        )
        for position, step in enumerate(trajectory.steps, 1):
            row = f"step {step.step_id if step.step_id is not None else position}"
            if step.is_copied_context:
                if step.source == "agent":
                    self.excluded["copied step"] += 1
                elif lead.summarised and lead.log.rounds:
                    # A continuation starts with copies of what its summarisation left.
                    left = self._meter(text_of(step.message))
                    lead.log.pending.append(LoggedInput(InputKind.SUMMARY, None, left))
                if not lead.log.rounds:
                    lead.log.starts_midway = True
                continue
            thread = self._thread_of(step)
            thread.log.version = thread.log.version or trajectory.agent.version
            if step.source == "agent":
                self._agent_step(step, row, thread, trajectory, metered=metered)
            else:
                self._given(step, thread)
            self._observe(step, row, thread)
        self.logs = {key: thread.log for key, thread in self._threads.items() if thread.log.rounds}

    def _thread(self, key: str) -> _Thread:
        thread = self._threads.get(key)
        if thread is None:
            agent = self._prefix + key if key else self._prefix.rstrip("/")
            thread = self._threads[key] = _Thread(AgentLog(agent=agent, name=self._name))
        return thread

    def _thread_of(self, step: Step) -> _Thread:
        extra = step.extra
        if extra is None or not (extra.is_sidechain or extra.agent_id):
            return self._thread(LEAD_LOG)
        if extra.agent_id:
            return self._thread(extra.agent_id)
        if step.source == "user" or not self._side_chains:
            self._side_chains += 1
        return self._thread(f"sidechain-{self._side_chains}")

    def _given(self, step: Step, thread: _Thread) -> None:
        """Take a user's or a system's step as input of the next call."""
        text = text_of(step.message)
        refers = any(refs_of(result) for result in results_of(step))
        if step.source == "system":
            if refers:
                thread.summarised |= _COMPACTING.search(text) is not None
                return
            kind = InputKind.INJECTED if thread.log.rounds else InputKind.SYSTEM
        elif thread.summarised:
            thread.summarised = False
            kind = InputKind.SUMMARY
        else:
            kind = input_kind(text) if text else InputKind.PROMPT
        given = LoggedInput(kind=kind, time_s=seconds(step.timestamp), tokens=self._meter(text))
        if kind is InputKind.NOTIFICATION:
            given.returns_agent = finished_task(text)
        thread.log.append_prompt(given, text)

    def _agent_step(
        self, step: Step, row: str, thread: _Thread, trajectory: Trajectory, *, metered: bool
    ) -> None:
        calls = step.tool_calls or []
        known = [call for call in calls if call.tool_call_id in thread.tools]
        if step.metrics is None and calls and len(known) == len(calls):
            self.excluded["step that repeats a call"] += 1
            return
        if step.llm_call_count == 0:
            self.excluded["step without a model call"] += 1
            return
        if step.metrics is None and metered and step.llm_call_count is None:
            self.excluded["step without usage among steps with usage"] += 1
            return
        self.aggregated += max(0, (step.llm_call_count or 1) - 1)
        time_s = seconds(step.timestamp)
        message = text_of(step.message).strip()
        reasoning = (step.reasoning_content or "").strip()
        metrics = step.metrics or Metrics()
        logged = Round(
            call=row,
            row=row,
            inputs=[],
            model=step.model_name or trajectory.agent.model_name,
            first_s=time_s,
            last_s=time_s,
            input_tokens=metrics.prompt_tokens,
            cached_tokens=metrics.cached_tokens,
            output_tokens=metrics.completion_tokens,
            stopped=step.extra is not None and step.extra.stop_reason is not None,
            visible_tokens=self._meter(message),
            reasoning_tokens=self._meter(reasoning),
        )
        if metrics.extra is not None:
            logged.reported_reasoning_tokens = metrics.extra.reasoning_tokens
        for call in calls:
            use = tool_use(call.tool_call_id or "", call.function_name, call.arguments)
            arguments = msgspec.json.decode(call.arguments) if bytes(call.arguments) else None
            logged.visible_tokens += arguments_tokens(arguments, self._meter)
            logged.tool_uses.append(use)
            if use.id:
                thread.tools[use.id] = use
        if not calls and any(not refs_of(result) for result in results_of(step)):
            # An action that the harness read out of the message, of an unknown tool.
            logged.tool_uses.append(ToolUse(id="", name=""))
        self._restore_results(thread)
        thread.log.begin(logged)
        thread.summarised = False

    def _restore_results(self, thread: _Thread) -> None:
        """Add the results that the conversion left out because they were empty.

        A provider takes no call before every tool call has its result.
        """
        if not thread.log.rounds:
            return
        answered = {
            given.tool_use_id for given in thread.log.pending if given.kind is InputKind.RESULT
        }
        if None in answered:
            return  # a harness that does not say which call a result answers
        for use in thread.log.rounds[-1].tool_uses:
            if use.id and not use.by_harness and use.id not in answered:
                thread.log.pending.append(LoggedInput(InputKind.RESULT, None, tool_use_id=use.id))
                self.restored += 1

    def _observe(self, step: Step, row: str, thread: _Thread) -> None:
        rounds = thread.log.rounds
        for number, result in enumerate(results_of(step)):
            refs = refs_of(result)
            text = text_of(result.content)
            if step.source == "agent" or text:
                given = LoggedInput(
                    kind=InputKind.RESULT if step.source == "agent" else InputKind.INJECTED,
                    time_s=None if step.source == "agent" else seconds(step.timestamp),
                    tokens=self._meter(text),
                    tool_use_id=result.source_call_id,
                )
                self._note(result, text, thread, given)
                thread.log.pending.append(given)
            for part, ref in enumerate(refs):
                key = f"{self._prefix}{row}, result {number + 1}.{part + 1}"
                named = (ref.trajectory_id, ref.session_id, ref.trajectory_path)
                self.references[key] = tuple(name for name in named if name)
                self._start_referenced(key, result, thread, rounds[-1] if rounds else None)

    def _note(self, result: Result, text: str, thread: _Thread, given: LoggedInput) -> None:
        use = thread.tools.get(result.source_call_id or "")
        if use is not None and needs_result(use):
            self.links.note_result(use, noted_of(result), text, given)

    def _start_referenced(
        self, key: str, result: Result, thread: _Thread, after: Round | None
    ) -> None:
        """Tie a referenced sub-agent to the call that its result answers, or to the last one."""
        if after is None:
            return
        use = thread.tools.get(result.source_call_id or "")
        if use is None or use.id in self.links.agents:
            use = ToolUse(id=f"{key}, by the harness", name="", by_harness=True)
            after.tool_uses.append(use)
        if use.spawn is None:
            use.spawn = SpawnCall()
        self.links.agents[use.id] = key
        thread.log.pending.append(
            LoggedInput(InputKind.INJECTED, None, tool_use_id=use.id, returns_agent=key)
        )

"""How Claude Code says which call started which sub-agent, and which result it returned with.

The harness notes it beside the tool's result (`toolUseResult`, which the ATIF conversion keeps),
older versions only in the result's text. Shared by the readers of both formats.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from lachesis.traces.readers.agent_log import LoggedInput, SpawnCall, ToolUse, finished_task
from lachesis.traces.readers.claude_code_rows import ToolUseResult, spawn_arguments
from lachesis.traces.schema import ToolClass
from lachesis.traces.tool_classes import tool_class

_AGENT_ID: Final = re.compile(r"^agentId: ([0-9A-Za-z_-]+)", re.MULTILINE)
_TASK_READERS: Final = frozenset({"TaskOutput", "AgentOutputTool"})
_MESSAGE_TOOL: Final = "SendMessage"
_ASYNC_LAUNCH: Final = "Async agent launched"


class SubagentLinks(msgspec.Struct):
    """What is known of who started whom.

    `agents` and `runs` are keyed by tool call: the agent that it started, or the workflow run.
    `run_of_task` names the run that a background task's id stands for, `types` the agents' types.
    """

    agents: dict[str, str] = msgspec.field(default_factory=dict)
    runs: dict[str, str] = msgspec.field(default_factory=dict)
    run_of_task: dict[str, str] = msgspec.field(default_factory=dict)
    types: dict[str, str] = msgspec.field(default_factory=dict)

    def update(self, other: SubagentLinks) -> None:
        """Add what `other` knows."""
        self.agents.update(other.agents)
        self.runs.update(other.runs)
        self.run_of_task.update(other.run_of_task)
        self.types.update(other.types)

    def note_result(
        self, use: ToolUse, noted: ToolUseResult | None, text: str, given: LoggedInput
    ) -> None:
        """Take from the result of `use` what it says of sub-agents; mark `given` if one returns."""
        if use.spawn is not None and use.spawn.resumes is None:
            self._note_spawn(use.id, noted, text, given)
        elif use.name in _TASK_READERS:
            if noted is not None and noted.task is not None:
                if noted.task.status == "completed":
                    given.returns_agent = noted.task.task_id
            else:
                given.returns_agent = finished_task(text)
        elif use.spawn is not None and noted is not None and noted.status == "completed":
            given.returns_agent = noted.agent_id or use.spawn.resumes

    def _note_spawn(
        self, identity: str, noted: ToolUseResult | None, text: str, given: LoggedInput
    ) -> None:
        agent = noted.agent_id if noted is not None else None
        if agent is None:
            found = _AGENT_ID.search(text)
            agent = found[1] if found else None
        if noted is not None and noted.run_id:
            self.runs[identity] = noted.run_id
            if noted.task_id:
                self.run_of_task[noted.task_id] = noted.run_id
        if agent is None:
            return
        self.agents[identity] = agent
        if noted is not None and noted.agent_type:
            self.types[agent] = noted.agent_type
        launched = text.startswith(_ASYNC_LAUNCH) or (
            noted is not None and (noted.is_async or noted.status == "async_launched")
        )
        if not launched:
            given.returns_agent = agent


def needs_result(use: ToolUse) -> bool:
    """Whether the text of this call's result can say something of a sub-agent."""
    return use.spawn is not None or use.name in _TASK_READERS


def tool_use(identity: str, name: str, arguments: msgspec.Raw) -> ToolUse:
    """Make a tool use of a call; one that starts or resumes a sub-agent keeps its arguments."""
    use = ToolUse(id=identity, name=name)
    if name == _MESSAGE_TOOL:
        given = spawn_arguments(arguments)
        if given.to:
            prompt = given.message if isinstance(given.message, str) else ""
            use.spawn = SpawnCall(prompt=prompt, resumes=given.to)
    elif tool_class(name) is ToolClass.SPAWN:
        given = spawn_arguments(arguments)
        use.spawn = SpawnCall(
            prompt=given.prompt or "",
            description=given.description,
            agent_type=given.subagent_type,
            model=given.model,
            tools=tuple(given.allowed_tools or ()),
            resumes=given.resume,
        )
    return use

"""From a tool's name to the class whose latency it gets.

The classes are those of InferCept (Abhyankar et al., ICML 2024, Table 1): QA → `retrieval`,
virtual environment → `environment`, and so on. Which name falls into which class is our reading,
except that the paper's temporal regime gives all its API tools the retrieval mean (0.69 s).
"""

from __future__ import annotations

import re
from functools import lru_cache

from lachesis.traces.schema import ToolClass

# First match wins; patterns are tried on the lower-case name with camelCase split into words.
_RULES: tuple[tuple[re.Pattern[str], ToolClass], ...] = tuple(
    (re.compile(pattern), tool_class)
    for pattern, tool_class in (
        (
            r"^(task|agent|sub_?agent|workflow|spawn_agent|delegate\w*|dispatch_agent|"
            r"invoke_agent)$",
            ToolClass.SPAWN,
        ),
        (
            r"ask_?(user|human)|transfer_to_human|human_in|user_?input|^exit_plan_mode$",
            ToolClass.HUMAN,
        ),
        (r"^(calculat\w*|math\w*|compute|eval_expression)$", ToolClass.CALCULATOR),
        (r"(generate|create|edit|draw)_image|image_gen|stable_diffusion|dall", ToolClass.IMAGE),
        (r"text_to_speech|\btts\b|speech|transcribe", ToolClass.SPEECH),
        (
            r"bash|shell|terminal|exec|run_|python|command|kill|stdin|browser|click|navigate|"
            r"^(read|write|edit|multi_edit|notebook\w*|glob|grep|ls|todo\w*|str_replace\w*|"
            r"apply_patch|think|enter_plan_mode|update_plan|submit|finish|skill|slash_?command|"
            r"tool_search|structured_output|task_(output|stop|create|update|list|get)|"
            r"mark_task_complete|monitor|sleep|wait|run|replace|view_image|list_directory|"
            r"search_file_content|(read|write|view|open|create|edit|delete|replace_in)_"
            r"(many_)?files?)$",
            ToolClass.ENVIRONMENT,
        ),
        (
            r"search|fetch|get|list|find|lookup|query|retriev|browse|web|book|cancel|update|"
            r"modify|exchange|return|send|mcp|check|create|set|add|delete|remove",
            ToolClass.RETRIEVAL,
        ),
    )
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@lru_cache(maxsize=4096)
def tool_class(name: str) -> ToolClass:
    """The class of a tool by its name; `other` where no rule knows it.

    Example:
        >>> [str(tool_class(name)) for name in ("Bash", "Task", "get_user_details")]
        ['environment', 'spawn', 'retrieval']
    """
    word = _CAMEL.sub("_", name.strip()).replace("-", "_").lower()
    for pattern, found in _RULES:
        if pattern.search(word):
            return found
    return ToolClass.OTHER

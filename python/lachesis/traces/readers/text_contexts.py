"""Which requests of one session continue each other's context, seen from text and times.

Requests that overlap in time, and requests whose texts have nothing in common, are not one context,
even if the log names one agent for both.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from lachesis.traces.logged import LEAD, Part, PartKind


@dataclass(slots=True)
class TextRequest:
    """One request; `agent` is what the log calls its agent, None where it has no name.

    `parts` None: the log has no text of its input.
    """

    agent: str | None
    start_s: float
    end_s: float | None
    parts: Sequence[Part] | None
    output_parts: Sequence[Part]


@dataclass(slots=True)
class _Context:
    key: Hashable
    agent: str | None
    over_s: float
    input_keys: tuple[Hashable, ...] | None
    output_keys: tuple[Hashable, ...]
    order: int = 0


def contexts_of(requests: Sequence[TextRequest]) -> list[tuple[Hashable, int]]:
    """Each request's context, and how many of its leading parts that context held before.

    Requests come in order of start; the first one's context is the lead's. A request continues a
    context of its agent that has no request running, of those the one whose text agrees with it
    longest, if that is more than the system prompt. If none agrees, it takes over the context that
    was used last and that no later request continues (it was rewritten), else it starts a new one.
    """
    contexts: list[_Context] = []
    found: list[tuple[Hashable, int]] = []
    names: dict[str | None, int] = {}
    for index, request in enumerate(requests):
        free = [
            context
            for context in contexts
            if context.agent == request.agent and context.over_s <= request.start_s
        ]
        best, held = _best(free, request)
        if best is None:
            best = _rewritten(free, requests[index + 1 :])
            held = 0
        if best is None:
            count = names[request.agent] = names.get(request.agent, 0) + 1
            name = request.agent or "context"
            key: Hashable = LEAD if not contexts else name if count == 1 else f"{name}#{count}"
            best = _Context(key, request.agent, 0.0, None, ())
            contexts.append(best)
        best.over_s = request.start_s if request.end_s is None else request.end_s
        if request.parts is None:
            best.input_keys = None
        else:
            best.input_keys = tuple(part.key for part in request.parts)
        best.output_keys = tuple(part.key for part in request.output_parts)
        best.order = index
        found.append((best.key, held))
    return found


def _best(free: Sequence[_Context], request: TextRequest) -> tuple[_Context | None, int]:
    best: _Context | None = None
    best_held = 0
    for context in free:
        if request.parts is None or context.input_keys is None:
            # Without text, one agent's requests are one context.
            if best is None or (not best_held and context.order > best.order):
                best = context
            continue
        held = _agreeing(context, request.parts)
        told = any(part.kind is not PartKind.SYSTEM for part in request.parts[:held])
        if told and (held, context.order) > (best_held, -1 if best is None else best.order):
            best, best_held = context, held
    return best, best_held


def _agreeing(context: _Context, parts: Sequence[Part]) -> int:
    held = 0
    for key, part in zip((context.input_keys or ()) + context.output_keys, parts, strict=False):
        if key != part.key:
            break
        held += 1
    return held


def _rewritten(free: Sequence[_Context], later: Sequence[TextRequest]) -> _Context | None:
    for context in sorted(free, key=lambda context: -context.order):
        whole = len(context.input_keys or ())
        if not any(
            request.agent == context.agent
            and request.parts is not None
            and _agreeing(context, request.parts) >= whole
            for request in later
        ):
            return context
    return None

"""One length for a prompt whose length several sessions only imply.

Where a log gives the system prompt's text and the input's size, but not the tool schemas, the
prompt is what the visible text leaves of the input; as text is counted roughly, sessions with the
same prompt come out a few tokens apart. They get the smallest of these lengths, if all lie within
5 % of it; further apart they are taken for prompts with different tools.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from lachesis.traces.context import leading_kind
from lachesis.traces.logged import LoggedRequest, Part, PartKind, content_key

_SPREAD_MAX = 0.05

#: Model and content key of a prompt.
PromptKey = tuple[str | None, str]


def prompt_key(request: LoggedRequest, prompt_parts: Sequence[Part]) -> PromptKey | None:
    """The reader's key, else one of the parts' keys; None where neither is known."""
    if request.prefix_key is not None:
        return request.model, request.prefix_key
    if not prompt_parts:
        return None
    return request.model, f"{content_key(repr(tuple(part.key for part in prompt_parts))):016x}"


def implied_length(request: LoggedRequest, parts: Sequence[Part], room: int) -> int | None:
    """What the input's `room` leaves for the prompt besides the visible text, if it is enough.

    None where the leading system parts alone would not fit.
    """
    count = leading_kind(parts, PartKind.SYSTEM)
    logged = sum(part.tokens for part in parts[:count])
    visible = sum(part.tokens for part in parts[count:])
    if count == 0 or request.input_tokens is None or room - visible < logged:
        return None
    return room - visible


def implied_lengths(requests: Iterable[LoggedRequest]) -> Iterator[tuple[PromptKey, int]]:
    """Prompts and the lengths that the `requests`, first ones of agents, imply for them."""
    for request in requests:
        if request.parts is None or request.prompt_tokens is not None:
            continue
        length = implied_length(request, request.parts, request.input_tokens or 0)
        key = prompt_key(request, request.parts[: leading_kind(request.parts, PartKind.SYSTEM)])
        if length is not None and key is not None:
            yield key, length


def common_lengths(implied: Iterable[tuple[PromptKey, int]]) -> dict[PromptKey, int]:
    """The common length of each prompt whose implied lengths lie close enough together."""
    ranges: dict[PromptKey, tuple[int, int]] = {}
    for key, length in implied:
        least, most = ranges.get(key, (length, length))
        ranges[key] = (min(least, length), max(most, length))
    return {
        key: least for key, (least, most) in ranges.items() if most - least <= _SPREAD_MAX * least
    }


def first_requests(requests: Iterable[LoggedRequest]) -> list[LoggedRequest]:
    """The first request of every agent, in the order of the log."""
    firsts: dict[Hashable, LoggedRequest] = {}
    for request in requests:
        firsts.setdefault(request.agent, request)
    return list(firsts.values())

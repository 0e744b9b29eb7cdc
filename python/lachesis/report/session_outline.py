"""A session's outline as text in 80 columns: what was thrown away and why, then the timeline."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lachesis.characterise.outline import AgentOutline, Rewrite, Run, SessionOutline
from lachesis.characterise.session_list import SessionSummary
from lachesis.traces.schema import Boundary, SegmentClass

_WIDTH = 80
_BAR_CHARACTERS = 12
_EIGHTHS = " ▏▎▍▌▋▊▉"
_CUT = "✂"
_GLUE = "\u00a0"  # no line is broken here
_WHY = {
    Boundary.TURN_END: "turn end, reasoning stripped",
    Boundary.REQUEST_END: "reasoning stripped every round",
    Boundary.COMPACTION: "compaction",
    Boundary.RESET: "reset (edit, rewind, new prompt)",
    Boundary.SUBAGENT_RETURN: "sub-agent return",
    Boundary.SESSION_END: "end of the session",
}
_SHORT_WHY = {
    Boundary.TURN_END: "turn end",
    Boundary.REQUEST_END: "every round",
    Boundary.COMPACTION: "compaction",
    Boundary.RESET: "reset",
    Boundary.SUBAGENT_RETURN: "sub-agents",
    Boundary.SESSION_END: "session end",
}
_SHORT_CLASS = {
    SegmentClass.LADEN: "laden",
    SegmentClass.STRIPPED: "stripped",
}
_ATTENTION = {
    str(Boundary.COMPACTION): "bold red",
    str(Boundary.RESET): "bold magenta",
    str(Boundary.TURN_END): "yellow",
    str(Boundary.REQUEST_END): "yellow",
    str(Boundary.SUBAGENT_RETURN): "cyan",
}
_AGENT_WIDTH = 22


def print_outline(screen: Console, outline: SessionOutline) -> None:
    """Print a session: its size, where context was thrown away and why, and its timeline."""
    texts = [Text(line) for line in _heading(outline)]
    texts += [Text(), *_why_lines(outline), Text()]
    heading = f"{'turn':>4}  {'agent':{_AGENT_WIDTH}}{'requests':>13} {'wrote':>9}  context"
    texts.append(Text(heading, style="bold"))
    for agent in outline.agents:
        texts += _agent_lines(agent, outline, depth=0)
    texts.append(Text())
    texts += [Text(line, style="dim") for line in _legend(outline)]
    for text in texts:
        screen.print(text, soft_wrap=True)


def print_sessions(screen: Console, sessions: Sequence[SessionSummary], total: int) -> None:
    """Print one line a session; `total` is how many the trace has."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("\nsession", no_wrap=True, max_width=22, overflow="ellipsis")
    for name in ("\nturns", "\nagents", "\nrequests", "tokens\nwritten", "largest\ncontext"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("thrown away\nearly, mostly by", no_wrap=True, overflow="ellipsis")
    for each in sessions:
        table.add_row(
            Text(each.session), f"{each.turns:,}", f"{each.agents:,}", f"{each.requests:,}",
            f"{each.written_tokens:,}", f"{each.peak_tokens:,}", _early(each),
        )  # fmt: skip
    screen.print(table)
    left = total - len(sessions)
    if left:
        screen.print(Text(f"{left:,} more; --all lists them."))
    screen.print(Text("Name a session, or how its name begins, to see it."))


def why_text(why: str) -> str:
    """A boundary in words.

    Example:
        >>> why_text("compaction"), why_text("subagent_return")
        ('compaction', 'sub-agent return')
    """
    return _WHY[Boundary(why)]


def _early(summary: SessionSummary) -> str:
    if not summary.dropped_tokens or not summary.written_tokens:
        return "0%"
    share = sum(summary.dropped_tokens.values()) / summary.written_tokens
    mostly = next(iter(summary.dropped_tokens))
    return f"{f'{share:.0%}' if share >= 0.01 else '<1%'} {_SHORT_WHY[Boundary(mostly)]}"


def _heading(outline: SessionOutline) -> Iterator[str]:
    yield f"Session {outline.session}"
    parts = [
        outline.harness,
        _counted(outline.turns, "turn"),
        _counted(outline.agent_count, "agent"),
        _counted(outline.requests, "request"),
    ]
    if outline.duration_s is not None:
        parts.append(_duration(outline.duration_s))
    yield ", ".join(parts)
    if outline.models:
        yield f"models: {', '.join(outline.models)}"
    yield (
        f"{outline.written_tokens:,} tokens written ({outline.output_tokens:,} of them output), "
        f"{outline.read_tokens:,} matched"
    )
    ends = []
    if outline.starts_midway:
        ends.append("starts midway: what came before is not in the log")
    if outline.ends_open:
        ends.append("just stops: the log has no end")
    if ends:
        yield f"The session {' and '.join(ends)}."


def _why_lines(outline: SessionOutline) -> Iterator[Text]:
    """The answer to the first question, as a table: largest first, the session's end last."""
    groups: dict[str, list[Rewrite]] = {}
    for rewrite in outline.rewrites():
        groups.setdefault(rewrite.why, []).append(rewrite)
    dropped = {why: sum(each.dropped_tokens for each in group) for why, group in groups.items()}
    last = str(Boundary.SESSION_END)
    order = sorted(groups, key=lambda why: (why == last, -dropped[why], why))
    early = [why for why in order if why != last]
    total = sum(dropped[why] for why in early)
    if not early:
        yield Text("No context was thrown away before the session's end.", style="bold green")
        return
    share = total / outline.written_tokens
    yield Text(
        f"{total:,} tokens of context ({share:.0%} of those written) were thrown away early,",
        style="bold",
    )
    yield Text(f"most by: {why_text(early[0])}.", style="bold")
    yield Text(
        f"{'why':34}{'times':>6}{'thrown away':>14}{'of written':>11}{'then wrote':>12}",
        style="bold",
    )
    for why in order:
        then = sum(each.written_tokens for each in groups[why])
        yield Text(
            f"{why_text(why):34}{len(groups[why]):>6,}{dropped[why]:>14,}"
            f"{dropped[why] / outline.written_tokens:>11.1%}"
            + (f"{then:>12,}" if then else f"{'–':>12}"),
            style=_ATTENTION.get(why, ""),
        )


def _agent_lines(agent: AgentOutline, outline: SessionOutline, depth: int) -> Iterator[Text]:
    turn: int | None = None
    runs = [item for item in agent.items if isinstance(item, Run)]
    for item in agent.items:
        if isinstance(item, AgentOutline):
            yield from _agent_lines(item, outline, depth + 1)
        elif isinstance(item, Rewrite):
            yield _rewrite_line(item, depth)
        else:
            returned = agent.return_requests if item is runs[-1] else []
            yield _run_line(item, agent, outline, depth, returned, new_turn=item.turn != turn)
            turn = item.turn
            if item.failed:
                yield _failed_line(item, depth)
            if item.absorbed:
                yield from _absorbed_lines(item, depth)
    if agent.role == "lead":
        total = sum(each.dropped_tokens for each in agent.end)
        words = "log stops" if outline.ends_open else "end"
        yield Text(f"{'':6}■ {words}: the last {total:,} tokens go with the session")


def _run_line(
    run: Run,
    agent: AgentOutline,
    outline: SessionOutline,
    depth: int,
    returned: list[int],
    *,
    new_turn: bool,
) -> Text:
    first, last = run.requests[0], run.requests[-1]
    numbers = f"r{first}" if first == last else f"r{first}–{last}"
    if len(run.requests) != last - first + 1:
        numbers = f"r{first}…{last}"  # others' requests stand in between
    name = agent.agent_type or agent.role
    label = name if agent.role == "lead" else f"{'  ' * (depth - 1)}└ {agent.agent} {name}"
    into = _ids(run.segments)
    room = _AGENT_WIDTH - 2 - len(into)
    line = Text(f"{run.turn if new_turn and depth == 0 else '':>4}  ")
    line.append(f"{_shortened(label, room):{room}} ")
    line.append(f"{into} ", style="dim")
    line.append(f"{numbers:>13} {run.written_tokens + run.output_tokens:>9,}  ")
    line.append(_bar(run.context_tokens / outline.peak_tokens), style="blue")
    line.append(f" {_compact(run.context_tokens)}")
    if returned:
        line.append(f" ↩ r{returned[-1]}", style=_ATTENTION[str(Boundary.SUBAGENT_RETURN)])
    return line


def _failed_line(run: Run, depth: int) -> Text:
    words = f"{_counted(run.failed, 'request')} aborted or failed"
    return Text(f"{'':6}{'  ' * depth}! {words}", style="red")


def _rewrite_line(rewrite: Rewrite, depth: int) -> Text:
    why = _SHORT_WHY[Boundary(rewrite.why)]
    if rewrite.why == str(Boundary.RESET) and rewrite.model_switch:
        why = "model switch"
    words = (
        f"{why}: {rewrite.dropped_tokens:,} of {rewrite.before_tokens:,} thrown away "
        f"({_ids([each.segment for each in rewrite.dropped_segments])})"
    )
    if rewrite.written_segments:
        written = ", ".join(
            f"#{each.segment}{_GLUE}{_SHORT_CLASS.get(SegmentClass(each.kind), each.kind)}"
            f"{_GLUE}{each.tokens:,}"
            for each in rewrite.written_segments
        )
        words += f"; wrote {written}"
    indent = f"{'':6}{'  ' * depth}"
    text = textwrap.fill(
        words, _WIDTH, initial_indent=f"{indent}{_CUT} ", subsequent_indent=f"{indent}  "
    )
    return Text(text.replace(_GLUE, " "), style=_ATTENTION.get(rewrite.why, ""))


def _ids(segments: Iterable[int]) -> str:
    """Segments as ``#1 #4``, the middle ones left out where there are many."""
    ids = [f"#{segment}" for segment in segments]
    return " ".join(ids) if len(ids) <= 2 else f"{ids[0]}…{ids[-1]}"


def _absorbed_lines(run: Run, depth: int) -> Iterator[Text]:
    for why in dict.fromkeys(each.why for each in run.absorbed):
        group = [each for each in run.absorbed if each.why == why]
        dropped = sum(each.dropped_tokens for each in group)
        small = "small " if why == str(Boundary.RESET) else ""
        yield Text(
            f"{'':6}{'  ' * depth}{_CUT} {small}{why_text(why)}: {len(group):,} ×, "
            f"{dropped:,} thrown away",
            style=_ATTENTION.get(why, ""),
        )


def _legend(outline: SessionOutline) -> Iterator[str]:
    yield (
        f"context: held after the requests; a full bar is the session's most, "
        f"{outline.peak_tokens:,}."
    )
    yield "then wrote: by the next request on top of what was kept; new text is in it too."
    yield "#3: the segment that is written into, or thrown away; numbers as in the trace."
    if any(each.why == str(Boundary.SUBAGENT_RETURN) for each in outline.rewrites()):
        yield "↩ r7: the sub-agent returns to request 7, and its context is thrown away."


def _bar(share: float) -> str:
    eighths = max(round(share * _BAR_CHARACTERS * 8), 1)
    whole, rest = divmod(eighths, 8)
    bar = "█" * whole + (_EIGHTHS[rest] if rest else "")
    return f"{bar:{_BAR_CHARACTERS}}"


def _compact(tokens: int) -> str:
    return f"{tokens:,}" if tokens < 10_000 else f"{tokens / 1_000:,.0f}k"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours / 24:.1f} days"


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"

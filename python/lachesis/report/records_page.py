"""Writes a page of what ``trace stats`` says about folders of real records.

``python -m lachesis.report.records_page RECORDS docs/real_records.md`` reads every folder of
RECORDS and writes the page. Every number on it is measured; the prose around the tables stands
here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lachesis.characterise import WorkloadStats, stats
from lachesis.characterise.provider_cache import CacheComparison, compare_with_cache
from lachesis.characterise.turn_reasoning import TurnReasoning, turn_reasoning
from lachesis.errors import InputError
from lachesis.presets import load_latency
from lachesis.report.session_outline import why_text
from lachesis.results.files import write_text
from lachesis.traces import Boundary, open_trace

_SEED = 0

_INTRODUCTION = """# What real records look like

Logs of real agent runs, read by this project's readers and characterised as the corpora are. The
records are not part of the project (they belong to many owners); they are small, and picked to
exercise readers, not to represent anybody's traffic. What stands here shows what the statistics
say about logs as they come, and where logs differ from the paper's two regimes.

Each folder was measured by itself:

    lachesis trace stats FOLDER --json FILE

and this page was written by `python -m lachesis.report.records_page RECORDS docs/real_records.md`,
which does the same for every folder. Definitions: [characterisation.md](characterisation.md).
"""

_SIZES = """## Sizes, and what is thrown away early

*Processed* and *written* are the columns of the paper's Table 3. *Matched* is the part of the
processed tokens that need not be written again. *Early* is the part of the written tokens whose
segment ends before its session does, with what ends most of it. *Counts* says where requests' token
counts come from: **r**eported by the provider, re**c**ounted from the content, or **i**nferred from
its length.
"""

_LIFETIMES = """## Lifetimes

T_norm in seconds on the reference clock; waits that a log records are taken as recorded, the others
are drawn. Prompts are left out.
"""

_COMPARISONS = """## Comparisons of classes

Separability with its 95 % interval over sessions; a dash where one session has all segments.
With so few sessions and workers an interval is itself a rough figure.
"""

_CACHE = """## The provider's cache is no measure of what is written

Over the requests that report a cache hit: tokens written by logical matching, which is what the
traces hold, and what would be counted if the provider's hit were taken for the matched prefix. A
cache that expired while the user waited makes contexts look as if they were written anew
(*expired*); a prompt that another session left in the cache is *beyond* what this session wrote.
"""

_REASONING = """## Where a turn reasons

Over the turns of two and more requests that reason: how much of it their first requests do, before
any tool was called.
"""

_READING = """## What the tables show

- **Compaction and sub-agents throw most away.** In long Claude Code and pi sessions most written
  tokens end before the session: at a compaction, which drops nearly the whole context at once, or
  when a sub-agent returns.
- **Most harnesses here keep reasoning, or show none.** Reasoning-laden segments appear where a log
  has reasoning that later inputs lack; several of those harnesses strip it after every request
  (`request_end`), not at the turn's end as in the paper's temporal regime. The files of
  `tau_bench_v1` and `bfcl_replay` carry no reasoning at all, so their contexts are `lead` from
  start to end.
- **Resets cut leads into pieces.** Where a log's inputs diverge from what came before (edited
  messages, rebuilt prompts, files re-read, retries), the lead's context is many short segments and
  one long one. Every segment counts once in a median, so the ratio of lead to worker lifetimes can
  fall below 1 although the long piece holds most tokens. Read the ratio together with the share of
  tokens ended by resets.
- **Waits are people's.** Sessions pause for minutes or hours; a recorded wait enters lifetimes as
  it is. The ratio of lifetimes then says as much about the user as about the harness.
- **Request traces have no sessions.** Where neither a session nor a chain of block hashes is given
  every request is a session, and lifetimes are those of single requests.
- **Inferred counts are estimates** from the length of the text; shares and orders can be read from
  them, absolute sizes only roughly.
"""


@dataclass(frozen=True)
class Folder:
    """A folder of records, measured."""

    name: str
    workloads: list[WorkloadStats]
    cache: CacheComparison
    reasoning: TurnReasoning


def measure(records: Path) -> tuple[list[Folder], dict[str, str]]:
    """Every folder below `records` that reads, and why the others do not."""
    latency = load_latency()
    folders, refused = [], {}
    for place in sorted(each for each in records.iterdir() if each.is_dir()):
        try:
            trace = open_trace(place)
        except InputError as error:
            # The place of this machine says nothing to a reader of the page.
            refused[place.name] = str(error).replace(f"{records}/", "")
            continue
        workloads, cache = stats(trace, latency, _SEED), compare_with_cache(trace)
        folders.append(Folder(place.name, workloads, cache, turn_reasoning(trace)))
    if not folders:
        raise InputError("holds no folder of records that reads", path=records)
    return folders, refused


def page(records: Path) -> str:
    """The page, measured now."""
    folders, refused = measure(records)
    parts = [
        _INTRODUCTION,
        _SIZES,
        _table(_SIZE_HEAD, _size_rows(folders)),
        _LIFETIMES,
        _table(_LIFE_HEAD, _life_rows(folders)),
        _COMPARISONS,
        _table(_PAIR_HEAD, _pair_rows(folders)),
        _CACHE,
        _table(_CACHE_HEAD, _cache_rows(folders)),
        _REASONING,
        _table(_REASONING_HEAD, _reasoning_rows(folders)),
        _READING,
    ]
    if refused:
        lines = [f"- {name}: {reason}" for name, reason in refused.items()]
        parts.append("## Folders that no reader takes\n\n" + "\n".join(lines))
    return "\n".join(part.strip("\n") + "\n" for part in parts)


_SIZE_HEAD = (
    "folder", "workload", "sessions", "turns", "agents", "requests", "processed", "written",
    "matched", "early", "mostly by", "counts r / c / i", "rows dropped",
)  # fmt: skip
_LIFE_HEAD = (
    "folder", "workload", "class", "segments", "of writes", "tokens, median", "T_norm p10",
    "median", "p90", "rho, median",
)  # fmt: skip
_PAIR_HEAD = (
    "folder", "workload", "pair", "ratio of medians", "separability", "interval",
    "lead waits", "rho overlap", "worker spread: life, writes", "worker tau",
)  # fmt: skip
_CACHE_HEAD = (
    "folder", "requests", "written by matching", "by the cache hit", "inflation", "expired",
    "beyond",
)  # fmt: skip

_REASONING_HEAD = (
    "folder", "turns", "requests a turn", "reasoning tokens", "of the first request",
)  # fmt: skip


def _size_rows(folders: list[Folder]) -> Iterable[list[str]]:
    for folder in folders:
        for each in folder.workloads:
            early = {
                why: closed.tokens_written
                for why, closed in each.closed_by.items()
                if why != str(Boundary.SESSION_END) and closed.tokens_written
            }
            most = max(sorted(early), key=lambda why: early[why]) if early else None
            quality = each.quality
            yield [
                folder.name, each.workload, f"{each.sessions:,}", f"{each.turns:,}",
                f"{each.agents:,}", f"{each.requests:,}", f"{each.tokens_processed:,}",
                f"{each.tokens_written:,}", _matched(each),
                _percent(sum(early.values()), each.tokens_written),
                why_text(most) if most else "–",
                f"{quality['reported']:,} / {quality['recounted']:,} / {quality['inferred']:,}",
                f"{quality['dropped']:,}",
            ]  # fmt: skip


def _matched(each: WorkloadStats) -> str:
    """Of the processed tokens those that were not written; prompts that sessions share count."""
    if not each.tokens_processed:
        return "–"
    return _percent(max(each.tokens_processed - each.tokens_written, 0), each.tokens_processed)


def _life_rows(folders: list[Folder]) -> Iterable[list[str]]:
    for folder in folders:
        for each in folder.workloads:
            for name, kind in each.classes.items():
                if name == "prompt":
                    continue
                life = kind.t_norm_s
                yield [
                    folder.name, each.workload, name, f"{kind.segments:,}",
                    _percent(kind.tokens_written, each.tokens_written),
                    _number(kind.tokens_per_segment.p50), _number(life.p10), _number(life.p50),
                    _number(life.p90), _number(kind.rho_rw.p50),
                ]  # fmt: skip


def _pair_rows(folders: list[Folder]) -> Iterable[list[str]]:
    for folder in folders:
        for each in folder.workloads:
            for pair, ratio in each.lifetime_ratio.items():
                found = each.separability[pair]
                interval = "–"
                if found.low is not None and found.high is not None:
                    interval = f"{found.low:.2f} to {found.high:.2f}"
                spread, of_worker = each.worker_spread, pair.endswith("worker")
                yield [
                    folder.name, each.workload, pair, _number(ratio), f"{found.value:.3f}",
                    interval,
                    _number(each.lead_waiting_share) if of_worker else "–",
                    _number(each.rho_overlap) if of_worker else "–",
                    f"{_number(spread.t_norm_s)}, {_number(spread.tokens_written)}"
                    if spread is not None and of_worker else "–",
                    _number(each.worker_tau) if of_worker else "–",
                ]  # fmt: skip


def _cache_rows(folders: list[Folder]) -> Iterable[list[str]]:
    for folder in folders:
        cache = folder.cache
        if cache.requests:
            yield [
                folder.name, f"{cache.requests:,}", f"{cache.matched_tokens:,}",
                f"{cache.cache_tokens:,}",
                "–" if cache.inflation is None else f"{cache.inflation:.2f}",
                f"{cache.missed_tokens:,}", f"{cache.beyond_tokens:,}",
            ]  # fmt: skip


def _reasoning_rows(folders: list[Folder]) -> Iterable[list[str]]:
    for folder in folders:
        found = folder.reasoning
        if found.turns:
            yield [
                folder.name, f"{found.turns:,}", f"{found.requests / found.turns:.1f}",
                f"{found.tokens:,}", _percent(found.first_tokens, found.tokens),
            ]  # fmt: skip


def _table(head: tuple[str, ...], rows: Iterable[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "–"


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def main(arguments: list[str]) -> int:
    """Write the page to the second path, or to standard output."""
    if not 1 <= len(arguments) <= 2:
        sys.stderr.write("usage: python -m lachesis.report.records_page RECORDS [PAGE]\n")
        return 2
    text = page(Path(arguments[0]))
    if len(arguments) == 1:
        sys.stdout.write(text)
    else:
        write_text(arguments[1], text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

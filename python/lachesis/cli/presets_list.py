"""Tables of everything that an option can name."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from lachesis.cli.terminal import console
from lachesis.errors import InputError
from lachesis.policy import POLICIES
from lachesis.presets import PresetListing, PresetRow, iter_presets
from lachesis.presets.base import near_matches
from lachesis.traces.generator import corpora, specification
from lachesis.traces.generator.generate import MIXES, WITHOUT_REVIEWERS

#: Other words that people use for a kind.
_ALIASES = {"gpu": "hardware", "models": "model", "gpus": "hardware", "policies": "policy",
            "corpora": "corpus"}  # fmt: skip


def show_presets(kind: str | None, name: str | None) -> None:
    """Print all kinds, the names of one kind, or all values of one preset.

    Raises:
        InputError: no such kind or name.
    """
    listings = [*iter_presets(), *_policies(), *_corpora()]
    kinds = list(dict.fromkeys(listing.kind for listing in listings))
    if kind is not None:
        kind = _ALIASES.get(kind, kind)
        if kind not in kinds:
            raise InputError(near_matches(kind, kinds), field="KIND", value=kind)
        listings = [listing for listing in listings if listing.kind == kind]
    if name is None:
        _print_names(listings)
        return
    # The daisy chain has two spellings.
    name = name.replace("-chain", "*")
    found = [listing for listing in listings if listing.name == name]
    if not found:
        hint = near_matches(name, [listing.name for listing in listings])
        raise InputError(hint, field=f"NAME of {kind}", value=name)
    _print_values(found[0])


def _print_names(listings: Iterable[PresetListing]) -> None:
    screen = console()
    by_kind: dict[str, list[PresetListing]] = {}
    for listing in listings:
        by_kind.setdefault(listing.kind, []).append(listing)
    for kind, members in by_kind.items():
        screen.print(Text(kind, style="bold"))
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
        table.add_column(width=2)
        table.add_column(no_wrap=True)
        table.add_column(ratio=1)
        for listing in members:
            table.add_row("", listing.name, listing.title)
        screen.print(table)
    screen.print(Text("lachesis presets KIND NAME shows every value with its unit and source."))


def _print_values(listing: PresetListing) -> None:
    """Values in one column; each source once, behind the values that come from it."""
    screen = console()
    screen.print(Text(f"{listing.kind} {listing.name}", style="bold"))
    screen.print(Text(listing.title))
    numbers: dict[str, int] = {}
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("value of", overflow="fold")
    table.add_column("is", justify="right", overflow="fold")
    table.add_column("unit", no_wrap=True)
    table.add_column("source", justify="right", no_wrap=True)
    for row in listing.rows:
        number = numbers.setdefault(row.source, len(numbers) + 1) if row.source else None
        table.add_row(row.field, _value(row.value), row.unit, f"[{number}]" if number else "")
    if listing.rows:
        screen.print()
        screen.print(table)
        screen.print()
    sources = Table(box=None, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
    sources.add_column(justify="right", no_wrap=True)
    sources.add_column(ratio=1, overflow="fold")
    for source, number in numbers.items():
        sources.add_row(f"[{number}]", source)
    if numbers:
        screen.print(sources)


def _value(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _policies() -> Iterable[PresetListing]:
    for policy in POLICIES.values():
        rows = (
            PresetRow("writes_flash", policy.writes_flash, "", policy.source),
            PresetRow("frees_at_boundaries", policy.frees_at_boundaries, "", policy.source),
        )
        yield PresetListing("policy", policy.name, policy.summary, rows)


def _corpora() -> Iterable[PresetListing]:
    for name in corpora.names():
        parts = MIXES.get(name)
        if parts is not None:
            without = " without reviewers" if name == WITHOUT_REVIEWERS else ""
            title = f"the sessions of {', '.join(parts)}{without}"
            yield PresetListing("corpus", name, title, ())
            continue
        spec = specification.load(name)
        counts = {
            "sessions": spec.counts.sessions,
            "requests": spec.counts.requests,
            "tokens_written": spec.counts.tokens_written,
            "tokens_processed": spec.counts.tokens_processed,
        }
        rows = tuple(
            PresetRow(key, count.value, "tokens" if key.startswith("tokens") else "", count.source)
            for key, count in counts.items()
            if count is not None
        )
        sizes = f"{spec.counts.sessions.value:,} sessions, {spec.counts.requests.value:,} requests"
        yield PresetListing("corpus", name, f"{spec.benchmark}: {sizes}, synthetic", rows)

"""What was reported, recounted, inferred, filled in, left out and skipped, with reasons."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Any, Final

#: Fields that the canonical form needs and no log states; finding them is no repair.
_RECOVERED: Final = frozenset({"prompt_tokens", "session", "stripping", "turn"})


@dataclass(slots=True)
class Quality:
    """Counts that travel with a trace.

    `requests` counts requests by usage source; `dropped` rows of the source by reason; `excluded`
    calls that are no requests by reason; `filled` values that the log lacks, by field and way;
    `skipped` files by name with the reason; `ignored` columns and fields that mean
    nothing here, by files that have them; `adjusted` what the builder had to change in a log
    that contradicts itself, by kind.
    """

    requests: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    excluded: Counter[str] = field(default_factory=Counter)
    adjusted: Counter[str] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    filled: dict[str, Counter[str]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    orphan_subagents: int = 0
    empty_sessions: int = 0

    def fill(self, field_name: str, how: str, count: int = 1) -> None:
        """Count `count` values of `field_name` filled in by `how`."""
        ways = self.filled.get(field_name)
        if ways is None:
            ways = self.filled[field_name] = Counter()
        ways[how] += count

    def merge(self, other: Quality) -> None:
        """Add the counts of `other`."""
        for ours, theirs in zip(self._counters(), other._counters(), strict=True):
            if theirs:
                ours += theirs
        for name, ways in other.filled.items():
            for how, count in ways.items():
                self.fill(name, how, count)
        self.skipped.update(other.skipped)
        self.orphan_subagents += other.orphan_subagents
        self.empty_sessions += other.empty_sessions

    def clear(self) -> None:
        """Forget all counts."""
        for counter in self._counters():
            counter.clear()
        self.filled.clear()
        self.skipped.clear()
        self.orphan_subagents = self.empty_sessions = 0

    def _counters(self) -> tuple[Counter[str], ...]:
        return self.requests, self.dropped, self.excluded, self.adjusted, self.ignored

    def first_repair(self, *, tokenised: bool) -> str | None:
        """The first thing that had to be mended or guessed, in words; None if nothing had.

        Structure that no log states (prompt lengths, turns, stripping, sessions) is recovered, not
        repaired, and rows that mean nothing (empty files, strangers, calls that are no requests)
        are no fault of the log. `tokenised`: text was counted by a tokenizer that the user named,
        so an inferred count is one only where a value was filled in as well.
        """
        for word in ("recounted", "inferred"):
            if self.requests.get(word) and not (word == "inferred" and tokenised):
                return f"{self.requests[word]} requests {word}"
        for word, counts in (("dropped", self.dropped), ("adjusted", self.adjusted)):
            for reason, count in sorted(counts.items()):
                return f"{word}: {count} × {reason}"
        for name, ways in sorted(self.filled.items()):
            if name not in _RECOVERED:
                how, count = min(ways.items())
                return f"filled in: {count} × {name}: {how}"
        if self.orphan_subagents:
            return f"{self.orphan_subagents} sub-agents without a lead"
        return None

    def replace(self, other: Quality) -> None:
        """Take over the counts of `other`, which stays as it is."""
        for each in fields(self):
            setattr(self, each.name, deepcopy(getattr(other, each.name)))

    def snapshot(self) -> Quality:
        """A copy of all counts for `restore`, without the skipped files, which may be many."""
        return replace(
            self,
            **{
                each.name: {} if each.name == "skipped" else deepcopy(getattr(self, each.name))
                for each in fields(self)
            },
        )

    def restore(self, snapshot: Quality, skipped_files: int) -> None:
        """Go back to a snapshot, when so many files had been skipped."""
        skipped = dict(islice(self.skipped.items(), skipped_files))
        for each in fields(self):
            setattr(self, each.name, deepcopy(getattr(snapshot, each.name)))
        self.skipped = skipped

    def to_json(self) -> dict[str, Any]:
        """As ``trace import --json`` and ``trace.json`` give it; keys sorted, zero counts kept."""
        return {
            "reported": self.requests.get("reported", 0),
            "recounted": self.requests.get("recounted", 0),
            "inferred": self.requests.get("inferred", 0),
            "dropped": sum(self.dropped.values()),
            "dropped_reasons": dict(sorted(self.dropped.items())),
            "excluded": sum(self.excluded.values()),
            "excluded_reasons": dict(sorted(self.excluded.items())),
            "adjusted": dict(sorted(self.adjusted.items())),
            "ignored": dict(sorted(self.ignored.items())),
            "filled": {
                name: dict(sorted(ways.items())) for name, ways in sorted(self.filled.items())
            },
            "skipped_files": dict(sorted(self.skipped.items())),
            "orphan_subagents": self.orphan_subagents,
            "empty_sessions": self.empty_sessions,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Quality:
        """The inverse of `to_json`; raises `ValueError` or `KeyError` for what it never gives."""
        return cls(
            requests=Counter({key: _count(value, key) for key in _REQUEST_COUNTS if value[key]}),
            dropped=_counted(value, "dropped_reasons"),
            excluded=_counted(value, "excluded_reasons"),
            adjusted=_counted(value, "adjusted"),
            ignored=_counted(value, "ignored"),
            filled={name: _counted(value["filled"], name) for name in value["filled"]},
            skipped={str(name): str(why) for name, why in value["skipped_files"].items()},
            orphan_subagents=_count(value, "orphan_subagents"),
            empty_sessions=_count(value, "empty_sessions"),
        )


_REQUEST_COUNTS = ("reported", "recounted", "inferred")


def _count(counts: dict[str, Any], name: str) -> int:
    count = counts[name]
    if type(count) is not int or count < 0:
        raise ValueError(f"{name} must be a count, not {count!r}")
    return count


def _counted(value: dict[str, Any], name: str) -> Counter[str]:
    return Counter({reason: _count(value[name], reason) for reason in value[name]})

"""What counts as lasting, on runs written by hand."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lachesis.questions import largest_load_for
from lachesis.questions.answer import Run, years_of
from lachesis.simulation import Load

ADMITTED = 64


class Node:
    """Stands for a scenario: gives a run at every load."""

    policies = ("hbm-first",)

    def __init__(self, years: Callable[[int], float | None], written: int) -> None:
        self.runs: list[Run] = []
        self._years, self._written = years, written

    def run(self, policies: Sequence[str], load: Load) -> list[Run]:
        sessions = ADMITTED if load.kind == "each" else load.sessions
        found: dict[str, Any] = {
            "policy": policies[0], "load_sessions": sessions, "admitted_sessions": ADMITTED,
            "hbf_bytes_per_gpu": 1, "hbf_write_bytes": self._written,
            "hbf_lifetime_years": self._years(sessions),
        }  # fmt: skip
        self.runs.append(found)
        return [found]


def largest(node: Node, years: float) -> Any:
    (finding,) = largest_load_for(node, years).findings  # type: ignore[arg-type]
    return finding


def test_flash_that_nothing_is_written_to_lasts_at_every_load_that_the_slo_admits():
    finding = largest(Node(lambda _: None, 0), 5.0)
    assert finding.found["load_sessions"] == ADMITTED
    assert finding.found["bound_by"] == "slo"
    assert "lasts for ever, as nothing is written to it" in finding.sentence


def test_flash_that_only_refreshing_wears_lasts_as_long_as_it_does():
    finding = largest(Node(lambda sessions: 4.0 if sessions < 8 else 3.0, 0), 5.0)
    assert finding.found is None
    assert "at one live session already the flash lasts 4 years only" in finding.sentence


def test_the_largest_load_is_found_between_what_lasts_and_what_does_not():
    finding = largest(Node(lambda sessions: 200.0 / sessions, 1), 5.0)
    assert finding.found["load_sessions"] == 40
    assert finding.found["bound_by"] == "years"


@pytest.mark.parametrize(
    ("policy", "flash_bytes", "years"),
    [("hbm-first", 1, float("inf")), ("hbm-first", 0, 0.0), ("hbm-only", 1, 0.0)],
)
def test_only_flash_that_could_wear_lasts_for_ever(policy, flash_bytes, years):
    run = {"policy": policy, "hbf_lifetime_years": None, "hbf_bytes_per_gpu": flash_bytes}
    assert years_of(run) == years

"""The examples of docs/pricing.md and docs/wear.md, and the figures in their tables."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from .son_et_al import SERVINGS
from .test_wear import step_ms

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["pricing.md", "wear.md"])
def test_examples_print_what_the_page_says(page):
    # Fences are blanked: a closing one would be read as expected output.
    text = re.sub(r"^```.*$", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    examples = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    assert len(examples.examples) >= 8
    outcome = doctest.DocTestRunner(verbose=False).run(examples)
    assert outcome.failed == 0


def test_the_table_of_step_times():
    rows = re.findall(
        r"^\| [\d,]+/[\d,]+ \| [\d,.]+ \| ([\d.]+) ms \| (.*) \|$",
        (DOCS / "pricing.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    assert len(rows) == len(SERVINGS)
    roofline = "hardware.step_overhead_ms=0"
    for (published, ours), serving in zip(rows, SERVINGS, strict=True):
        assert float(published) == round(serving.step_s * 1e3, 1)
        times = [
            step_ms(serving, roofline),
            step_ms(serving, roofline, "hardware.memory_efficiency=0.875"),
            step_ms(serving),
        ]
        cells = [
            f"{ms:.1f} ms ({ms / (serving.step_s * 1e3) - 1:+.0%})".replace("%", " %").replace(
                "-", "−"
            )
            for ms in times
        ]
        assert ours.split(" | ") == cells

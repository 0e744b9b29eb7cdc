"""The provenance page says what is measured, and says when something is missed."""

from pathlib import Path

import pytest

from lachesis.calibrate import provenance
from lachesis.traces.generator import specification


@pytest.fixture(scope="module")
def page():
    return provenance.page()


def test_the_page_covers_every_workload_and_value(page):
    for name in specification.names():
        assert f"### {name}" in page
        assert f"| {name} | tokens written |" in page
    assert "`temporal.turns.sigma`" in page
    assert "The spawn signal is planted" in page


def test_the_page_in_the_project_is_this_one(page):
    kept = Path(__file__).parents[3] / "traces" / "README.md"

    def lines(text):
        # The regression's last digit depends on the linear algebra library.
        return [line for line in text.splitlines() if not line.startswith("| shortest tenth")]

    assert lines(kept.read_text("utf-8")) == lines(page)


def test_a_miss_is_marked(monkeypatch):
    measure = provenance.measure

    def measure_wrong(trace):
        figures = measure(trace)
        wrong = {"requests": 1.0, "worker_tau": 0.9}
        return {name: wrong.get(name, value) for name, value in figures.items()}

    monkeypatch.setattr(provenance, "measure", measure_wrong)
    monkeypatch.setattr(provenance, "_signal_figures", lambda wanted: "")
    page = provenance.page()
    assert "| webarena | requests | 2,190 | 1 | -99.95% | **missed** |" in page
    assert "**appworld, deepsearchqa, swe-bench-verified, terminal-bench, webarena**" in page


def test_main_writes_the_file_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "page", lambda: "text\n")
    assert provenance.main([str(tmp_path / "page.md")]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]
    assert (tmp_path / "page.md").read_text("utf-8") == "text\n"

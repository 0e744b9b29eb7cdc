"""The examples run, and print what they say."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture
def run(monkeypatch, capsys):
    def run_example(name: str) -> str:
        monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return run_example


def test_the_engine_in_memory_shows_where_everything_lies(run):
    lines = run("in_memory_engine.py").splitlines()
    by_event = {line[:44].strip(): line[44:] for line in lines}
    fallback = by_event["request 3 writes 8 to b-worker"]
    assert "HBM a a a a a b b b b b b b" in fallback
    assert "HBF Pa Pa Pa Pa L L b ." in fallback
    assert "a-worker returns: 5 freed, 4 still shared" in by_event
    assert "b-worker returns in request 4: 8 deferred" in by_event
    assert "request 4 ends: 8 freed" in by_event
    last = by_event["the session ends: 9 freed"]
    assert set(last.replace("HBM", "").replace("HBF", "").split()) == {"."}


def test_two_threads_lose_no_block(run):
    printed = run("two_threads.py")
    assert "sessions closed by two threads" in printed
    assert "HBM: 2000 of 2000 free, the engine's list has 2000" in printed
    assert "HBF: 6000 of 6000 free, the engine's list has 6000" in printed


def test_they_are_short():
    for example in EXAMPLES.glob("*.py"):
        assert len(example.read_text().splitlines()) <= 120, example.name

"""Runs the command line: as a process of its own, and in this process where that is enough."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from lachesis.cli.entry import execute


class Ended(NamedTuple):
    """How a command line ended."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def lachesis() -> Callable[..., Ended]:
    """Runs ``lachesis ARGUMENTS`` as a process in `cwd`."""

    def start(*arguments: str, cwd: Path) -> Ended:
        done = subprocess.run(
            [sys.executable, "-m", "lachesis", *arguments],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return start


@pytest.fixture
def lachesis_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Runs ``lachesis ARGUMENTS`` in this process, which saves its start-up, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Ended:
        code = execute(arguments)
        out, err = capfd.readouterr()
        return Ended(code, out, err)

    return call


def log_lines(rows: list[dict[str, object]]) -> str:
    """A per-request log as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


#: Two sessions of a few requests each, as a proxy would log them.
SMALL_LOG: list[dict[str, object]] = [
    {"session": "a", "turn": 0, "input_tokens": 400, "output_tokens": 40},
    {"session": "a", "turn": 0, "input_tokens": 500, "output_tokens": 30},
    {"session": "a", "turn": 1, "input_tokens": 560, "output_tokens": 25},
    {"session": "b", "turn": 0, "input_tokens": 300, "output_tokens": 50},
    {"session": "b", "turn": 0, "input_tokens": 380, "output_tokens": 20},
]


@pytest.fixture
def small_log(tmp_path: Path) -> Path:
    """`SMALL_LOG` in ``small.jsonl``."""
    path = tmp_path / "small.jsonl"
    path.write_text(log_lines(SMALL_LOG))
    return path

"""Long reading as a user sees it: progress on a terminal only, and both ways to stop it."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

WORDS = ("trace", "import", "log.jsonl", "-o", "out.trace")
ROW = '{{"session":"s{0}","input_tokens":{1},"output_tokens":7}}\n'


def write_log(folder: Path, rows: int) -> None:
    (folder / "log.jsonl").write_text("".join(ROW.format(n // 9, 900 + n % 9) for n in range(rows)))


def on_terminal(folder: Path, *words: str) -> str:
    """What standard error shows where it is a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "lachesis", *words], cwd=folder, stdout=subprocess.PIPE,
        stderr=theirs, env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    ) as process:  # fmt: skip
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # the other end was closed
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
        assert process.wait(timeout=60) == 0
    return shown.decode()


def test_a_terminal_shows_files_and_bytes_unless_told_to_be_quiet(tmp_path: Path) -> None:
    write_log(tmp_path, 9000)
    shown = on_terminal(tmp_path, *WORDS)
    assert "reading file 1 of 1" in shown
    assert "kB" in shown
    assert on_terminal(tmp_path, *WORDS, "--quiet") == ""


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_reading_stops_when_asked_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals, code: int, said: str
) -> None:
    write_log(tmp_path, 300_000)
    with subprocess.Popen(
        [sys.executable, "-m", "lachesis", *WORDS], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        time.sleep(3.0)
        assert process.poll() is None, "reading ended by itself: make the log longer"
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (code, "", f"lachesis: {said}\n")
    assert [file.name for file in tmp_path.iterdir()] == ["log.jsonl"]

"""What the engine costs grows with requests, and hardly with their tokens: counted, not timed.

Needs Valgrind and the example `plain_replay`, which `make test-rust` builds; skipped, visibly,
where one is absent.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

_PROGRAM = Path(__file__).parents[2] / "target" / "release" / "examples" / "plain_replay"


def instructions(*, requests: int = 1_500, input_tokens: int = 2_048, output_tokens: int = 256):
    """Instructions that a replay takes for one request; making the workload is left out."""
    if shutil.which("valgrind") is None:
        pytest.skip("Valgrind is not installed")
    if not _PROGRAM.exists():
        pytest.skip("not built: cargo build --release -p lachesis-core --example plain_replay")

    def counted(repeats: int) -> int:
        words = map(str, (_PROGRAM, requests, input_tokens, output_tokens, repeats))
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *words],
            check=True,
            capture_output=True,
            text=True,
        )
        return int(re.search(r"Collected : (\d+)", done.stderr).group(1))

    return (counted(1) - counted(0)) / requests


@pytest.fixture(scope="module")
def usual() -> float:
    return instructions()


def test_eight_times_the_requests_cost_eight_times_as_much(usual):
    assert instructions(requests=12_000) == pytest.approx(usual, rel=0.1)


@pytest.mark.parametrize("tokens", [{"input_tokens": 32_768}, {"output_tokens": 4_096}])
def test_sixteen_times_the_tokens_cost_hardly_more(usual, tokens):
    assert instructions(**tokens) < 1.25 * usual

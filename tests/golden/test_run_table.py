"""The whole text that ``run`` prints, for a trace by hand on constant steps.

No delay of the trace is drawn and a step takes 50 ms, so that no calibration and no preset but the
memory's can move a figure. To accept a change after reading it:
``LACHESIS_ACCEPT=1 pytest tests/golden``.
"""

import os
from pathlib import Path

import pytest

from lachesis.cli.entry import execute
from lachesis.traces import Edge, EdgeKind, Role, TraceBuilder

_EXPECTED = Path(__file__).parent / "run_table.txt"


def trace_by_hand(path: Path) -> None:
    """A session of two turns with reasoning, and one of a lead with a worker and a reviewer."""
    builder = TraceBuilder(source="by hand")
    chat = builder.session("chat", workload="hand", harness="hand")
    chat.request(
        input_tokens=1200, prompt_tokens=800, output_tokens=300, reasoning_tokens=200,
        tools=["retrieval"],
    )  # fmt: skip
    chat.request(
        input_tokens=1700, output_tokens=100, observations=1, delay_s=2.0,
    )  # fmt: skip
    chat.request(input_tokens=1750, output_tokens=250, opens_turn=True, delay_s=60.0)
    team = builder.session("team", workload="hand", harness="hand")
    lead = team.request(input_tokens=2000, output_tokens=100, tools=["spawn"])
    team.spawn("w", spawned_by=lead, role=Role.WORKER)
    worker = team.request(agent="w", input_tokens=900, output_tokens=400)
    worker = team.request(agent="w", input_tokens=1600, output_tokens=200, delay_s=5.0)
    team.spawn("r", spawned_by=lead, role=Role.REVIEWER)
    team.request(
        agent="r", input_tokens=1100, output_tokens=80, after=[Edge(worker, EdgeKind.TOOL, 0.0)]
    )
    end = team.request(input_tokens=2300, output_tokens=150, observations=2, delay_s=0.0)
    team.returns("w", to=end)
    team.returns("r", to=end)
    builder.build().save(path)


def test_the_text_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    trace_by_hand(Path("hand.trace"))
    code = execute(
        ["run", "hand.trace", "--load", "16", "--step-time", "0.05", "--turnovers", "20",
         "--policy", "hbm-first", "--policy", "hbf-only", "--policy", "hbm-only",
         "--policy", "lachesis-deterministic"]
    )  # fmt: skip
    out, err = capfd.readouterr()
    assert (code, err) == (0, "")
    text = "".join(f"{line.rstrip()}\n" for line in out.splitlines())
    if os.environ.get("LACHESIS_ACCEPT"):
        _EXPECTED.write_text(text, encoding="utf-8")
    assert text == _EXPECTED.read_text(encoding="utf-8")

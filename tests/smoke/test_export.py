"""``trace export`` and ``run --trace-events`` as users start them."""

import json
from collections.abc import Callable

import pytest

Lachesis = Callable[..., tuple[int, str, str]]

ENDINGS = {
    "agentic-mooncake": "a.agentic-mooncake.jsonl",
    "mooncake": "a.mooncake.jsonl",
    "frontier": "a.frontier.csv",
    "oracle-general": "a.oracleGeneral",
    "flash-device": "a.flash.csv",
}


def width(text: str) -> int:
    return max(len(line) for line in text.splitlines())


@pytest.mark.parametrize("name", ENDINGS)
def test_the_ending_or_the_option_names_the_format(name, lachesis_here: Lachesis, tmp_path):
    flash = ("--load", "16", "--horizon", "60s", "--memory", "1/7") * (name == "flash-device")
    by_ending = lachesis_here("trace", "export", "tau3-airline", "-o", ENDINGS[name], *flash)
    assert (by_ending[0], by_ending[2]) == (0, "")
    assert f"Wrote {ENDINGS[name]}." in by_ending[1]
    assert width(by_ending[1]) <= 80
    words = ("trace", "export", "tau3-airline", "-o", "b.bin", "--format", name, "--quiet")
    assert lachesis_here(*words, *flash) == (0, "", "")
    assert (tmp_path / "b.bin").read_bytes() == (tmp_path / ENDINGS[name]).read_bytes()
    assert len(list(tmp_path.iterdir())) == 2, "nothing else is left behind"


def test_an_export_is_read_by_run(lachesis_here: Lachesis):
    words = ("trace", "export", "tau3-airline", "-o", "a.mooncake.jsonl", "--load", "8", "--quiet")
    assert lachesis_here(*words)[0] == 0
    code, out, err = lachesis_here(
        "run", "a.mooncake.jsonl", "--load", "recorded", "--policy", "hbf-only"
    )
    assert (code, err) == (0, "")
    assert "hbf-only" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-o", "a.csv"), "its ending names no format"),
        (("-o", "a.csv", "--format", "vidur"), "must be one of agentic-mooncake"),
        (("-o", "a.mooncake.jsonl", "--policy", "hbf-only"), "has no effect on format mooncake"),
        (("-o", "a.mooncake.jsonl", "--cold"), "has no effect on format mooncake"),
        (("-o", "a.oracleGeneral", "--block-tokens", "16"), "has no effect on format oracle"),
        (("-o", "a.mooncake.jsonl", "--block-tokens", "0"), "must be from 1 to 65536"),
        (("-o", "a.mooncake.jsonl", "--load", "auto"), "searches for no load"),
        (("-o", "a.mooncake.jsonl", "--load", "recorded"), "without start_s"),
        (("-o", "a.flash.csv", "--gpu", "9"), "must be a GPU of the node"),
        (("-o", "a.flash.csv", "--memory", "8/0"), "--memory = 8/0, has no flash to write to"),
        (("-o", "a.flash.csv", "--horizon", "x"), "--horizon"),
        (("-o", "none/a.flash.csv"), "no folder"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(words, said, lachesis_here: Lachesis, tmp_path):
    code, out, err = lachesis_here("trace", "export", "tau3-airline", *words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_an_export_does_not_replace_what_it_reads(lachesis_here: Lachesis, tmp_path):
    log = tmp_path / "a.mooncake.jsonl"
    log.write_text('{"timestamp":0,"input_length":5,"output_length":1,"hash_ids":[1]}\n')
    before = log.read_text()
    code, _, err = lachesis_here("trace", "export", "a.mooncake.jsonl", "-o", "a.mooncake.jsonl")
    assert code == 2
    assert "would overwrite what is read" in err
    assert log.read_text() == before


def test_a_window_of_a_run(lachesis_here: Lachesis, tmp_path):
    words = ("run", "tau3-airline", "--load", "16", "--turnovers", "2", "--quiet")
    window = ("--trace-events", "w.json", "--trace-events-window", "2min:20s")
    assert lachesis_here(*words, *window) == (0, "", "")
    document = json.loads((tmp_path / "w.json").read_text())
    times = [event["ts"] for event in document["traceEvents"] if event["ph"] == "C"]
    assert 120e6 <= min(times) <= max(times) < 140e6


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--trace-events-window", "1min:1s"), "has no effect without --trace-events"),
        (("--trace-events", "w.json", "--trace-events-window", "1min"), "must be START:LENGTH"),
        (("--trace-events", "w.txt"), "a .json file"),
        (("--trace-events", "w.json", "--json", "w.json"), "would overwrite what"),
        (("--trace-events", "w.json", "--trace-events-window", "90d:1s"), "starts after the end"),
    ],
)
def test_a_window_that_cannot_be_is_refused(words, said, lachesis_here: Lachesis, tmp_path):
    run = ("run", "tau3-airline", "--load", "16", "--turnovers", "2")
    code, out, err = lachesis_here(*run, *words)
    assert (code, out) == (2, "")
    assert said in err
    assert not (tmp_path / "w.json").exists()


@pytest.mark.parametrize("words", [("trace", "export"), ("run",)])
def test_help_fits_a_terminal(words, lachesis_here: Lachesis):
    code, out, err = lachesis_here(*words, "--help")
    assert (code, err) == (0, "")
    assert width(out) <= 80

"""Everything that users get wrong ends in one line that names it, the right code, and no file."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lachesis.traces import TraceBuilder

Row = dict[str, object]
GOOD: Row = {"session": "a", "input_tokens": 400, "output_tokens": 40}


def jsonl(*rows: Row) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def with_count(text: str) -> bytes:
    """A log whose second row has this text where output_tokens is."""
    return (
        jsonl(GOOD) + f'{{"session": "a", "input_tokens": 500, "output_tokens": {text}}}\n'.encode()
    )


@dataclass
class Case:
    """Files to write, words on the command line, and what the one line of the error says."""

    name: str
    words: str
    says: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict)


SHRUNK = b'{"session": "a", "input_tokens": 5, "output_tokens": 5}\n'
LOG = {"log.jsonl": jsonl(GOOD)}
RUN = "run log.jsonl --load 2 --turnovers 1 --json out.json"

CASES = [
    # What is read.
    Case("missing file", "run ./none.jsonl", ("none.jsonl", "no such file or folder")),
    Case("missing folder", "run none/", ("none", "no such file or folder")),
    Case("empty file alone", RUN, ("log.jsonl", "is empty"), {"log.jsonl": b""}),
    Case("blank file alone", RUN, ("log.jsonl", "is empty"), {"log.jsonl": b"\n \n"}),
    Case(
        "table with a header only", "run log.csv", ("log.csv", "no request"),
        {"log.csv": b"session,input_tokens,output_tokens\n"},
    ),
    Case(
        "table without a needed column", "run log.csv", ("log.csv", "output_tokens"),
        {"log.csv": b"session,input_tokens\na,5\n"},
    ),
    Case(
        "truncated JSON line", RUN, ("log.jsonl:2", "not valid JSON"),
        {"log.jsonl": jsonl(GOOD) + b'{"session": "a", "input_to'},
    ),
    Case("negative count", RUN,
         ("log.jsonl:2", "output_tokens", "-3"), {"log.jsonl": with_count("-3")}),
    Case("no output alone", RUN, ("log.jsonl", "no request remains"),
         {"log.jsonl": jsonl({**GOOD, "output_tokens": 0})}),
    Case("count of 2^31", RUN,
         ("log.jsonl:2", "2147483648"), {"log.jsonl": with_count("2147483648")}),
    Case("count of 1e300", RUN,
         ("log.jsonl:2", "output_tokens"), {"log.jsonl": with_count("1e300")}),
    Case("count of 1.5", RUN, ("log.jsonl:2", "1.5"), {"log.jsonl": with_count("1.5")}),
    Case("count NaN", RUN, ("log.jsonl:2",), {"log.jsonl": with_count("NaN")}),
    Case("count of letters", RUN, ("log.jsonl:2", "abc"), {"log.jsonl": with_count('"abc"')}),
    Case("count true", RUN, ("log.jsonl:2", "True"), {"log.jsonl": with_count("true")}),
    Case("count in a list", RUN,
         ("log.jsonl:2", "output_tokens"), {"log.jsonl": with_count("[3]")}),
    Case(
        "session larger than the memory", RUN, ("session big", "KV blocks"),
        {"log.jsonl": jsonl({"session": "big", "input_tokens": 2_000_000_000, "output_tokens": 1})},
    ),
    Case("binary garbage", RUN, ("log.jsonl",), {"log.jsonl": bytes(range(256)) * 40}),
    Case("unknown format by content", "run log.bin",
         ("log.bin", "no reader"), {"log.bin": b"\x00\x01"}),
    Case("folder of nothing readable", "run logs/",
         ("logs", "no request"), {"logs/a.txt": b"hello"}),
    Case("not gzip", "run log.jsonl.gz",
         ("log.jsonl.gz", "cannot be read"), {"log.jsonl.gz": b"{}{}"}),
    Case("not zstandard", "run log.jsonl.zst", ("log.jsonl.zst", "cannot be read"),
         {"log.jsonl.zst": b"{}{}"}),
    Case("no trace named", "run --load 2", ("TRACE", "at least one")),
    Case("unknown corpus", "run tau4", ("trace = tau4", "tau3")),
    Case("unknown --format", f"{RUN} --format claud", ("format = claud",), LOG),
    Case("wrong --format", f"{RUN} --format atif", ("log.jsonl",), LOG),
    Case("--map without =", f"{RUN} --map session", ("--map = session", "OURS=THEIRS"), LOG),
    Case("--map twice", f"{RUN} --map session=a --map session=b", ("--map", "twice"), LOG),
    Case("recorded load without starts", "run log.jsonl --load recorded",
         ("session a", "start_s"), LOG),
    # What it is replayed on.
    Case("unknown model", f"{RUN} --model llama-9", ("model", "llama-9", "did you mean"), LOG),
    Case("unknown policy", f"{RUN} --policy hbm-frist", ("hbm-frist", "hbm-first"), LOG),
    Case("policy twice", f"{RUN} --policy hbf-only --policy hbf-only", ("hbf-only", "once"), LOG),
    Case("unknown memory", f"{RUN} --memory 3/6", ("memory = 3/6", "2/6"), LOG),
    Case("memory of words", f"{RUN} --memory lots", ("memory = lots",), LOG),
    Case("unknown slo", f"{RUN} --slo tigth", ("tigth", "tight"), LOG),
    Case("unknown hardware", f"{RUN} --hardware b9000", ("b9000",), LOG),
    Case("unknown flash", f"{RUN} --flash floppy", ("floppy",), LOG),
    Case("model too large", f"{RUN} --hardware h100-sxm --memory 5/0 --model kimi-k2",
         ("kimi-k2", "GB"), LOG),
    Case("--set unknown key", f"{RUN} --set flash.pe_cycle=3",
         ("flash.pe_cycle", "pe_cycles"), LOG),
    Case("--set without =", f"{RUN} --set flash.pe_cycles", ("--set", "KEY=VALUE"), LOG),
    Case("--set of letters", f"{RUN} --set flash.pe_cycles=many", ("flash.pe_cycles = many",), LOG),
    Case("--set below its range", f"{RUN} --set flash.pe_cycles=0", ("flash.pe_cycles = 0",), LOG),
    Case("--set nan", f"{RUN} --set flash.write_amplification=nan", ("write_amplification",), LOG),
    Case("bad TOML", f"{RUN} --config c.toml", ("c.toml",), {**LOG, "c.toml": b"[flash\npe = 3"}),
    Case("unknown key in TOML", f"{RUN} --config c.toml", ("c.toml", "flash.pe"),
         {**LOG, "c.toml": b"[flash]\npe = 3\n"}),
    Case("missing TOML", f"{RUN} --config c.toml", ("c.toml",), LOG),
    # Load, SLO, measurement.
    *(
        Case(f"load {load}", f"run log.jsonl --json o.json --load={load}",
             (f"load = {load}", "from 1"), LOG)
        for load in ("0", "-1", "abc", "1e9", "99999999999", "poisson:0", "poisson:nan", "1.5")
    ),
    Case("--slo beside --tpot", f"{RUN} --slo tight --tpot 60ms", ("--slo = tight", "--tpot"), LOG),
    Case("--step-overhead beside --step-time", f"{RUN} --step-time 0.05 --step-overhead 1ms",
         ("--step-overhead", "--step-time"), LOG),
    Case("--tpot without unit", f"{RUN} --tpot 60", ("--tpot = 60", "unit"), LOG),
    Case("--ttft negative", f"{RUN} --ttft=-2s", ("--ttft = -2s",), LOG),
    Case("--step-time of 0", f"{RUN} --step-time 0", ("--step-time = 0",), LOG),
    Case("--step-time nan", f"{RUN} --step-time nan", ("--step-time = nan",), LOG),
    Case("--horizon in years", f"{RUN} --horizon 5y", ("--horizon = 5y",), LOG),
    Case("--precision of 0", f"{RUN} --precision 0", ("--precision = 0",), LOG),
    Case("--precision of letters", f"{RUN} --precision high", ("--precision = high",), LOG),
    Case("--turnovers nan", "run log.jsonl --turnovers nan", ("--turnovers = nan",), LOG),
    Case("--turnovers 0", "run log.jsonl --turnovers 0", ("--turnovers",), LOG),
    Case("--seed of letters", f"{RUN} --seed abc", ("--seed", "abc"), LOG),
    Case("--seed negative", f"{RUN} --seed=-1", ("seed = -1",), LOG),
    Case("--threads 0", f"{RUN} --threads 0", ("threads = 0",), LOG),
    Case("--turn-end unknown", f"{RUN} --turn-end later", ("--turn-end", "next-message"), LOG),
    # Where it goes.
    Case("--json into no folder", "run log.jsonl --load 2 --json no/out.json",
         ("no/out.json", "no folder"), LOG),
    Case("--json onto a folder", "run log.jsonl --load 2 --json logs", ("logs", "is a folder"),
         {**LOG, "logs/a.txt": b""}),
    Case("--json below a file", "run log.jsonl --load 2 --json log.jsonl/o.json",
         ("log.jsonl",), LOG),
    Case("--json takes no option", "run log.jsonl --load 2 --json --quiet",
         ("--json = --quiet",), LOG),
    Case("--json without a file", "run log.jsonl --load 2 --json", ("--json",), LOG),
    Case("--plot in .gif", f"{RUN} --plot p.gif", ("p.gif", ".png"), LOG),
    Case("--plot into no folder", f"{RUN} --plot no/p.png", ("no/p.png", "no folder"), LOG),
    # The command line itself.
    Case("unknown option", f"{RUN} --polcy hbf-only", ("--polcy",), LOG),
    Case("unknown command", "rnu log.jsonl", ("rnu",), LOG),
    Case("option twice", f"{RUN} --seed 1 --seed 2", ("--seed",), LOG),
    Case("presets of no kind", "presets shoes", ("shoes", "model")),
    Case("presets of no name", "presets model llama", ("llama", "did you mean")),
    # Traces.
    Case("import without output", "trace import log.jsonl", ("--output",), LOG),
    Case("import to another ending", "trace import log.jsonl -o out.parquet",
         ("out.parquet", ".trace"), LOG),
    Case("import into no folder", "trace import log.jsonl -o no/o.trace",
         ("no/o.trace", "no folder"), LOG),
    Case("import over a folder", "trace import log.jsonl -o logs.trace",
         ("logs.trace", "not replaced"),
         {**LOG, "logs.trace/a.txt": b""}),
    Case("strict import of a repair", "trace import log.jsonl -o o.trace --strict",
         ("strict", "context reset"),
         {"log.jsonl": LOG["log.jsonl"] + SHRUNK}),
    Case("import of nothing", "trace import -o o.trace", ("TRACE",)),
    Case("validate no trace", "trace validate logs.trace", ("logs.trace", "trace.json"),
         {"logs.trace/a.txt": b""}),
    Case("validate broken manifest", "trace validate l.trace",
         ("trace.json",), {"l.trace/trace.json": b"{"}),
    Case("validate another version", "trace validate l.trace", ("schema", "9"),
         {"l.trace/trace.json": b'{"schema": 9}'}),
    Case("generate no corpus", "trace generate tau4 -o o.trace", ("tau4", "tau3")),
    Case("generate at scale 0", "trace generate tau3-airline -o o.trace --scale 0",
         ("scale", "above 0")),
    Case("generate at scale nan", "trace generate tau3-airline -o o.trace --scale nan", ("scale",)),
    Case("generate from seed -1", "trace generate tau3-airline -o o.trace --seed=-1",
         ("seed = -1",)),
]  # fmt: skip


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def assert_refused(ended: tuple[int, str, str], says: tuple[str, ...]) -> None:
    """Exit code 2, nothing on standard output, one line on standard error with these words."""
    code, out, err = ended
    assert (code, out) == (2, ""), err
    assert err.startswith("lachesis: error: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    for words in says:
        assert words in err


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_line_and_nothing_left(
    case: Case, tmp_path: Path, lachesis_here: Callable[..., tuple[int, str, str]]
) -> None:
    for name, content in case.files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    before = files_below(tmp_path)
    assert_refused(lachesis_here(*case.words.split()), case.says)
    assert files_below(tmp_path) == before


def small_trace(path: Path) -> None:
    builder = TraceBuilder(source="by hand")
    session = builder.session("a", workload="w", harness="h")
    session.request(input_tokens=100, output_tokens=10, prompt_tokens=40)
    session.request(input_tokens=150, output_tokens=10)
    session.request(input_tokens=190, output_tokens=10, opens_turn=True)
    builder.build().save(path)


def point_after_forward(rows: list[Row]) -> None:
    rows[0]["after"] = [{"request": 2, "kind": "tool", "delay_s": 1.0}]


def point_after_at_itself(rows: list[Row]) -> None:
    rows[1]["after"] = [{"request": 1, "kind": "tool", "delay_s": 1.0}]


def close_before_use(rows: list[Row]) -> None:
    rows[-1]["closed_after"] = 0


def unknown_class(rows: list[Row]) -> None:
    rows[0]["class"] = "prmpt"


def name_no_segment(rows: list[Row]) -> None:
    rows[0]["segment"] = 77


def delay_of_nan(rows: list[Row]) -> None:
    rows[1]["after"] = [{"request": 0, "kind": "tool", "delay_s": float("nan")}]


def drop_all(rows: list[Row]) -> None:
    rows.clear()


@pytest.mark.parametrize("command", ["run", "trace validate"])
@pytest.mark.parametrize(
    ("table", "change", "says"),
    [
        ("requests", point_after_forward, ("after", "session a, request 0")),
        ("requests", point_after_at_itself, ("after", "session a, request 1")),
        ("requests", delay_of_nan, ("delay_s", "nan")),
        ("segments", close_before_use, ("session a, request 2", "after it was closed")),
        ("segments", unknown_class, ("class", "prmpt")),
        ("spans", name_no_segment, ("segment", "77")),
        ("spans", drop_all, ("t.trace",)),
        ("sessions", drop_all, ("t.trace",)),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_broken_traces(
    command: str,
    table: str,
    change: Callable[[list[Row]], None],
    says: tuple[str, ...],
    tmp_path: Path,
    lachesis_here: Callable[..., tuple[int, str, str]],
) -> None:
    place = tmp_path / "t.trace"
    small_trace(place)
    edit(place, table, change)
    assert_refused(lachesis_here(*command.split(), "t.trace"), says)


def edit(place: Path, table: str, change: Callable[[list[Row]], None]) -> None:
    file = place / f"{table}.parquet"
    stored = pq.read_table(file)
    rows = stored.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=stored.schema), file)
    manifest = json.loads((place / "trace.json").read_text())
    manifest["rows"][table] = len(rows)
    # Without digests, as other programs may leave it: the rules are what refuses it.
    manifest.pop("files", None)
    manifest.pop("sha256", None)
    (place / "trace.json").write_text(json.dumps(manifest))


def test_trace_with_zero_sessions(
    tmp_path: Path, lachesis_here: Callable[..., tuple[int, str, str]]
) -> None:
    place = tmp_path / "t.trace"
    small_trace(place)
    for table in ("sessions", "requests", "spans", "segments", "spawns"):
        edit(place, table, drop_all)
    assert_refused(lachesis_here("run", "t.trace"), ("t.trace", "holds no session"))


def test_a_truncated_table_of_a_trace(
    tmp_path: Path, lachesis_here: Callable[..., tuple[int, str, str]]
) -> None:
    small_trace(tmp_path / "t.trace")
    file = tmp_path / "t.trace" / "spans.parquet"
    file.write_bytes(file.read_bytes()[:-9])
    assert_refused(lachesis_here("run", "t.trace"), ("spans.parquet", "cannot be read"))


def test_an_empty_file_among_others_is_skipped_and_counted(
    tmp_path: Path, small_log: Path, lachesis_here: Callable[..., tuple[int, str, str]]
) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    code, _, err = lachesis_here(
        "run", "small.jsonl", "empty.jsonl", "--load", "2", "--turnovers", "1", "--json", "out.json"
    )
    assert (code, err) == (0, "")
    quality = json.loads((tmp_path / "out.json").read_text())["provenance"]["trace_quality"]
    assert quality["skipped_files"] == {"empty.jsonl": "is empty"}


def test_a_fault_of_ours_is_one_line_without_debug_and_a_traceback_with_it(
    monkeypatch: pytest.MonkeyPatch, lachesis_here: Callable[..., tuple[int, str, str]]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("lost\ncount")

    monkeypatch.setattr("lachesis.cli.presets_list.show_presets", broken)
    code, out, err = lachesis_here("presets")
    assert (code, out) == (1, "")
    assert err == (
        "lachesis: error: internal error: RuntimeError: lost count "
        "(run with --debug for the traceback)\n"
    )
    code, _, err = lachesis_here("presets", "--debug")
    assert code == 1
    assert "Traceback" in err
    assert err.endswith("lachesis: error: internal error: RuntimeError: lost count\n")

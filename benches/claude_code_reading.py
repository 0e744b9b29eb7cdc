"""How fast Claude Code transcripts are read: ``benches/claude_code_reading.py FOLDER [COPIES]``.

A folder of a few megabytes says little, so it is read in many copies whose ids differ (the same
ids again would be taken for resumed sessions). Seconds are CPU time, the fastest of several rounds,
beside what plain decoding of the same lines takes in the same process: the ratio says more than
the speed where other work disturbs the machine.
"""

import gc
import hashlib
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from lachesis.traces import read

ROUNDS = 7
# The part of each id that is replaced: of UUIDs, messages and tool calls.
IDS = re.compile(
    rb"[0-9a-f]{8}(?=-[0-9a-f]{4}-[0-9a-f]{4}-)|(?<=msg_)[0-9A-Za-z]{8}|(?<=toolu_)[0-9A-Za-z]{8}"
)


class Nothing(msgspec.Struct):
    """Passes over all that a line holds."""


def copy(folder: Path, target: Path, number: int) -> None:
    def other(found: re.Match[bytes]) -> bytes:
        return hashlib.blake2b(found[0] + b"%d" % number, digest_size=4).hexdigest().encode()

    for path in folder.rglob("*.json*"):
        if path.is_file():
            place = target / IDS.sub(other, str(path.relative_to(folder)).encode()).decode()
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(IDS.sub(other, path.read_bytes()))


def decoding(folder: Path, decode: Callable[[bytes], object]) -> None:
    for path in folder.rglob("*.jsonl"):
        with path.open("rb", buffering=1 << 18) as lines:
            for line in lines:
                try:
                    decode(line)
                except msgspec.DecodeError:
                    continue


def seconds(work: Callable[[], object]) -> float:
    gc.collect()
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    folder, copies = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    with tempfile.TemporaryDirectory() as name:
        for number in range(copies):
            copy(folder, Path(name) / f"copy-{number}", number)
        size = sum(path.stat().st_size for path in Path(name).rglob("*.jsonl"))
        works = {
            "passing over lines": lambda: decoding(
                Path(name), msgspec.json.Decoder(Nothing).decode
            ),
            "decoding lines": lambda: decoding(Path(name), msgspec.json.Decoder().decode),
            "reading into a trace": lambda: read([name]),
        }
        spent = {work: [] for work in works}
        for _ in range(ROUNDS):
            for work, run in works.items():
                spent[work].append(seconds(run))
        print(f"{size / 1e6:.0f} MB of JSONL")
        for work, taken in spent.items():
            share = min(spent["decoding lines"]) / min(taken)
            print(
                f"{work}: {size / 1e6 / min(taken):.0f} MB/s of CPU time, {share:.2f} of decoding"
            )


if __name__ == "__main__":
    main()

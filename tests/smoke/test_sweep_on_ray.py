"""Sweeps on a Ray cluster of this machine: the same bytes, whatever happens to its nodes."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lachesis.errors import InputError
from lachesis.results.directory import read_manifest
from lachesis.sweeps import Specification, SweepWatcher, on_threads, sweep

ray = pytest.importorskip("ray", reason="Ray is not installed: the extra lachesis[ray]")

pytestmark = pytest.mark.ray

ASKED = Specification.parse(
    {
        "timeline_interval": "600s",
        "grid": {
            "trace": ["tau3-airline", "tau3-retail"],
            "memory": ["1/7", "2/6"],
            "load": [4, 8],
            "seed": [1, 2],
            "turnovers": 2,
        },
    }
)


@pytest.fixture
def cluster() -> Iterator["ray.cluster_utils.Cluster"]:
    """A head that runs nothing, and one node with a core."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(directory)): file.read_bytes()
        for file in sorted(directory.rglob("*"))
        if file.is_file() and file.name not in ("manifest.json", ".lock")
    }


class _Kills(SweepWatcher):
    """Ends the only node once it has given results, and starts another in its place."""

    def __init__(self, cluster, node) -> None:
        self._cluster, self._node = cluster, node
        self.ended = 0

    def cell_ended(self, cell, outcome) -> None:
        self.ended += 1
        if self.ended == 3:
            self._cluster.remove_node(self._node, allow_graceful=False)
            self._cluster.add_node(num_cpus=1)


def test_a_cluster_of_two_nodes_leaves_the_same_bytes_though_a_node_dies(cluster, tmp_path):
    from lachesis.sweeps.ray_execution import on_ray

    sweep(ASKED, tmp_path / "threads", on_threads(2))
    node = cluster.add_node(num_cpus=1)
    watcher = _Kills(cluster, node)
    outcome = sweep(
        ASKED, tmp_path / "ray", on_ray(cluster.address), workers="ray", watcher=watcher
    )
    assert watcher.ended == 16
    assert outcome.manifest.counts() == {"done": 16, "infeasible": 0, "failed": 0, "pending": 0}
    assert contents(tmp_path / "ray") == contents(tmp_path / "threads")
    assert read_manifest(tmp_path / "ray").sessions[-1].workers == "ray"

    # Two nodes at once, and what is there is not run again.
    (tmp_path / "ray/runs/00002.parquet").unlink()
    (tmp_path / "ray/runs/00009.parquet").unlink()
    cluster.add_node(num_cpus=1)
    again = sweep(ASKED, tmp_path / "ray", on_ray(cluster.address))
    assert again.cells_run == 2
    assert contents(tmp_path / "ray") == contents(tmp_path / "threads")


def descendants(process: int) -> list[int]:
    """Every process that this one started, and that those started."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended since
            # The name may hold blanks; behind it stand state and parent.
            _, parent = status.read_text().rpartition(")")[2].split()[:2]
            children.setdefault(int(parent), []).append(int(status.parent.name))
    found, left = [], [process]
    while left:
        found += (more := children.get(left.pop(), []))
        left += more
    return found


def lives(process: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")
def test_an_interrupt_ends_a_cluster_of_this_machine_and_what_is_done_goes_on(tmp_path):
    specification = tmp_path / "spec.toml"
    specification.write_text(
        '[grid]\ntrace = "multi-agent"\nload = {from = 50, to = 79}\nturnovers = 20\n'
    )
    words = [sys.executable, "-m", "lachesis", "sweep", str(specification), "-o",
             str(tmp_path / "out"), "--ray", "local"]  # fmt: skip
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen(words, stdout=said, stderr=said)
        waited = time.monotonic()
        while not list((tmp_path / "out/runs").glob("[0-9]*.parquet")):
            assert process.poll() is None, (tmp_path / "said").read_text()
            assert time.monotonic() - waited < 200
            time.sleep(0.01)
        started = descendants(process.pid)
        assert len(started) > 4
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    told = (tmp_path / "said").read_text()
    assert f"go on with: lachesis sweep {specification} -o {tmp_path / 'out'} --ray local" in told
    assert "Traceback" not in told
    waited = time.monotonic()
    while any(map(lives, started)):
        assert time.monotonic() - waited < 60, [each for each in started if lives(each)]
        time.sleep(0.05)
    counted = read_manifest(tmp_path / "out").counts()
    assert counted["done"] == len(list((tmp_path / "out/runs").glob("[0-9]*.parquet"))) >= 1
    assert counted["pending"] > 0


def test_an_address_without_a_cluster_is_told():
    from lachesis.sweeps.ray_execution import on_ray

    for address, said in (("", "must be HOST:PORT"), ("127.0.0.1:1", "no Ray cluster")):
        with pytest.raises(InputError, match=said):
            on_ray(address)

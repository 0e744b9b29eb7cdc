"""The memory that a replay needs does not grow with the time that it simulates."""

import subprocess
import sys

SCRIPT = """
import resource, sys
from lachesis.policy import choose_policy
from lachesis.presets import Settings
from lachesis.simulation import Load, Plan, Stopping, replay, to_workload
from lachesis.traces import open_trace

workload = to_workload(open_trace("tau3-airline"))
for turnovers in (4.0, float(sys.argv[1])):
    stopping = Stopping(turnovers=turnovers, warm_up_turnovers=0.0, fixed=True)
    plan = Plan(Settings.choose(memory="2/6"), stopping=stopping)
    replay(workload, plan, choose_policy(sys.argv[2]), Load(kind="closed", sessions=64))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_kib(turnovers: float, policy: str) -> int:
    command = [sys.executable, "-c", SCRIPT, str(turnovers), policy]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_ten_times_the_time_needs_no_more_memory():
    for policy in ("hbm-first", "lachesis-deterministic"):
        short, long = peak_kib(8.0, policy), peak_kib(80.0, policy)
        assert long <= short * 1.05, f"{policy}: {short} KiB, ten times as long {long} KiB"

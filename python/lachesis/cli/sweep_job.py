"""Carries out ``lachesis sweep``."""

from __future__ import annotations

import os
import shlex
import sys

from lachesis.cli.sweep_progress import sweep_progress
from lachesis.cli.terminal import console
from lachesis.errors import EXIT_INTERNAL, InputError
from lachesis.report.sweep_summary import print_sweep
from lachesis.results.results_directory import read_stored_results
from lachesis.sweeps import Execute, Specification, on_threads, sweep


def execute_sweep(
    specification: str,
    output: str,
    *,
    jobs: int | None,
    ray: str | None,
    restart: bool,
    quiet: bool,
) -> int:
    """Run, write and print; the exit code says whether a run failed.

    Raises:
        InputError: anything in the specification, the traces or the directory that breaks a rule.
    """
    asked = Specification.load(specification)
    execute, workers = _workers(jobs, ray)
    with sweep_progress(quiet=quiet) as watcher:
        try:
            outcome = sweep(
                asked, output, execute, workers=workers, restart=restart, watcher=watcher
            )
        except KeyboardInterrupt:
            if watcher.cells:
                words = ["lachesis", "sweep", specification, "-o", output]
                words += [] if jobs is None else ["--jobs", str(jobs)]
                again = shlex.join(words if ray is None else [*words, "--ray", ray])
                sys.stderr.write(
                    f"lachesis: {watcher.ended_cells:,} of {watcher.cells:,} cells are done and "
                    f"kept; go on with: {again}\n"
                )
            raise
    if not quiet:
        runs = read_stored_results(output).runs
        print_sweep(console(), outcome.manifest, runs, outcome.cells_run)
    if outcome.failures:
        cell = next(entry for entry in outcome.manifest.cells if entry.failures)
        policy, reason = next(iter(cell.failures.items()))
        sys.stderr.write(
            f"lachesis: {outcome.failures:,} of {asked.runs:,} runs failed, the first "
            f"({policy}): {reason} (all in {output}/manifest.json)\n"
        )
        return EXIT_INTERNAL
    return os.EX_OK


def _workers(jobs: int | None, ray: str | None) -> tuple[Execute, str]:
    if ray is not None:
        if jobs is not None:
            raise InputError("has no effect beside --ray", field="--jobs", value=jobs)
        from lachesis.sweeps.ray_execution import on_ray

        return on_ray(ray), f"ray {ray}"
    if jobs is not None and jobs < 1:
        raise InputError("must be at least 1", field="--jobs", value=jobs)
    threads = len(os.sched_getaffinity(0)) if jobs is None else jobs
    return on_threads(threads), f"{threads} {'thread' if threads == 1 else 'threads'}"

"""`lachesis.sweep`: ``lachesis sweep`` from Python."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from lachesis.api import arguments
from lachesis.api.arguments import place, plain, table, truth
from lachesis.api.sweep_results import Results, read_results
from lachesis.errors import InputError
from lachesis.sweeps import Specification, SweepWatcher, on_threads
from lachesis.sweeps import sweep as run_sweep


def sweep(
    specification: str | Path | Mapping[str, object] | Specification | None = None,
    *,
    directory: str | Path | None = None,
    jobs: int | None = None,
    ray: str | None = None,
    restart: bool = False,
    watcher: SweepWatcher | None = None,
    set: Mapping[str, object] | None = None,
    **axes: object,
) -> Results:
    """Run every combination of traces, presets, policies, loads, seeds and preset values.

    Args:
        specification: a TOML file, or its content as a dict (docs/sweeps.md); or give `axes`.
        directory: where results go, and where a sweep that was interrupted goes on; without one
            nothing is kept on disk.
        jobs: threads; all cores if None. Changes no result.
        ray: address of a Ray cluster to run on, instead of threads.
        restart: throw away the results that are in the directory.
        watcher: hears about progress.
        set: axes over preset values, by key, such as ``{"flash.pe_cycles": [30_000, 100_000]}``.
        axes: the axes of a grid by the names of the options: a value, or a list of values.

    Raises:
        InputError: whatever breaks a rule, in one line, before anything runs.
        KeyboardInterrupt: Ctrl-C, or the notebook's stop button; with a directory, what has ended
            is kept.

    Combinations that cannot be run have a row that says why (`Results.infeasible`); runs that
    failed have none (`Results.failures`).

    Example:
        >>> import lachesis
        >>> results = lachesis.sweep(
        ...     trace="tau3-airline", policy="lachesis-deterministic", load=[8, 16], turnovers=2,
        ...     set={"flash.pe_cycles": [30_000, 100_000]},
        ... )
        >>> results.to_arrow().select(["load_sessions", "pe_cycles"]).to_pylist()[1]
        {'load_sessions': 8, 'pe_cycles': 100000}
        >>> results.failures
        {}
    """
    given = {key: plain(values) for key, values in {**axes, **table("set", set)}.items()}
    asked = _specification(specification, given)
    if ray is not None:
        if jobs is not None:
            raise InputError("has no effect beside ray", field="jobs", value=jobs)
        from lachesis.sweeps.ray_execution import on_ray

        execute, workers = on_ray(ray), f"ray {ray}"
    else:
        cores = len(os.sched_getaffinity(0))
        threads = cores if jobs is None else arguments.threads("jobs", jobs)
        execute, workers = on_threads(threads), f"{threads} threads"
    with tempfile.TemporaryDirectory(prefix="lachesis-sweep-") as scratch:
        folder = scratch if directory is None else place("directory", directory)
        anew = truth("restart", restart)
        run_sweep(asked, folder, execute, workers=workers, restart=anew, watcher=watcher)
        return read_results(folder)


def _specification(
    given: str | Path | Mapping[str, object] | Specification | None, axes: Mapping[str, object]
) -> Specification:
    if given is None:
        if not axes:
            raise InputError("name a specification, or axes such as trace= and memory=")
        return Specification.parse({"grid": axes}, source="sweep")
    if axes:
        name = next(iter(axes))
        raise InputError("has no effect beside a specification: write it there", field=name)
    if isinstance(given, Specification):
        return given
    if isinstance(given, Mapping):
        return Specification.parse(given, source="sweep")
    return Specification.load(place("specification", given))

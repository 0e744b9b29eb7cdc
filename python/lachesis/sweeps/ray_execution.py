"""Runs the shards of a sweep on a Ray cluster.

A task runs one shard and gives back plain rows, which the process that began the sweep writes: no
machine needs its files. Traces are put into Ray's object store, which holds one copy a node, and a
worker makes a trace's workload once for all its tasks. A task whose node dies is run again
elsewhere; rows do not depend on where they were made, so that the bytes are the same.
"""

from __future__ import annotations

import socket
import threading
import warnings
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lachesis import __version__
from lachesis.errors import InputError, LachesisError
from lachesis.simulation import KnownReplays, LoadedTrace
from lachesis.sweeps.cells import Cell, TraceSource
from lachesis.sweeps.execution import CellOutcome, Guesses, Traces, of_one_replay, run_cell
from lachesis.sweeps.sweep import Execute

if TYPE_CHECKING:
    from types import ModuleType

    from lachesis.traces import Trace

#: A cluster of this machine alone, which ends with the sweep.
LOCAL = "local"
#: How long one look at the tasks waits: Ctrl-C is heard in between.
_LOOK_S = 0.1
#: How long a cluster has to take a connection.
_CONNECT_S = 10.0
_PORT_MAX = 65535
#: Times that a task is begun again when its node dies; nothing else makes it fail.
_RETRIES = 8


def on_ray(address: str) -> Execute:
    """Runs shards on the Ray cluster at an address; ``local`` starts one on this machine.

    A cluster that the process is connected to already is used as it is. Every node needs this
    version of the package with the extra ``ray``, and the modules of policies in Python; traces
    and preset files are sent along.

    Raises:
        InputError: Ray is not installed, or there is no cluster at the address.
    """
    ray = _import_ray()
    if not ray.is_initialized():
        _check_address(address)

    def execute(
        shards: Sequence[Sequence[Cell]], traces: Traces, stop: threading.Event
    ) -> Generator[CellOutcome]:
        connected = ray.is_initialized()
        if not connected:
            _connect(ray, address)
        try:
            yield from _run(ray, shards, traces)
        finally:
            stop.set()
            if not connected:
                if address == LOCAL:
                    _end_autoscaler(ray)
                ray.shutdown()

    return execute


def _run(
    ray: ModuleType, shards: Sequence[Sequence[Cell]], traces: Traces
) -> Generator[CellOutcome]:
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(_run_shard)
    stored = {source: ray.put(loaded.trace) for source, loaded in traces.items()}
    waiting = []
    for cells in shards:
        sources = list(dict.fromkeys(cell.source for cell in cells))
        digests = {source: traces[source].trace.sha256 for source in sources}
        # References inside a container stay references: a worker fetches what it lacks.
        references = {source: [stored[source]] for source in sources}
        waiting.append(task.remote(list(cells), digests, references, __version__))
    try:
        while waiting:
            done, waiting = ray.wait(waiting, num_returns=1, timeout=_LOOK_S)
            for reference in done:
                yield from _fetch(ray, reference)
    finally:
        # A task that runs hears of it as of Ctrl-C, and its worker lives on.
        for reference in waiting:
            ray.cancel(reference)


def _fetch(ray: ModuleType, reference: object) -> list[CellOutcome]:
    try:
        outcomes: list[CellOutcome] = ray.get(reference)
    except ray.exceptions.RayTaskError as fault:
        if isinstance(fault.cause, LachesisError):
            raise fault.cause from fault
        raise
    except ray.exceptions.RayError as fault:
        said = str(fault).strip().partition("\n")[0]
        raise InputError(f"Ray gave up a task: {said}", field="--ray") from fault
    return outcomes


def _run_shard(
    cells: Sequence[Cell],
    digests: Mapping[TraceSource, str],
    references: Mapping[TraceSource, Sequence[Any]],
    version: str,
) -> list[CellOutcome]:
    """One shard, on a worker."""
    import ray

    if version != __version__:
        raise InputError(
            f"a node of the cluster has lachesis {__version__}, this process {version}: install "
            "the same everywhere",
            field="--ray",
        )
    outcomes = []
    guesses = Guesses()
    for group in of_one_replay(cells):
        known = KnownReplays()
        for cell in group:
            digest = digests[cell.source]
            if digest not in _LOADED:
                trace: Trace = ray.get(references[cell.source][0])
                _LOADED[digest] = LoadedTrace(trace)
            outcomes.append(run_cell(cell, _LOADED[digest], guesses=guesses, known=known))
    return outcomes


#: What a worker has made of the traces that it was given, by their digest.
_LOADED: dict[str, LoadedTrace] = {}


def _check_address(address: str) -> None:
    """Refuse what Ray would wait for, for minutes and with many lines."""
    rule = "must be HOST:PORT of a Ray cluster, auto, or local"
    if not isinstance(address, str):
        raise InputError(rule, field="--ray", value=repr(address))
    if address in ("auto", LOCAL):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isascii() and port.isdigit() and 0 < int(port) <= _PORT_MAX):
        raise InputError(rule, field="--ray", value=address)
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except (OSError, UnicodeError) as fault:
        said = getattr(fault, "strerror", None) or str(fault)
        raise InputError(f"no Ray cluster there: {said}", field="--ray", value=address) from fault


def _connect(ray: ModuleType, address: str) -> None:
    with warnings.catch_warnings():
        # Ray says what future versions of it will do; that is no business of a sweep.
        warnings.simplefilter("ignore", FutureWarning)
        try:
            ray.init(
                address=address,
                include_dashboard=False if address == LOCAL else None,
                log_to_driver=False,
                logging_level="error",
            )
        except (ConnectionError, ValueError, RuntimeError) as fault:
            said = " ".join(str(fault).split()) or type(fault).__name__
            raise InputError(f"no Ray cluster: {said}", field="--ray", value=address) from fault


def _end_autoscaler(ray: ModuleType) -> None:
    """End the autoscaler of a cluster of this machine, which has nothing to scale.

    At its end it reports to Ray's store, which `ray.shutdown` ends first, and then waits a second
    for the autoscaler in vain.
    """
    node = getattr(ray._private.worker, "_global_node", None)
    if node is not None and hasattr(node, "kill_monitor"):
        node.kill_monitor(check_alive=False)


def _import_ray() -> ModuleType:
    try:
        import ray
    except ImportError as fault:
        raise InputError(
            "needs Ray, which is not installed: pip install 'lachesis[ray]'", field="--ray"
        ) from fault
    module: ModuleType = ray
    return module

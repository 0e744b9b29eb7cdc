"""`lachesis.simulate`: ``lachesis run`` from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lachesis.api import arguments
from lachesis.api.arguments import names, option, option_or_none, table
from lachesis.api.run_results import Result
from lachesis.errors import InputError
from lachesis.results.document import run_document
from lachesis.simulation import DEFAULT_POLICIES, Load, RunOptions, Watcher, compare
from lachesis.sweeps import Value, interval_s, override
from lachesis.traces import Trace, open_trace
from lachesis.traces.opening import is_path


def simulate(
    trace: str | Path | Trace | Sequence[str | Path],
    *,
    model: str = "llama-4-maverick",
    memory: str | None = None,
    slo: str | None = None,
    policy: str | None = None,
    policies: Sequence[str] | None = None,
    load: int | str = "auto",
    seed: int = 1,
    set: Mapping[str, Value] | None = None,
    hardware: str = "rubin-hbf",
    flash: str = "hbf-slc",
    config: str | Path | None = None,
    step_time: float | None = None,
    step_overhead: str | None = None,
    tpot: str | None = None,
    ttft: str | None = None,
    turn_end: str | None = None,
    precision: float | str = 0.02,
    turnovers: float = 40.0,
    horizon: str = "60d",
    cold: bool = False,
    timeline_interval: str | None = None,
    threads: int | None = None,
    watcher: Watcher | None = None,
) -> Result:
    """Replay a trace on a decode node with HBM and flash, under one or several policies.

    Args:
        trace: a path, the name of a built-in corpus, several of them (joined), or a `Trace`.
        model: a preset's name, or a TOML file of one; likewise `hardware`, `flash` and `slo`.
        memory: split h/f of a GPU's slots over HBM and HBF; ``2/6`` if None.
        slo: ``tight`` if None.
        policy: the one policy; or name several in `policies`.
        policies: ``hbm-first`` and ``lachesis-deterministic`` if None.
        load: live sessions of the node, or a text as ``--load`` takes it: ``auto`` is the most that
            the SLO admits under hbm-first.
        seed: of all random draws.
        set: preset values by key, such as ``{"flash.pe_cycles": 30_000}``.
        hardware: GPU preset.
        flash: flash preset.
        config: a TOML file of preset values.
        step_time: a constant step in seconds, instead of pricing.
        step_overhead: fixed part of a priced step, such as ``"35ms"``.
        tpot: limit of p99 TPOT, such as ``"60ms"``, instead of `slo`.
        ttft: limit of p99 TTFT, such as ``"2s"``, instead of `slo`.
        turn_end: ``"last-output"`` or ``"next-message"``.
        precision: half-width of the 95 % interval to reach, relative.
        turnovers: end after so many times the load in ended sessions.
        horizon: end after so much simulated time.
        cold: start hbm-first from an empty memory.
        timeline_interval: simulated time between two rows of the timeline, such as ``"60s"``.
        threads: policies replayed at once; all cores if None. Changes no result.
        watcher: hears about progress.

    Raises:
        InputError: whatever breaks a rule, in one line.
        KeyboardInterrupt: Ctrl-C, or the notebook's stop button; all threads have ended by then.

    Example:
        >>> import lachesis
        >>> result = lachesis.simulate("tau3-airline", memory="1/7", policy="hbf-only", load=8,
        ...                            set={"flash.pe_cycles": 30_000}, turnovers=2)
        >>> run = result["hbf-only"]
        >>> run["memory"], run["pe_cycles"], run["hbm_write_bytes"]
        ('1/7', 30000, 0)
    """
    if policy is not None and policies is not None:
        raise InputError("has no effect beside policies", field="policy", value=policy)
    several = DEFAULT_POLICIES if policies is None else names("policies", policies)
    chosen = several if policy is None else (policy,)
    given = trace if isinstance(trace, Trace) else None
    written: list[str | Path] = [] if isinstance(trace, Trace) else names("trace", trace)
    changes = {key: option(key, value) for key, value in table("set", set).items()}
    every: dict[str, Any] = {
        **{key: option(key, value) for key, value in {
            "model": model, "hardware": hardware, "flash": flash, "load": load, "seed": seed,
            "precision": precision, "turnovers": turnovers, "horizon": horizon, "cold": cold,
        }.items()},
        **{key: option_or_none(key, value) for key, value in {
            "memory": memory, "slo": slo, "config": config, "step_time": step_time,
            "step_overhead": step_overhead, "tpot": tpot, "ttft": ttft, "turn_end": turn_end,
        }.items()},
    }  # fmt: skip
    options = RunOptions(
        traces=tuple(str(name) for name in written),
        set=tuple(override(key, value) for key, value in changes.items()),
        policies=tuple(str(option("policy", name)) for name in chosen),
        **every,
    )
    plan, asked = options.plan(), Load.parse(options.load)
    if timeline_interval is not None:
        plan = replace(plan, timeline_interval_s=interval_s(timeline_interval))
    if threads is None:
        threads = min(len(os.sched_getaffinity(0)), len(options.policies))
    opened = open_trace(*written) if given is None else given
    comparison = compare(
        opened, plan, options.policies, asked,
        threads=arguments.threads("threads", threads), watcher=watcher,
    )  # fmt: skip
    corpora = [str(name) for name in dict.fromkeys(written) if not is_path(name)]
    return Result(run_document(comparison, corpora=corpora), comparison)

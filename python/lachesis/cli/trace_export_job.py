"""Carries out ``lachesis trace export``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from lachesis.cli.reading import read_traces
from lachesis.cli.terminal import console
from lachesis.cli.waiting import waiting
from lachesis.presets import Settings, apply_overrides
from lachesis.quantities import parse_seconds
from lachesis.results.export import (
    ExportFormat,
    block_tokens_of,
    check_options,
    choose_format,
    request_times,
    write_flash_trace,
    write_oracle_general,
    write_requests,
)
from lachesis.results.files import check_apart, check_output, replaced
from lachesis.simulation import Load, Plan, Stopping
from lachesis.traces import Trace

_FLASH_LOAD = "400"


@dataclass(frozen=True)
class ExportOptions:
    """Options as written; None where left out."""

    traces: tuple[str, ...]
    output: str
    format: str | None
    block_tokens: int | None
    input_format: str | None
    map: tuple[str, ...]
    load: str | None
    seed: int | None
    model: str | None
    memory: str | None
    policy: str | None
    horizon: str | None
    gpu: int | None
    set: tuple[str, ...]
    cold: bool

    def of_some_formats(self) -> dict[str, object]:
        """Options that not every format knows."""
        return {
            "--block-tokens": self.block_tokens,
            "--load": self.load,
            "--seed": self.seed,
            "--model": self.model,
            "--memory": self.memory,
            "--policy": self.policy,
            "--horizon": self.horizon,
            "--gpu": self.gpu,
            "--set": self.set,
            "--cold": self.cold,
        }

    def settings(self) -> Settings:
        """The presets that were chosen."""
        names = {"model": self.model, "memory": self.memory}
        chosen = {name: value for name, value in names.items() if value is not None}
        return apply_overrides(Settings.choose(**chosen), self.set)

    def plan(self) -> Plan:
        """The replay for a flash trace: so much simulated time, from the start."""
        horizon_s = parse_seconds(self.horizon or "10min", "--horizon")
        return Plan(
            settings=self.settings(),
            seed=self.first_seed,
            aged=not self.cold,
            stopping=Stopping(
                turnovers=1e9, warm_up_turnovers=0.0, horizon_s=horizon_s, fixed=True
            ),
        )

    @property
    def first_seed(self) -> int:
        """The seed, or its default."""
        return 1 if self.seed is None else self.seed


def execute_export(options: ExportOptions, *, quiet: bool) -> None:
    """Read, write, report; whatever can be refused is refused before the traces are read.

    Raises:
        InputError: anything in the arguments or the traces that breaks a rule.
    """
    check_apart(options.traces, {"--output": options.output})
    chosen = choose_format(options.output, options.format)
    check_options(chosen, options.of_some_formats())
    check_output(options.output)
    plan = options.plan()
    load = None if options.load is None else Load.parse(options.load)
    tokens = block_tokens_of(chosen, options.block_tokens, plan.settings.node.block_tokens)
    trace = read_traces(options.traces, options.input_format, options.map, quiet=quiet)
    writing = f"writing {options.output}"
    with waiting(writing, quiet=quiet), replaced(options.output) as scratch:
        if chosen is ExportFormat.FLASH_DEVICE:
            lines = _flash(trace, options, plan, load, scratch)
        else:
            lines = _requests(chosen, trace, plan, load, scratch, tokens)
    if not quiet:
        screen = console()
        for line in [*lines, f"Wrote {options.output}."]:
            screen.print(Text(line))


def _requests(
    chosen: ExportFormat, trace: Trace, plan: Plan, load: Load | None, path: Path, tokens: int
) -> list[str]:
    settings = plan.settings
    times = request_times(trace, load, settings.latency, plan.seed)
    said = [f"{trace.requests.num_rows:,} requests of {len(trace):,} sessions; times: {times.how}"]
    if chosen is ExportFormat.ORACLE_GENERAL:
        stream = write_oracle_general(
            trace,
            times,
            path,
            block_tokens=tokens,
            block_bytes=round(settings.kv_capacity().block_bytes),
        )
        said.append(f"{stream.accesses:,} accesses to {stream.blocks:,} blocks of {tokens} tokens")
        return said
    matching = write_requests(chosen, trace, times, path, block_tokens=tokens)
    said.append(
        f"matched tokens as a reader of one agent at a time finds them: {matching.told_tokens:,}, "
        f"of {matching.tokens:,}; exact for {matching.exact:,} of {matching.requests:,} requests "
        f"that follow another of their agent (blocks of {tokens} tokens)"
    )
    return said


def _flash(
    trace: Trace, options: ExportOptions, plan: Plan, load: Load | None, path: Path
) -> list[str]:
    policy = options.policy or "lachesis-deterministic"
    totals, told = write_flash_trace(
        trace, plan, policy, load or Load.parse(_FLASH_LOAD), path, gpu=options.gpu
    )
    simulated_s = told.replays[0].measured["whole"]["time_s"]
    where = "the node" if options.gpu is None else f"GPU {options.gpu}"
    by_class = ", ".join(
        f"{name} {size / 1e9:,.1f}" for name, size in totals.bytes_by_class.items() if size
    )
    return [
        f"{policy}, {simulated_s:,.0f} simulated seconds, flash of {where}",
        f"{totals.records['write']:,} writes of {totals.written_bytes / 1e9:,.1f} GB"
        + (f" ({by_class})" if by_class else ""),
        f"{totals.records['trim']:,} trims of {totals.trimmed_bytes / 1e9:,.1f} GB",
    ]

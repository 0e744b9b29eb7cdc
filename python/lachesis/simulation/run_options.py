"""The options of ``lachesis run`` that decide its result, and the plan that follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from lachesis.errors import InputError
from lachesis.policy import choose_policy
from lachesis.presets import Settings, apply_override_file, apply_overrides
from lachesis.quantities import parse_seconds, parse_share
from lachesis.simulation.plan import Plan, Stopping

_TURNOVERS_MAX = 1e6


@dataclass(frozen=True)
class RunOptions:
    """Options as written; what only decides where output goes, or how fast, is not among them."""

    traces: tuple[str, ...]
    format: str | None = None
    map: tuple[str, ...] = ()
    model: str = "llama-4-maverick"
    memory: str | None = None
    hardware: str = "rubin-hbf"
    flash: str = "hbf-slc"
    config: str | None = None
    set: tuple[str, ...] = ()
    step_time: str | None = None
    step_overhead: str | None = None
    policies: tuple[str, ...] = ()
    load: str = "auto"
    slo: str | None = None
    tpot: str | None = None
    ttft: str | None = None
    turn_end: str | None = None
    seed: int = 1
    precision: str = "2%"
    turnovers: float = 40.0
    horizon: str = "60d"
    cold: bool = False

    def command(self) -> list[str]:
        """The command line that these options stand for, defaults left out.

        Example:
            >>> RunOptions(traces=("tau3",), load="8", policies=("hbf-only",)).command()
            ['lachesis', 'run', 'tau3', '--policy', 'hbf-only', '--load', '8']
        """
        words = ["lachesis", "run", *self.traces]
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "traces" or value == field.default:
                continue
            option = "--policy" if field.name == "policies" else f"--{field.name.replace('_', '-')}"
            for one in value if isinstance(value, tuple) else (value,):
                words += [option] if one is True else [option, str(one)]
        return words

    def plan(self, *, check: bool = True) -> Plan:
        """Presets, seed and stopping.

        Args:
            check: look whether model and memory fit together; else `Settings.check` does later.

        Raises:
            InputError: an option is out of range, or contradicts another.
            InfeasibleError: the model does not fit the memory, or the split the GPU.
        """
        step_time_s = None
        if self.step_time is not None:
            if self.step_overhead is not None:
                raise InputError(
                    "has no effect beside --step-time", field="--step-overhead",
                    value=self.step_overhead,
                )  # fmt: skip
            step_time_s = parse_seconds(self.step_time, "--step-time", bare=True)
        if not (math.isfinite(self.turnovers) and 1.0 <= self.turnovers <= _TURNOVERS_MAX):
            raise InputError(
                f"must be from 1 to {_TURNOVERS_MAX:.0f}", field="--turnovers", value=self.turnovers
            )
        if self.cold and not self._starts_matter():
            raise InputError(
                "has no effect: every policy of this run frees at boundaries, and starts empty",
                field="--cold",
            )
        stopping = Stopping(
            precision=parse_share(self.precision, "--precision"),
            turnovers=self.turnovers,
            horizon_s=parse_seconds(self.horizon, "--horizon"),
        )
        return Plan(
            settings=self.settings(check=check),
            seed=self.seed,
            step_time_s=step_time_s,
            aged=not self.cold,
            stopping=stopping,
        )

    def _starts_matter(self) -> bool:
        """Whether anything is replayed that could start from an aged memory."""
        # The search for the load replays hbm-first.
        if self.load.strip() == "auto" or not self.policies:
            return True
        return not all(choose_policy(name).frees_at_boundaries for name in self.policies)

    def settings(self, *, check: bool = True) -> Settings:
        """The presets with every change applied: the file, the named options, ``--set``.

        Args:
            check: look whether they fit together.

        Raises:
            InputError: a preset or key is unknown, or a value breaks a rule.
            InfeasibleError: they do not fit together.
        """
        if self.slo is not None and (self.tpot is not None or self.ttft is not None):
            raise InputError(
                "names both limits: give it, or --tpot and --ttft", field="--slo", value=self.slo
            )
        settings = Settings.choose(
            model=self.model,
            hardware=self.hardware,
            flash=self.flash,
            **{} if self.memory is None else {"memory": self.memory},
            **{} if self.slo is None else {"slo": self.slo},
        )
        if self.config is not None:
            settings = apply_override_file(settings, self.config, check=False)
        for option, written, key, value in self._named_changes():
            try:
                settings = apply_overrides(settings, [f"{key}={value}"], check=False)
            except InputError as error:
                raise InputError(error.rule, field=option, value=written) from error
        return apply_overrides(settings, self.set, check=check)

    def _named_changes(self) -> list[tuple[str, str, str, str]]:
        """Option, as written, key of the preset, and value in its unit."""
        changes = []
        for option, written, key in (
            ("--tpot", self.tpot, "slo.tpot_p99_ms"),
            ("--ttft", self.ttft, "slo.ttft_p99_s"),
            ("--step-overhead", self.step_overhead, "hardware.step_overhead_ms"),
        ):
            if written is not None:
                seconds = parse_seconds(written, option, zero=option == "--step-overhead")
                value = seconds * 1e3 if key.endswith("_ms") else seconds
                changes.append((option, written, key, f"{value:.12g}"))
        if self.turn_end is not None:
            changes.append(("--turn-end", self.turn_end, "node.turn_end", self.turn_end))
        return changes

"""What a run's writes do to its flash: from a rate to device-years (``docs/wear.md``).

    bytes a second = duty cycle x KV written a second + live bytes / refresh period
    device-years = HBF bytes x P/E cycles / (write amplification x bytes a second x 31,557,600 s)

All of one GPU. Live bytes are the weights, where they lie in flash, and the blocks of KV in flash
that are not free, at their mean over the measured window.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lachesis.simulation import Plan, Replay, device_years

_SECONDS_PER_HOUR = 3_600.0


@dataclass(frozen=True)
class FlashWear:
    """Writes to the flash of one GPU, and how long it stands them.

    Attributes:
        plan: gives capacity, endurance and duty cycle.
        wears: whether the policy writes generated KV to flash, in a run that was not stuck; else
            there are no device-years.
        written_bytes_per_s: KV, while the node serves.
        refresh_bytes_per_s: what refreshing writes, around the clock.
        spread: half of the 95 % interval of `written_bytes_per_s` over its mean.
    """

    plan: Plan
    wears: bool
    written_bytes_per_s: float
    refresh_bytes_per_s: float
    spread: float

    def lifetime_years(self, written: float = 1.0) -> float | None:
        """Device-years, at `written` times the measured rate; None where nothing wears the flash.

        Write amplification is counted here.
        """
        duty_cycle = self.plan.settings.node.duty_cycle
        bytes_per_s = written * duty_cycle * self.written_bytes_per_s + self.refresh_bytes_per_s
        if not self.wears or bytes_per_s <= 0.0:
            return None
        flash = self.plan.settings.flash
        return device_years(
            self.plan.settings.kv_capacity().hbf_bytes,
            flash.pe_cycles,
            flash.write_amplification,
            bytes_per_s,
        )

    def interval(self) -> list[float] | None:
        """The 95 % interval that the write rate's gives; None where it has no upper end."""
        if self.spread >= 1.0:
            return None
        low, high = (self.lifetime_years(1.0 + end * self.spread) for end in (1.0, -1.0))
        return None if low is None or high is None else [low, high]


def flash_wear(plan: Plan, replay: Replay, written_bytes_per_s: float) -> FlashWear:
    """The wear of one replay.

    Args:
        plan: of the replay.
        replay: gives the policy, the occupancy of flash and the interval of the write rate.
        written_bytes_per_s: KV written to the flash of one GPU a second, as measured.
    """
    return FlashWear(
        plan=plan,
        wears=(
            replay.policy.writes_flash
            and plan.settings.memory.hbf_stacks > 0
            and not replay.measured["stuck"]
        ),
        written_bytes_per_s=written_bytes_per_s,
        refresh_bytes_per_s=refresh_bytes_per_s(
            plan, replay.measured["window"]["blocks_in_use_mean"][1]
        ),
        spread=relative_half_width(replay),
    )


def refresh_bytes_per_s(plan: Plan, hbf_blocks: float) -> float:
    """What refreshing writes to the flash of one GPU a second, without write amplification.

    Args:
        plan: gives the period, the weights and the size of a block.
        hbf_blocks: blocks of the simulated GPUs in flash that are not free, at their mean.

    Example:
        >>> from lachesis.presets import Settings, apply_overrides
        >>> settings = apply_overrides(Settings.choose(), ["flash.refresh_hours=24"])
        >>> capacity = settings.kv_capacity()
        >>> rate = refresh_bytes_per_s(Plan(settings), 8 * capacity.hbf_blocks)
        >>> round(rate * 86_400 / capacity.hbf_bytes, 3)  # full, it writes the device once a day
        1.0
    """
    settings = plan.settings
    if settings.flash.refresh_hours == 0.0:
        return 0.0
    capacity = settings.kv_capacity()
    weights = capacity.weights_bytes_per_gpu if capacity.weights_in_hbf else 0
    live = weights + hbf_blocks / plan.gpus * capacity.block_bytes
    return live / (settings.flash.refresh_hours * _SECONDS_PER_HOUR)


def relative_half_width(replay: Replay) -> float:
    """Half of the 95 % interval of the flash's write rate over its mean; infinite if unknown."""
    mean, half_width = replay.measured["hbf_tokens_per_s"]
    return half_width / mean if mean > 0.0 and math.isfinite(half_width) else math.inf

"""What the paper leaves open in the predictive path, as named options."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import msgspec

from lachesis.errors import InputError

_MARGIN_MAX = 100.0


@dataclass(frozen=True)
class RankingOptions:
    """How workers are ranked; ``docs/policies.md`` compares the choices.

    Attributes:
        by: what workers are ranked by: lifetimes ``predicted`` at their spawn by a model that never
            saw their session, or their ``true`` lifetimes.
        ranked_against: every live worker of the node, or those in HBM.
        capacity: whether k divides the node's ``total`` HBM, or what is ``free``.
        reserve: HBM kept for reviewers: for the ``expected`` number, for those ``live``, or
            ``nothing``.
        margin: factor on the mean final footprint of a worker, above 0; larger admits fewer. Below
            1 by default, because a live worker has not reached its final footprint yet.
    """

    by: Literal["predicted", "true"] = "predicted"
    ranked_against: Literal["live-workers", "workers-in-hbm"] = "live-workers"
    capacity: Literal["total", "free"] = "total"
    reserve: Literal["expected", "live", "nothing"] = "expected"
    margin: float = 0.65

    def engine(self) -> dict[str, Any]:
        """The options as `_engine.replay` takes them."""
        return {
            "ranked_against": self.ranked_against,
            "capacity": self.capacity,
            "reserve": self.reserve,
            "margin": self.margin,
        }

    def changed(self, text: str, *, policy: str) -> RankingOptions:
        """The options with some replaced, written ``key=value,key=value``.

        Raises:
            InputError: an option is unknown or given twice, or a value breaks a rule.

        Example:
            >>> RankingOptions().changed("reserve=live,margin=2", policy="lachesis").margin
            2.0
        """
        names = [field.name for field in fields(self) if field.name != "by"]
        values: dict[str, Any] = {"by": self.by}
        for pair in text.split(","):
            key, _, value = (part.strip() for part in pair.partition("="))
            if key not in names or key in values:
                rule = f"options are {', '.join(names)}, each once, written key=value"
                raise InputError(rule, field="policy", value=f"{policy}:{text}")
            values[key] = value
        try:
            options = msgspec.convert(
                {**msgspec.to_builtins(self), **values}, RankingOptions, strict=False
            )
        except msgspec.ValidationError as fault:
            raise InputError(str(fault), field="policy", value=f"{policy}:{text}") from fault
        if not 0.0 < options.margin <= _MARGIN_MAX:
            raise InputError(
                f"margin must be above 0 and at most {_MARGIN_MAX:g}", field="policy",
                value=f"{policy}:{text}",
            )  # fmt: skip
        return options

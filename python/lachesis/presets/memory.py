"""The memory split of a GPU: how many of its slots carry HBM, and how many HBF."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from lachesis.errors import InfeasibleError, InputError

DEFAULT_SLOTS = 8

_SPLIT = re.compile(r"([0-9]{1,4})/([0-9]{1,4})(\*|-chain)?")
_MEMORY_SOURCE = (
    "Lachesis, arXiv 2610.08378, section 5.2: 1/7, 2/6, 3/5, 4/4 and the daisy chain 8/8*; "
    "other splits by the same rule"
)


class SplitError(InfeasibleError):
    """A memory split that is well formed and does not suit the GPU: its slots, or its stacks."""


class MemorySplit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`hbm_stacks` and `hbf_stacks` of one GPU; `chain` when each slot carries both.

    Invariant: at least one HBM stack, because activations live there.

    Example:
        >>> split = MemorySplit.parse("2/6")
        >>> split.hbm_stacks, split.hbf_stacks, split.chain, str(split)
        (2, 6, False, '2/6')
        >>> str(MemorySplit.parse("8/8-chain"))
        '8/8*'
    """

    hbm_stacks: Annotated[int, Meta(ge=1)]
    hbf_stacks: Annotated[int, Meta(ge=0)]
    chain: bool = False

    @classmethod
    def parse(cls, text: str, *, slots: int = DEFAULT_SLOTS) -> MemorySplit:
        """Read ``h/f`` (h + f = slots), or ``s/s*`` (also ``s/s-chain``) for the daisy chain.

        Args:
            text: the split as users write it.
            slots: stacks that the GPU has room for.

        Raises:
            InputError: lists the forms that are valid for this number of slots.
        """
        split = cls.parse_for_any(text, slots=slots)
        split.check_slots(slots)
        return split

    @classmethod
    def parse_for_any(cls, text: str, *, slots: int = DEFAULT_SLOTS) -> MemorySplit:
        """Read a split of a GPU with any number of slots.

        Args:
            text: as for `parse`.
            slots: of the GPU for which a message lists the valid forms.

        Raises:
            InputError: it is a split of no GPU.

        Example:
            >>> str(MemorySplit.parse_for_any("1/4"))
            '1/4'
        """
        match = _SPLIT.fullmatch(text.strip())
        if match is not None:
            hbm, hbf, chain = int(match.group(1)), int(match.group(2)), match.group(3) is not None
            if fits_slots(hbm, hbf, chain, hbm if chain else hbm + hbf):
                return cls(hbm_stacks=hbm, hbf_stacks=hbf, chain=chain)
        raise InputError(_valid(slots), field="memory", value=text)

    def check_slots(self, slots: int) -> None:
        """Check that the split fills a GPU of so many slots.

        Raises:
            SplitError: lists those that do.
        """
        if not self.fits(slots):
            raise SplitError(_valid(slots), field="memory", value=str(self))

    def __str__(self) -> str:
        return f"{self.hbm_stacks}/{self.hbf_stacks}{'*' if self.chain else ''}"

    def fits(self, slots: int) -> bool:
        """Whether this split fills a GPU of that many slots exactly."""
        return fits_slots(self.hbm_stacks, self.hbf_stacks, self.chain, slots)


def fits_slots(hbm_stacks: int, hbf_stacks: int, chain: bool, slots: int) -> bool:
    """The rule of a split: h + f = slots; on the daisy chain h = f = slots; h ≥ 1.

    Example:
        >>> fits_slots(2, 6, False, 8), fits_slots(8, 8, False, 8), fits_slots(8, 8, True, 8)
        (True, False, True)
    """
    if hbm_stacks < 1:
        return False
    if chain:
        return hbm_stacks == hbf_stacks == slots
    return hbm_stacks + hbf_stacks == slots


def split_names(slots: int = DEFAULT_SLOTS) -> tuple[str, ...]:
    """All splits of a GPU, from the most flash to none, then the daisy chain.

    Example:
        >>> split_names()
        ('1/7', '2/6', '3/5', '4/4', '5/3', '6/2', '7/1', '8/0', '8/8*')
    """
    return (*(f"{h}/{slots - h}" for h in range(1, slots + 1)), f"{slots}/{slots}*")


def _valid(slots: int) -> str:
    return f"must be one of {', '.join(split_names(slots))} for {slots} slots"


def memory_source() -> str:
    """Where the notation and the five evaluated splits come from."""
    return _MEMORY_SOURCE

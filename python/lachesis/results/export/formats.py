"""The formats that a trace can be exported in, and which one a file's name asks for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lachesis.errors import InputError


class ExportFormat(StrEnum):
    """Who reads it."""

    AGENTIC_MOONCAKE = "agentic-mooncake"
    MOONCAKE = "mooncake"
    FRONTIER = "frontier"
    ORACLE_GENERAL = "oracle-general"
    FLASH_DEVICE = "flash-device"


@dataclass(frozen=True)
class _Facts:
    endings: tuple[str, ...]
    block_tokens: int | None
    """Tokens of a block where ``--block-tokens`` does not say; None: the node's."""
    options: frozenset[str]
    """Options that have an effect, beside those that all formats share."""


_TIMES = frozenset({"--load", "--seed"})
_RUN = frozenset(
    {"--model", "--memory", "--policy", "--horizon", "--gpu", "--set", "--cold"}
)  # fmt: skip
_FORMATS = {
    ExportFormat.AGENTIC_MOONCAKE: _Facts(
        (".agentic-mooncake.jsonl", ".agentic.jsonl"), 16, _TIMES | {"--block-tokens"}
    ),
    ExportFormat.MOONCAKE: _Facts((".mooncake.jsonl",), 512, _TIMES | {"--block-tokens"}),
    ExportFormat.FRONTIER: _Facts((".frontier.csv",), 16, _TIMES | {"--block-tokens"}),
    ExportFormat.ORACLE_GENERAL: _Facts(
        (".oraclegeneral", ".oraclegeneral.bin"), None, _TIMES | {"--model", "--set"}
    ),
    ExportFormat.FLASH_DEVICE: _Facts((".flash.csv",), None, _TIMES | _RUN),
}


def choose_format(path: str, asked: str | None) -> ExportFormat:
    """The format asked for, else the one that the file's ending names.

    Raises:
        InputError: an unknown format, or an ending that says none.

    Example:
        >>> str(choose_format("w3.mooncake.jsonl", None)), str(choose_format("a.csv", "frontier"))
        ('mooncake', 'frontier')
    """
    names = ", ".join(ExportFormat)
    if asked is not None:
        try:
            return ExportFormat(asked)
        except ValueError:
            raise InputError(f"must be one of {names}", field="--format", value=asked) from None
    for name, facts in _FORMATS.items():
        if path.lower().endswith(facts.endings):
            return name
    raise InputError(f"its ending names no format: give --format, one of {names}", path=path)


def block_tokens_of(name: ExportFormat, asked: int | None, of_node: int) -> int:
    """Tokens of a block in the export.

    Raises:
        InputError: below 1 or above 65,536.
    """
    if asked is not None and not 1 <= asked <= 65_536:
        raise InputError("must be from 1 to 65536", field="--block-tokens", value=asked)
    usual = _FORMATS[name].block_tokens
    return asked or (of_node if usual is None else usual)


def check_options(name: ExportFormat, given: dict[str, object]) -> None:
    """Refuse options that would have no effect on a format.

    Args:
        name: the format.
        given: options and what was given for them, None or nothing where they were left out.

    Raises:
        InputError: the first such option.

    Example:
        >>> check_options(ExportFormat.MOONCAKE, {"--policy": "hbf-only", "--seed": None})
        Traceback (most recent call last):
        ...
        lachesis.errors.InputError: --policy = hbf-only, has no effect on format mooncake
    """
    for option, value in given.items():
        left_out = value is None or value is False or value == ()
        if not left_out and option not in _FORMATS[name].options:
            shown = ", ".join(value) if isinstance(value, tuple) else value
            raise InputError(f"has no effect on format {name}", field=option, value=shown)

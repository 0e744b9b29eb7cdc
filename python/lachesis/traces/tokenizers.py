"""Counts tokens with a vocabulary that the user names, from a local file.

Two kinds of file, told apart by content: ``tokenizer.json`` of Hugging Face's `tokenizers`, and the
rank file of `tiktoken` (``o200k_base.tiktoken``: a base64 token and its rank a line). A rank file
does not say how text is split before merging, so its name must be that of a published encoding.

Both libraries are optional (``pip install lachesis[tokenizers]``) and imported when needed.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from lachesis.errors import InputError

_CL100K: Final = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
_R50K: Final = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
_UPPER: Final = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
_LOWER: Final = r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_SUFFIX: Final = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_O200K: Final = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{_SUFFIX}"
    rf"|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*{_SUFFIX}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
#: How each published encoding splits text (tiktoken's public encodings, version 0.12).
_PATTERNS: Final = {
    "r50k_base": _R50K,
    "p50k_base": _R50K,
    "cl100k_base": _CL100K,
    "o200k_base": _O200K,
    "o200k_harmony": _O200K,
}


class Tokenizer(NamedTuple):
    """A way to count tokens, and its name for ``trace.json``."""

    count_tokens: Callable[[str], int]
    name: str


def load_tokenizer(path: str | Path) -> Tokenizer:
    """The tokenizer in a local file.

    Raises `InputError` for a file that cannot be read or is of neither kind, and where the library
    for it is not installed. Text counts without special tokens.
    """
    place = Path(path)
    try:
        content = place.read_bytes()
    except OSError as fault:
        raise InputError(f"cannot be read: {fault.strerror}", path=place, field="tokenizer") from (
            fault
        )
    if content.lstrip().startswith(b"{"):
        return Tokenizer(_hugging_face(place), f"tokenizers: {place.name}")
    return Tokenizer(_tiktoken(place, content), f"tiktoken: {place.name}")


def _hugging_face(place: Path) -> Callable[[str], int]:
    library: Any = _library("tokenizers", place)
    try:
        tokenizer = library.Tokenizer.from_file(str(place))
    except Exception as fault:
        raise InputError(f"is no tokenizer.json: {fault}", path=place, field="tokenizer") from fault
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def count(text: str) -> int:
        # Half surrogate pairs, which cut-off tool results have, are no text to the library.
        whole = text.encode("utf-8", "replace").decode()
        return len(tokenizer.encode(whole, add_special_tokens=False))

    return count


def _tiktoken(place: Path, content: bytes) -> Callable[[str], int]:
    ranks = _ranks(place, content)
    name = place.name.split(".")[0]
    if name not in _PATTERNS:
        raise InputError(
            f"a rank file must be named after its encoding ({', '.join(_PATTERNS)}), as it does "
            "not say how text is split",
            path=place, field="tokenizer",
        )  # fmt: skip
    library: Any = _library("tiktoken", place)
    try:
        encoding = library.Encoding(
            name, pat_str=_PATTERNS[name], mergeable_ranks=ranks, special_tokens={}
        )
    except (ValueError, KeyError) as fault:
        raise InputError(f"is no rank file: {fault}", path=place, field="tokenizer") from fault

    def count(text: str) -> int:
        return len(encoding.encode_ordinary(text.encode("utf-8", "replace").decode()))

    return count


def _ranks(place: Path, content: bytes) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        words = line.split()
        try:
            token, rank = base64.b64decode(words[0], validate=True), int(words[1])
        except (binascii.Error, ValueError, IndexError) as fault:
            raise InputError(
                "is neither a tokenizer.json nor a line of a base64 token and its rank",
                path=place, row=number, field="tokenizer",
            ) from fault  # fmt: skip
        if len(words) != 2 or rank < 0 or token in ranks:
            raise InputError("must be a new token and its rank", path=place, row=number,
                             field="tokenizer")  # fmt: skip
        ranks[token] = rank
    if any(bytes([byte]) not in ranks for byte in range(256)):
        raise InputError("must hold a token for every single byte", path=place, field="tokenizer")
    if len(set(ranks.values())) < len(ranks):
        raise InputError("gives one rank twice", path=place, field="tokenizer")
    return ranks


def _library(name: str, place: Path) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as fault:
        raise InputError(
            f"needs the library {name}, which is not installed: pip install lachesis[tokenizers]",
            path=place, field="tokenizer",
        ) from fault  # fmt: skip

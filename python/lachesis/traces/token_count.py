"""Tokens of text that no tokenizer has counted.

Four characters a token is the usual rule of thumb for English text and code under byte-pair
vocabularies of 100 to 200 thousand entries; JSON and digits run denser (about three), so counts
from it are always flagged as inferred.
"""

from __future__ import annotations

CHARACTERS_PER_TOKEN = 4
CHARACTERS_PER_TOKEN_NAME = f"estimate: {CHARACTERS_PER_TOKEN} characters a token, rounded up"


def estimate_tokens(text: str) -> int:
    """Tokens of `text` at four characters each, rounded up; 0 for the empty text.

    Example:
        >>> estimate_tokens("hello"), estimate_tokens("")
        (2, 0)
    """
    return -(-len(text) // CHARACTERS_PER_TOKEN)

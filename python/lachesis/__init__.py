"""Lachesis: place KV cache by how long it will live, and learn how long the flash lasts."""

from lachesis._engine import __version__

__all__ = ["__version__"]

"""The paper's published figures against what this project gives, row by row."""

from lachesis.reproduce.evidence import Evidence
from lachesis.reproduce.registry import choose, compare, names
from lachesis.reproduce.row import Row

__all__ = ["Evidence", "Row", "choose", "compare", "names"]

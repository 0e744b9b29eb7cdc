"""The paper's published figures against what this project gives, row by row.

    corpora  -> characterisation, predictor  -> rows of Table 3 and Figures 4 to 7
    cells    -> a sweep -> rows of its runs  -> rows of Figures 9 to 12

What is published lies in ``data/*.toml``, each figure with its place in the paper.
"""

from lachesis.reproduce.background import Background
from lachesis.reproduce.evidence import Evidence
from lachesis.reproduce.registry import Published, cells_of, choose, compare, names
from lachesis.reproduce.row import Row
from lachesis.reproduce.runs import Runs
from lachesis.reproduce.simulated import FULL, QUICK, Precision, simulated

__all__ = [
    "FULL",
    "QUICK",
    "Background",
    "Evidence",
    "Precision",
    "Published",
    "Row",
    "Runs",
    "cells_of",
    "choose",
    "compare",
    "names",
    "simulated",
]

"""Questions the other way round: from a wish (years, load, cost) to the memory that grants it."""

from lachesis.questions.answer import Answer, Finding, answer_schema
from lachesis.questions.cheapest_split import cheapest_split
from lachesis.questions.effect import effect
from lachesis.questions.largest_load import largest_load_for
from lachesis.questions.scenario import Scenario
from lachesis.questions.smallest_hbm import smallest_hbm

__all__ = [
    "Answer",
    "Finding",
    "Scenario",
    "answer_schema",
    "cheapest_split",
    "effect",
    "largest_load_for",
    "smallest_hbm",
]

"""How policies look in every plot: colour, marker and line, so that none rests on colour alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lachesis.report.questions import in_policy_order


class PolicyStyle(NamedTuple):
    """Colour (Okabe and Ito's palette), Plotly's marker and dash, and matplotlib's."""

    colour: str
    symbol: str
    dash: str
    marker: str
    line: str


_STYLES = {
    "hbm-first": PolicyStyle("#D55E00", "square", "dash", "s", "--"),
    "hbf-only": PolicyStyle("#E69F00", "diamond", "dot", "D", ":"),
    "hbm-only": PolicyStyle("#CC79A7", "cross", "dashdot", "P", "-."),
    "lachesis-deterministic": PolicyStyle("#56B4E9", "triangle-down", "longdash", "v", "--"),
    "lachesis": PolicyStyle("#0072B2", "circle", "solid", "o", "-"),
    "lachesis-oracle": PolicyStyle("#009E73", "star", "longdashdot", "*", "-."),
    "read-write-ratio": PolicyStyle("#999999", "triangle-up", "dashdot", "^", "-."),
    "frequency": PolicyStyle("#F0E442", "pentagon", "dash", "p", "--"),
    "offline-optimal": PolicyStyle("#117733", "hexagon", "dot", "h", ":"),
}
# For policies of users, and for variants of a policy that is shown already.
_OTHERS = (
    PolicyStyle("#882255", "triangle-left", "dot", "<", ":"),
    PolicyStyle("#44AA99", "triangle-right", "dash", ">", "--"),
    PolicyStyle("#DDCC77", "star-diamond", "longdash", "X", "--"),
    PolicyStyle("#AA4499", "hourglass", "dashdot", "d", "-."),
)


def policy_styles(policies: Iterable[str]) -> dict[str, PolicyStyle]:
    """A style for each policy; the same for the same set, whatever its order.

    Example:
        >>> styles = policy_styles(["lachesis", "lachesis:k=free", "mine.py:Mine"])
        >>> [style.symbol for style in styles.values()]
        ['circle', 'triangle-left', 'triangle-right']
    """
    styles: dict[str, PolicyStyle] = {}
    taken: set[str] = set()
    others = 0
    for policy in in_policy_order(policies):
        base = policy.partition(":")[0]
        if base in _STYLES and base not in taken:
            taken.add(base)
            styles[policy] = _STYLES[base]
        else:
            styles[policy] = _OTHERS[others % len(_OTHERS)]
            others += 1
    return styles

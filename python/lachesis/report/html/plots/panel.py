"""What a plot on the page is made of.

Data and layout are Plotly's own; `INK` and `WARRANTY` stand where a colour depends on the page's
theme, and the page's script puts the theme's colours, fonts and grids in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

#: Colours that the theme decides.
INK, WARRANTY = "@ink", "@warranty"

_LABEL_CHARACTERS = 48


@dataclass(frozen=True)
class Panel:
    """One drawing.

    Attributes:
        title: what sets it apart from the other panels beside it.
        data: Plotly's traces.
        layout: Plotly's layout, theme and size left out.
        height_px: of the drawing.
        wide: whether it takes the whole width.
        rows: whether its height follows from its rows, so that paper must not flatten it.
    """

    title: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    height_px: int = 380
    wide: bool = False
    rows: bool = False

    def to_json(self) -> dict[str, Any]:
        """As the page's script reads it."""
        return {
            "title": self.title,
            "data": self.data,
            "layout": self.layout,
            "height_px": self.height_px,
            "wide": self.wide,
            "rows": self.rows,
        }


@dataclass(frozen=True)
class Plot:
    """A section of the page.

    Attributes:
        key: names it in the page.
        title: its heading.
        caption: what it shows and how to read it.
        choices: panels by choice, in the order of what is chosen from; empty if there is nothing.
        follows: whether the page's selectors choose; otherwise the plot has its own.
        labels: of its own choices.
        label: of its own selector.
    """

    key: str
    title: str
    caption: str
    choices: list[list[Panel]]
    follows: bool = True
    labels: list[str] = field(default_factory=list)
    label: str = ""

    def to_json(self) -> dict[str, Any]:
        """As the page's script reads it."""
        return {
            "key": self.key,
            "follows": self.follows,
            "labels": self.labels,
            "choices": [[panel.to_json() for panel in panels] for panels in self.choices],
        }


def drawn_text(text: str) -> str:
    """A text from outside as Plotly draws it unchanged: it reads its labels as HTML.

    Example:
        >>> drawn_text("<b>bold</b>")
        '&lt;b&gt;bold&lt;/b&gt;'
    """
    short = text if len(text) <= _LABEL_CHARACTERS else text[: _LABEL_CHARACTERS - 1] + "…"
    return escape(short, quote=False)


def rounded(value: float | None, digits: int = 4) -> float | None:
    """A number with so many significant digits: a page needs no more, and is smaller."""
    return None if value is None else float(f"{value:.{digits}g}")

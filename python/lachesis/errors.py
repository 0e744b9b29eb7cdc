"""Errors as users meet them: one line that says what is wrong and where, and an exit code.

Example:
    >>> str(InputError("must be at least 1", path="azure.csv", row=1042,
    ...                field="output_tokens", value=-3))
    'azure.csv:1042: output_tokens = -3, must be at least 1'
    >>> InputError("no such file", path="x.json").exit_code
    2
"""

from __future__ import annotations

from pathlib import Path

EXIT_USER = 2
EXIT_INTERNAL = 1
_VALUE_CHARACTERS_MAX = 80


def printable(name: str) -> str:
    r"""A file's name as it can be printed and written: what cannot be shown becomes an escape.

    Names may hold newlines, bytes that are no UTF-8, and codes that a terminal would obey.

    Example:
        >>> print(printable("new\nline"), printable("caf\udce9"))
        new\nline caf\udce9
    """
    if name.isprintable():
        return name
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in name
    )


def _one_line(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(text.split()) if text.strip() else repr(text)
    if len(text) > _VALUE_CHARACTERS_MAX:
        text = text[: _VALUE_CHARACTERS_MAX - 1] + "…"
    return text


class LachesisError(Exception):
    """Root of every error that this package raises on purpose.

    `exit_code` is what the command line ends with: 2 for the user's mistakes, 1 for faults of ours.
    """

    exit_code: int = EXIT_INTERNAL


class InputError(LachesisError):
    """Something that came from outside breaks a rule.

    Args:
        rule: what must hold, or what went wrong, as the end of a sentence.
        path: file, folder or option that holds the value.
        row: position in it: a line number (1-based), or words such as ``session a, request 3``.
        field: column, key or option.
        value: what stood there; shortened to 80 characters.

    The text is always a single line: ``path:row: field = value, rule``; parts that are not known
    are left out.
    """

    exit_code = EXIT_USER

    def __init__(
        self,
        rule: str,
        *,
        path: str | Path | None = None,
        row: int | str | None = None,
        field: str | None = None,
        value: object = None,
    ) -> None:
        self.rule = " ".join(rule.split())
        self.path = None if path is None else str(path)
        self.row = row
        self.field = field
        self.value = value
        super().__init__(self.rule)

    def __str__(self) -> str:
        where = printable(self.path or "")
        if self.row is not None:
            joint = ":" if isinstance(self.row, int) and where else (": " if where else "")
            where = f"{where}{joint}{self.row}"
        what = ""
        if self.field is not None:
            what = self.field if self.value is None else f"{self.field} = {_one_line(self.value)}"
        elif self.value is not None:
            what = _one_line(self.value)
        said = ", ".join(part for part in (what, self.rule) if part)
        return f"{where}: {said}" if where else said

    def located(self, path: str | Path) -> InputError:
        """The same error with a file name, where none was known when it was raised."""
        if self.path is not None:
            return self
        return type(self)(self.rule, path=path, row=self.row, field=self.field, value=self.value)


class InfeasibleError(InputError):
    """What is asked for is well formed, and cannot be run: it does not fit the memory, say.

    No value is wrong in itself, so that a sweep notes such a combination and runs the others.
    """


class InternalError(LachesisError):
    """An invariant of this package is broken: a fault of ours, never of the input."""

    exit_code = EXIT_INTERNAL

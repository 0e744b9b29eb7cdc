"""Errors of the engine as errors of this package: with the names that the engine does not know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lachesis._engine import EngineError
from lachesis.errors import InputError, InternalError
from lachesis.policy.python_policy import raised_in

#: What the user's input or settings can cause; anything else is a fault of ours.
_OF_THE_USER = frozenset({"Workload", "Setting", "SessionTooLarge", "Overrun", "ClockRange"})


@contextmanager
def engine_errors(source: str, session_names: Sequence[str] = ()) -> Iterator[None]:
    """Turn `EngineError` into `InputError` or `InternalError`, naming file, session and row.

    Args:
        source: what the workload was read from.
        session_names: names of the workload's sessions, in its order.
    """
    try:
        yield
    except EngineError as fault:
        kind, message, place = fault.args
        if kind == "Policy" and isinstance(fault.__cause__, Exception):
            raise raised_in(fault.__cause__) from fault.__cause__
        if kind not in _OF_THE_USER:
            raise InternalError(f"engine: {message}") from fault
        if place is None:
            raise InputError(message) from fault
        session, field, row = place
        name = session_names[session] if session < len(session_names) else str(session)
        rule = message.split(": ", 1)[-1] if kind == "Workload" else _drop_place(message)
        raise InputError(rule, path=source, row=f"session {name}, {field} {row}") from fault
    except ValueError as fault:
        raise InputError(str(fault)) from fault


def _drop_place(message: str) -> str:
    """The part of a message about a session that does not repeat the session and request."""
    return message.partition(" needs ")[1].strip() + " " + message.partition(" needs ")[2]

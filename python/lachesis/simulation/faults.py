"""Errors of the engine as errors of this package: with the names that the engine does not know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lachesis._engine import EngineError
from lachesis.errors import InfeasibleError, InputError, InternalError
from lachesis.policy.python_policy import raised_in

#: What the user's input or settings can cause: a value that breaks a rule, or values that are each
#: allowed and do not go together. Anything else is a fault of ours.
_WRONG = frozenset({"Workload", "Setting"})
_INFEASIBLE = frozenset({"SessionTooLarge", "Overrun", "ClockRange"})


@contextmanager
def engine_errors(source: str, session_names: Sequence[str] = ()) -> Iterator[None]:
    """Turn `EngineError` into an error of this package, naming file, session and row.

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
        if kind not in _WRONG | _INFEASIBLE:
            raise InternalError(f"engine: {message}") from fault
        error = InfeasibleError if kind in _INFEASIBLE else InputError
        if place is None:
            raise error(message) from fault
        session, field, row = place
        name = session_names[session] if session < len(session_names) else str(session)
        rule = message.split(": ", 1)[-1] if kind == "Workload" else _drop_place(message)
        raise error(rule, path=source, row=f"session {name}, {field} {row}") from fault
    except ValueError as fault:
        raise InputError(str(fault)) from fault


def _drop_place(message: str) -> str:
    """The part of a message about a session that does not repeat the session and request."""
    return message.partition(" needs ")[1].strip() + " " + message.partition(" needs ")[2]

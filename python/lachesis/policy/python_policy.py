"""Placement policies written in Python: the same few decisions as those in Rust.

A policy is asked once a segment, at a spawn and at a boundary, never once a token. It runs in
`lachesis.placement.Placement` and in ``lachesis run --policy module:Class``. An answer may depend
on the calls before it and on nothing else: no clock, no unseeded random numbers.

Example:
    >>> class ShortWorkersInHbm(PythonPolicy):
    ...     def spawn(self, record):
    ...         return float(len(record.instruction or ""))
    ...
    ...     def segment_opened(self, segment, node):
    ...         return "hbm" if segment.score is not None and segment.score < 80 else "hbf"
    >>> ShortWorkersInHbm().pressure()
    'fall-back'
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import math
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Protocol

from lachesis.errors import EXIT_USER, InputError, LachesisError


class PolicyError(LachesisError):
    """A policy written in Python failed: one line with its file, line and error."""

    exit_code = EXIT_USER


class Segment(Protocol):
    """What a policy is told of a segment.

    Attributes:
        kind: segment class, as ``worker``.
        gpu: where its session lives.
        session, number: tell the segment from all others of a run.
        score: what `spawn` said, for a worker; None otherwise.
    """

    kind: str
    gpu: int
    session: int
    number: int
    score: float | None


class Node(Protocol):
    """What a policy may look at: blocks of the segment's GPU, and free ones of all GPUs."""

    hbm_free: int
    hbf_free: int
    hbm_total: int
    hbf_total: int
    node_hbm_free: int
    node_hbf_free: int
    gpus: int


class Spawn(Protocol):
    """What is known of a worker at its spawn; texts and lengths are None where unknown."""

    instruction: str | None
    context: str | None
    tools: Sequence[str]
    instruction_tokens: int | None
    context_tokens: int | None
    position: int | None


class PythonPolicy:
    """Base of a policy in Python: override what differs.

    Attributes:
        name: as in results; by default the class's name.
        keeps_past_boundaries: whether blocks stay cached past their boundary until memory is
            needed. Read once.
        needs_scores: whether workers that `spawn` gives no score get that of the predictor: in a
            run one that never saw their session, in `Placement` the one that it was given.
    """

    name: str = ""
    keeps_past_boundaries: bool = False
    needs_scores: bool = False

    def segment_opened(self, segment: Segment, node: Node) -> Literal["hbm", "hbf"]:
        """Name the tier of a segment's blocks; it holds until the segment ends."""
        raise NotImplementedError(f"{type(self).__name__} must define segment_opened")

    def spawn(self, record: Spawn) -> float | None:
        """Score a worker's spawn record (lower lives shorter), before its segment opens.

        A run scores all workers beforehand, with a policy of its own. None: no score, or the
        predictor's (`needs_scores`).
        """
        return None

    def boundary(self, segment: Segment, tier: str, blocks: int) -> None:
        """Hear that a segment has ended: the tier named for it, and the blocks that it held."""

    def pressure(self) -> Literal["fall-back", "refuse"]:
        """Say what a draw does whose tier is empty: use the other, or wait. Asked once."""
        return "fall-back"

    def engine(self) -> dict[str, Any]:
        """The policy as the engine takes it."""
        name = self.name or type(self).__name__
        return {"name": name, "targets": None, "options": None, "python": self}


def load(reference: str) -> PythonPolicy:
    """A new policy of the class that ``module:Class`` names.

    Raises:
        InputError: no such module or class, or it is no `PythonPolicy`.
        PolicyError: the module or the class raised an error.
    """
    return construct(load_class(reference), reference)


def construct(kind: type[PythonPolicy], name: str) -> PythonPolicy:
    """A new policy of a class, named so where the class gives no name.

    Raises:
        PolicyError: the class raised an error.
    """
    try:
        policy = kind()
    except Exception as fault:
        raise raised_in(fault) from fault
    policy.name = policy.name or name
    return policy


def load_class(reference: str) -> type[PythonPolicy]:
    """The class that ``module:Class`` names; modules in the working directory are found.

    Raises:
        InputError: no such module or class, or it is no `PythonPolicy`.
        PolicyError: the module raised an error.
    """
    module_name, _, class_name = reference.partition(":")
    if not module_name or not class_name:
        raise InputError("must be module:Class", field="policy", value=reference)
    try:
        module = _import(module_name)
    except ModuleNotFoundError as fault:
        if fault.name is None or not f"{module_name}.".startswith(f"{fault.name}."):
            raise raised_in(fault) from fault
        raise InputError("no such module", field="policy", value=module_name) from None
    except Exception as fault:
        raise raised_in(fault) from fault
    kind = getattr(module, class_name, None)
    if not (inspect.isclass(kind) and issubclass(kind, PythonPolicy)):
        rule = f"must name a class of {module_name} that extends lachesis.policy.PythonPolicy"
        raise InputError(rule, field="policy", value=class_name)
    return kind


def asked_to_score(policy: PythonPolicy, record: Spawn) -> float | None:
    """What a policy says to a spawn record.

    Raises:
        PolicyError: it raised an error, or what it said is no finite number.
    """
    try:
        score: object = policy.spawn(record)
    except Exception as fault:
        raise raised_in(fault) from fault
    if score is None:
        return None
    if not isinstance(score, int | float) or not math.isfinite(score):
        raise PolicyError(
            f"{place_of(policy.spawn)}: spawn returned {score!r}, must be a finite number or None"
        )
    return float(score)


def source_sha256(kind: type[PythonPolicy]) -> str:
    """Digest of the module that a policy is written in: what decided a run."""
    module = sys.modules.get(kind.__module__)
    source = "" if module is None else inspect.getsource(module)
    return hashlib.sha256(source.encode()).hexdigest()


def place_of(method: Callable[..., object]) -> str:
    """File and line of a method, for messages."""
    code = getattr(method, "__code__", None)
    return repr(method) if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def _import(module_name: str) -> ModuleType:
    """Import a module, from the working directory too, as ``python -m`` does."""
    here = str(Path.cwd())
    if here in sys.path:
        return importlib.import_module(module_name)
    sys.path.insert(0, here)
    try:
        return importlib.import_module(module_name)
    finally:
        sys.path.remove(here)


def raised_in(fault: BaseException) -> PolicyError:
    r"""An error from within a policy, as one line: where, what.

    Example:
        >>> str(raised_in(ValueError("bad\nanswer")))
        'policy: ValueError: bad answer'
    """
    frames = traceback.extract_tb(fault.__traceback__)
    if not frames and len(fault.args) == 2:
        # An answer that the engine refused: it says which method gave it.
        answer, place = fault.args
        return PolicyError(f"{place}: {answer}")
    if isinstance(fault, SyntaxError) and fault.filename:
        where = f"{fault.filename}:{fault.lineno}"
    elif frames:
        where = f"{frames[-1].filename}:{frames[-1].lineno}"
    else:
        where = "policy"
    said = " ".join(str(fault.msg if isinstance(fault, SyntaxError) else fault).split())
    return PolicyError(
        f"{where}: {type(fault).__name__}: {said}" if said else f"{where}: {type(fault).__name__}"
    )

"""The corpora that the package ships: names, and loading of the generated tables.

The eleven workloads lie in ``data/corpora`` as Parquet; the mixes are joined when they are loaded.
The run with the reviewer disabled is laid out anew from the same draws, since it differs from
``multi-agent`` in nothing but the reviewers.
"""

from __future__ import annotations

from pathlib import Path
from weakref import WeakValueDictionary

from lachesis.errors import InputError
from lachesis.traces.generator import specification
from lachesis.traces.generator.generate import MIXES, WITHOUT_REVIEWERS, generate
from lachesis.traces.trace import Trace, concat

CORPUS_DIRECTORY = specification.DATA_DIRECTORY / "corpora"

#: Workloads that somebody holds, so that they are read once however many mixes have them.
_IN_USE: WeakValueDictionary[str, Trace] = WeakValueDictionary()


def names() -> tuple[str, ...]:
    """Names of all corpora: the workloads, then the mixes.

    >>> names()[-4:]
    ('tau3', 'bfclv4', 'multi-agent', 'multi-agent-no-reviewer')
    """
    return (*specification.names(), *MIXES)


def load(name: str) -> Trace:
    """A corpus as shipped; raises ``InputError`` for a name that is none.

    >>> trace = load("bfclv4-base")
    >>> len(trace), trace.requests.num_rows
    (200, 2063)
    """
    if name not in names():
        raise InputError(f"must be one of {', '.join(names())}", field="corpus", value=name)
    if name == WITHOUT_REVIEWERS:
        return generate(name)
    return concat([_workload(part) for part in MIXES.get(name, (name,))], source=name)


def save_all(directory: Path = CORPUS_DIRECTORY) -> None:
    """Generate every workload from its specification and write it below ``directory``."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in specification.names():
        generate(name).save(directory / f"{name}.trace")


def _workload(name: str) -> Trace:
    found = _IN_USE.get(name)
    if found is None:
        found = _IN_USE[name] = Trace.load(_path(name))
    return found


def _path(workload: str) -> Path:
    return CORPUS_DIRECTORY / f"{workload}.trace"

"""Which role a sub-agent has, by what its harness calls it."""

from __future__ import annotations

import re
from typing import Final

from lachesis.traces.schema import Role

_REVIEWER: Final = re.compile(r"review|critic|verif", re.IGNORECASE)


def role_of(agent_type: str | None) -> Role:
    """A reviewer if its type's name says so, else a worker.

    Example:
        >>> str(role_of("code-reviewer")), str(role_of("Explore")), str(role_of(None))
        ('reviewer', 'worker', 'worker')
    """
    return Role.REVIEWER if agent_type and _REVIEWER.search(agent_type) else Role.WORKER

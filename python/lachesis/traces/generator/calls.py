"""Which tool class each call goes to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lachesis.errors import InputError
from lachesis.traces.generator.draws import permutation
from lachesis.traces.generator.specification import ToolShare
from lachesis.traces.schema import ToolClass


def deal_classes(
    shares: list[ToolShare], count: int, rng: np.random.Generator
) -> NDArray[np.object_]:
    """``count`` tool classes in these shares (to the nearest call), in random order.

    >>> from lachesis.traces.generator.draws import stream
    >>> shares = [ToolShare(name="retrieval", share=0.75), ToolShare(name="human", share=0.25)]
    >>> sorted(deal_classes(shares, 4, stream(1, "x")).tolist())
    ['human', 'retrieval', 'retrieval', 'retrieval']
    """
    known = set(ToolClass) - {ToolClass.SPAWN}
    for share in shares:
        if share.name not in known:
            raise InputError(
                f"must be one of {', '.join(sorted(known))}", field="tools.name", value=share.name
            )
    total = sum(share.share for share in shares)
    if not np.isclose(total, 1.0):
        raise InputError("shares must sum to 1", field="tools.share", value=total)
    bounds = np.rint(np.cumsum([share.share for share in shares]) * count).astype(np.int64)
    which = np.searchsorted(bounds, np.arange(count), side="right")
    names = np.array([share.name for share in shares], dtype=object)
    return names[np.minimum(which, len(shares) - 1)][permutation(rng, count)]

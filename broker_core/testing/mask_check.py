"""Checks that masks judge each name by itself: asked once more, in another order and in pieces, they must agree.

The broker may show a mask the names in any order and in slices, and does so for large namespaces. A mask that looks at
a name's neighbours, its position or the length of the column then answers differently.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from broker_core.counted import counted
from broker_core.errors import Cause, ListingFailed

__all__ = ["check_mask"]

#: Names that differ, as many as a message shows.
_SHOWN: Final = 5
#: Pieces that the names are shown in.
_PIECES: Final = 3


async def check_mask(
    plugin: str, topics: Any, mask: Any | None, ask: Callable[[Any], Awaitable[Any | None]]
) -> None:
    """Ask a mask once more about the same names.

    Raises :exc:`~broker_core.errors.ListingFailed` that names topics for which the answers differ.
    """
    if len(topics) < 2:
        return
    before = _as_array(mask, len(topics))
    shuffled = np.array(random.sample(range(len(topics)), len(topics)))  # no secret
    for piece in np.array_split(shuffled, min(_PIECES, len(shuffled))):
        try:
            again = _as_array(await ask(topics.take(pa.array(piece))), len(piece))
        except ListingFailed as failure:
            detail = getattr(failure, "detail", failure.message)
            why = f"failed when its mask was asked about {len(piece)} of {counted(len(topics), 'name')}: {detail}"
            raise _failed(plugin, why) from failure
        differ = np.sort(piece[again != before[piece]])
        if len(differ):
            names = ", ".join(topics.take(pa.array(differ[:_SHOWN])).to_pylist())
            raise _failed(
                plugin,
                f"does not mask each name by itself: of {len(differ)} of {len(piece)} it said something else when "
                f"they stood in another column, of {names} for one",
            )


def _as_array(mask: Any | None, length: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    shown: np.ndarray[Any, np.dtype[np.bool_]] = (
        np.ones(length, dtype=np.bool_) if mask is None else mask.to_numpy(zero_copy_only=False)
    )
    return shown


def _failed(plugin: str, what: str) -> ListingFailed:
    return ListingFailed(
        f"plugin {plugin!r} {what} (check_masks of the test kit)",
        cause=Cause.PLUGIN,
        reason="plugin_answer",
        plugin=plugin,
    )

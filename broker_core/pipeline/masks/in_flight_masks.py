"""Masks of single topics: one call of a mask for all waiting lookups of the same asker.

A mask judges each name by itself, so the names of several lookups may stand in one column. A client that opens hundreds
of topics looks each of them up; a call of a plugin for each costs many times more than the answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from broker_core.pipeline.runs.in_flight import NextRuns

__all__ = ["MasksInFlight", "Seen"]

#: Names in one column; a caller with more names asks alone.
_MOST: Final = 16 * 1024

Seen: TypeAlias = "np.ndarray[Any, Any] | None"
AsksMask: TypeAlias = Callable[[pa.LargeStringArray], Awaitable[Any | None]]


class MasksInFlight:
    """Questions by key, for one event loop: equal keys, equal answers for a name."""

    def __init__(self) -> None:
        self._runs: NextRuns[pa.LargeStringArray, Seen] = NextRuns()

    def __len__(self) -> int:
        """The number of keys under way."""
        return len(self._runs)

    async def visible(self, key: Hashable, names: pa.LargeStringArray, ask: AsksMask) -> Seen:
        """The mask of visible names (``None``: all), by the mask that ``ask`` returns for a column.

        The answering call of ``ask`` begins after this call. Raises what ``ask`` raises.
        """
        if self._runs.waiting(key) + len(names) > _MOST:
            seen, start = await _seen(ask, [names]), 0
        else:
            seen, start = await self._runs.ask(key, partial(_seen, ask), names, len(names))
        return None if seen is None else seen[start : start + len(names)]


async def _seen(ask: AsksMask, columns: Sequence[pa.LargeStringArray]) -> Seen:
    mask = await ask(columns[0] if len(columns) == 1 else pa.concat_arrays(columns))
    return None if mask is None else mask.to_numpy(zero_copy_only=False)

"""What masks say of the names of single topics: all who wait at a time are asked about together, by who asks.

A mask is about each name by itself, so the names of several lookups may stand in one column. A client that opens
hundreds of topics looks each of them up; a call of a plugin for each costs many times what the answer does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

__all__ = ["SharedMasks"]

#: Names in one column; who comes with more asks alone.
_MOST: Final = 16 * 1024

Seen: TypeAlias = "np.ndarray[Any, Any] | None"


class _Batch:
    """Names that are asked about together."""

    def __init__(self) -> None:
        self.names: list[pa.LargeStringArray] = []
        self.count = 0
        self.task: asyncio.Task[Seen] | None = None


class SharedMasks:
    """Questions by key, for one event loop: equal keys, equal answers for a name."""

    def __init__(self) -> None:
        self._running: dict[Hashable, _Batch] = {}
        self._next: dict[Hashable, _Batch] = {}

    async def some_visible(
        self,
        key: Hashable,
        names: pa.LargeStringArray,
        ask: Callable[[pa.LargeStringArray], Awaitable[Any | None]],
    ) -> bool:
        """Whether one of the names may be seen, as the mask says that ``ask`` gives of a column (``None``: all).

        The question that answers begins after this call. Raises what ``ask`` raises.
        """
        batch = self._next.get(key)
        if batch is not None and batch.count + len(names) > _MOST:
            return _some(_seen(await ask(names)), 0, len(names))
        if batch is None:
            batch = _Batch()
            running = self._running.get(key)
            if running is None:
                self._running[key] = batch
            else:
                self._next[key] = batch
            work = self._asked(key, batch, running, ask)
            batch.task = asyncio.get_running_loop().create_task(work)
            batch.task.add_done_callback(_looked_at)
        start = batch.count
        batch.names.append(names)
        batch.count += len(names)
        assert batch.task is not None
        # Shielded: others may wait for it, and who goes away must not end it.
        return _some(await asyncio.shield(batch.task), start, len(names))

    async def _asked(
        self,
        key: Hashable,
        batch: _Batch,
        before: _Batch | None,
        ask: Callable[[pa.LargeStringArray], Awaitable[Any | None]],
    ) -> Seen:
        if before is not None:
            assert before.task is not None
            await asyncio.wait([before.task])
            del self._next[key]
            self._running[key] = batch
        try:
            names = batch.names[0] if len(batch.names) == 1 else pa.concat_arrays(batch.names)
            return _seen(await ask(names))
        finally:
            del self._running[key]


def _seen(mask: Any | None) -> Seen:
    return None if mask is None else mask.to_numpy(zero_copy_only=False)


def _some(seen: Seen, start: int, count: int) -> bool:
    return seen is None or bool(seen[start : start + count].any())


def _looked_at(task: asyncio.Task[Any]) -> None:
    """An exception that everybody who waited for has gone away from is nobody's."""
    if not task.cancelled():
        task.exception()
